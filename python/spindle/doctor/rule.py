"""The type of a rule, and its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from .finding import Finding, UnjudgedPart
from .stack import Stack

Workload = Literal["random", "sequential"]
Results = Iterator[Finding | UnjudgedPart]


@dataclass(frozen=True)
class RuleInput:
    """The input of a rule."""

    stack: Stack
    workload: Workload | None = None
    """The use of the machine, if the user named it."""


@dataclass(frozen=True)
class Rule:
    """One check. docs/reference/doctor/NAME.md has its source and its limits."""

    name: str
    about: str
    check: Callable[[RuleInput], Results]
    inputs: tuple[str, ...] = ()
    """Values that it needs to judge a part, as `unjudged.PARTS` names them: 'md.degraded', 'drive.smart'."""
