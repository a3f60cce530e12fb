"""Checks that every client got its requests served in time."""

from __future__ import annotations

from spindle.base import units
from spindle.result.record import Level, RunRecord, Verdict
from spindle.result.starved import clients

NAMED = 3
"""Number of starved clients that are named, the worst first."""


def starved(record: RunRecord) -> list[Verdict]:
    """Applies to streams whose workers have a rate and figures of their own."""
    found = [
        client
        for asked, got in zip(record.workload.streams, record.figures.streams, strict=True)
        for client in clients(asked, got)
    ]
    if not found:
        return []
    behind = sorted((client for client in found if client.starved), key=lambda client: client.share)
    numbers = {"clients": float(len(found)), "starved": float(len(behind))}
    if not behind:
        slowest = max(found, key=lambda client: client.worker.p99_ns / client.period_ns)
        return [
            Verdict(
                check="starved",
                level=Level.OK,
                evidence=f"none of {len(found)} clients starved; 99 % of the pieces of the slowest came within "
                f"{units.duration(slowest.worker.p99_ns)} of {units.duration(slowest.period_ns)}",
                numbers=numbers,
            )
        ]
    worst = ", ".join(
        f"{client.stream} {client.worker.worker} ({units.percent(client.share)} of its rate, 99 % within "
        f"{units.duration(client.worker.p99_ns)})"
        for client in behind[:NAMED]
    )
    return [
        Verdict(
            check="starved",
            level=Level.WARN,
            evidence=f"{len(behind)} of {len(found)} clients starved: {worst}{' ...' if len(behind) > NAMED else ''}",
            advice="the target serves fewer such clients: fewer `workers=`, a lower `worker_rate=`, larger requests or "
            "more read-ahead",
            numbers=numbers,
        )
    ]
