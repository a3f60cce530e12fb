"""Metadata operations: checks their number, and if the file system or only memory answered."""

from __future__ import annotations

from spindle.base import units
from spindle.result.record import Level, RunRecord, Verdict

FEW_NAMES = 1000
"""Below this the 99th percentile is based on fewer than ten operations."""
SHORT_S = 1.0
"""Below this a single commit of the journal, or a turn of the scheduler, decides."""


def enough(record: RunRecord) -> list[Verdict]:
    """A pass over the names ends by itself: the number of operations counts."""
    figures = record.figures
    numbers = {"measured_s": figures.measured_s, "requests": float(figures.requests)}
    if figures.requests == 0:
        text = f"no operation was completed in {units.seconds(figures.measured_s)}"
        advice = "look at the errors, or give it more time with `seconds=`"
        return [Verdict(check="too-short", level=Level.INVALID, evidence=text, advice=advice, numbers=numbers)]
    reasons = []
    if figures.measured_s < SHORT_S:
        reasons.append(f"{units.seconds(figures.measured_s)} measured, less than {units.seconds(SHORT_S)}")
    if figures.requests < FEW_NAMES:
        reasons.append(f"{figures.requests} operations are too few for a 99th percentile")
    if reasons:
        advice = "use more names: `nrfiles=`, `directories=`"
        return [
            Verdict(check="too-short", level=Level.WARN, evidence="; ".join(reasons), advice=advice, numbers=numbers)
        ]
    text = f"{units.seconds(figures.measured_s)}, {units.count(figures.requests)} operations"
    return [Verdict(check="too-short", level=Level.OK, evidence=text, numbers=numbers)]


def in_memory(record: RunRecord) -> list[Verdict]:
    """Lookups use the kernel's caches unless these were dropped; changes stay in memory unless synced."""
    found = []
    streams = [(stream, stream.names) for stream in record.workload.streams if stream.names is not None]
    cold = record.preparation is not None and record.preparation.dropped_caches
    if any(not names.changes for _, names in streams):
        found.append(
            Verdict(
                check="names-cached",
                level=Level.OK if cold else Level.WARN,
                evidence="the kernel's caches of names and attributes were dropped before: it began cold"
                if cold
                else "names and attributes were looked up in memory, as far as they were there: the caches were not "
                "dropped before",
                advice="" if cold else "`drop_caches=True` (as root) shows the file system and the device under it",
            )
        )
    kept = [
        stream.name
        for stream, names in streams
        if names.changes
        and not (stream.sync.end_fsync or stream.sync.fsync_every == 1 or stream.sync.fsync_fraction == 1)
    ]
    if kept:
        found.append(
            Verdict(
                check="names-in-memory",
                level=Level.WARN,
                evidence=f"changes may still have been in memory at the end: nothing was synced ({', '.join(kept)})",
                advice="count the flush with `end_fsync=True`, or make each change durable with `fsync_every=1`",
            )
        )
    elif any(names.changes for _, names in streams):
        text = "the changes were on the medium when the time was over"
        found.append(Verdict(check="names-in-memory", level=Level.OK, evidence=text))
    return found
