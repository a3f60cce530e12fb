"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from .finding import Finding, Unjudged
from .stack import Stack

Workload = Literal["random", "sequential"]
Told = Iterator[Finding | Unjudged]


@dataclass(frozen=True)
class Case:
    """What a rule looks at."""

    stack: Stack
    workload: Workload | None = None
    """What the machine is for, where the user said so."""


@dataclass(frozen=True)
class Rule:
    """A unit of knowledge. docs/doctor/NAME.md has its source, its limits and what it does not see."""

    name: str
    about: str
    check: Callable[[Case], Told]
    looks_at: tuple[str, ...] = ()
    """Values without which it cannot judge a part, as `unjudged.PARTS` names them: 'md.degraded', 'drive.smart'."""
