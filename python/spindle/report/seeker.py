"""seeker's line: how many seeks a second, mean access time, best and worst."""

from __future__ import annotations

from spindle.report.randomio import merged
from spindle.report.style import Style
from spindle.result import units
from spindle.result.record import RunRecord


def page(record: RunRecord, style: Style) -> list[str]:
    """One line for all streams and operations together."""
    ops = [op for stream in record.figures.streams for _, op in stream.ops()]
    found = merged([op.latency for op in ops], [op.requests for op in ops])
    if found is None:
        return ["Results: no seek was completed"]
    best, mean, worst, _ = found
    return style.wrap(
        f"Results: {units.count(sum(op.iops for op in ops))} seeks/second, {units.duration(mean)} random access time "
        f"(best {units.duration(best)}, worst {units.duration(worst)})"
    )
