"""Checks that the completion log is complete."""

from __future__ import annotations

from spindle.base import units
from spindle.result.record import Level, RunRecord, Verdict


def whole_log(record: RunRecord) -> list[Verdict]:
    """No verdict without a log. The figures do not depend on it."""
    log = record.figures.log
    if log is None:
        return []
    numbers = {"completions": float(log.completions), "lost": float(log.lost)}
    if log.error is None and not log.lost:
        return [
            Verdict(
                check="log",
                level=Level.OK,
                evidence=f"all {units.count(log.completions)} completions are in the log",
                numbers=numbers,
            )
        ]
    share = log.lost / (log.lost + log.completions) if log.lost else 0.0
    lost = f"{units.count(log.lost)} completions ({units.percent(share)}) are missing from the log"
    if log.error is not None:
        return [
            Verdict(
                check="log",
                level=Level.WARN,
                evidence=f"{lost}: writing it ended early ({log.error})",
                advice="the figures are complete; write the log where there is room",
                numbers=numbers,
            )
        ]
    return [
        Verdict(
            check="log",
            level=Level.WARN,
            evidence=f"{lost}: they came faster than they could be written",
            advice="the figures are complete; write the log to a faster file system (/dev/shm), or limit the rate",
            numbers=numbers,
        )
    ]
