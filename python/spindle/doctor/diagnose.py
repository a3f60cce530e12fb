"""Applies every rule to every part of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from spindle.inspect.model import Inventory

from .finding import Diagnosis, Finding
from .rule import Rule, RuleInput, Workload
from .rules import RULES
from .stack import Stack
from .states import decide
from .unjudged import unjudged


def diagnose(inventory: Inventory, rules: Sequence[Rule] = RULES, workload: Workload | None = None) -> Diagnosis:
    """Findings by severity, then in the order of the rules; each step lists the states it must wait for."""
    stack = Stack(inventory)
    case = RuleInput(stack, workload)
    diagnosis = Diagnosis(
        origin=inventory.origin, target=inventory.target, workload=workload, rules=[rule.name for rule in rules]
    )
    for rule in rules:
        said: set[str] = set()
        for one in rule.check(case):
            said.add(one.object)
            if isinstance(one, Finding):
                diagnosis.findings.append(one)
            else:
                diagnosis.unjudged.append(one)
        diagnosis.unjudged.extend(unjudged(rule, stack, said))
    decide(stack, diagnosis.findings)
    diagnosis.findings.sort(key=lambda found: -found.severity.rank)
    return diagnosis


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the JSON of `spindle doctor`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "spindle doctor",
        **msgspec.json.schema(Diagnosis),
    }
