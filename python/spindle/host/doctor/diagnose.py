"""Every rule on every part of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..inspect.model import Inventory
from .finding import Diagnosis, Finding
from .rule import Case, Rule, Workload
from .rules import RULES
from .stack import Stack


def diagnose(inventory: Inventory, rules: Sequence[Rule] = RULES, workload: Workload | None = None) -> Diagnosis:
    """The worst findings first, and among equals in the order of the rules."""
    case = Case(Stack(inventory), workload)
    told = Diagnosis(
        origin=inventory.origin, target=inventory.target, workload=workload, rules=[rule.name for rule in rules]
    )
    for rule in rules:
        for one in rule.check(case):
            if isinstance(one, Finding):
                told.findings.append(one)
            else:
                told.unjudged.append(one)
    told.findings.sort(key=lambda found: -found.severity.rank)
    return told


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what `spindle doctor --json` prints."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "spindle doctor",
        **msgspec.json.schema(Diagnosis),
    }
