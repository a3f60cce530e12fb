"""The finding of one check."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ConditionFinding:
    """One check: its level ('ok', 'warn', 'invalid'), a line for people, and the evidence in numbers."""

    check: str
    level: str
    text: str
    evidence: dict[str, float] = field(default_factory=dict)
