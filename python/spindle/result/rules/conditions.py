"""Was the machine in a state that the figures can be compared?"""

from __future__ import annotations

from typing import Any

from spindle.result.record import Level, RunRecord, Verdict

SHOWN = 4
"""Changes that are named; the rest are in the record."""


def settings_changed(record: RunRecord) -> list[Verdict]:
    """A run that straddles two settings belongs to neither."""
    settings = record.settings
    if not settings.before:
        return []
    if settings.changed:
        named = ", ".join(f"{change.name}: {change.before} -> {change.after}" for change in settings.changed[:SHOWN])
        more = len(settings.changed) - SHOWN
        return [
            Verdict(
                check="settings",
                level=Level.INVALID,
                evidence=f"settings changed during the run: {named}{f' and {more} more' if more > 0 else ''}",
                advice="find who changes them (udev, tuned, another test) and run again",
                numbers={"changed": float(len(settings.changed))},
            )
        ]
    return [
        Verdict(
            check="settings",
            level=Level.OK,
            evidence=f"{len(settings.before)} settings, all as before",
            numbers={"changed": 0.0},
        )
    ]


def before_the_run(record: RunRecord) -> list[Verdict]:
    """What the idle check found, as it stated it."""
    return [verdict_of(finding) for finding in record.idle.get("findings", [])]


def verdict_of(finding: dict[str, Any]) -> Verdict:
    """A finding of the idle check as a verdict."""
    return Verdict(
        check=finding["check"],
        level=Level(finding["level"]),
        evidence=finding["text"],
        advice=finding.get("advice", ""),
        numbers={name: float(value) for name, value in finding.get("evidence", {}).items()},
    )
