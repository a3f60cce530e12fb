"""seeker's line: seeks per second, mean, best and worst access time."""

from __future__ import annotations

from spindle.base import units
from spindle.report.terminal.randomio import merged
from spindle.report.terminal.style import Style
from spindle.result.record import RunRecord


def page(record: RunRecord, style: Style) -> list[str]:
    """Return one line for all streams and operations together."""
    ops = [op for stream in record.figures.streams for _, op in stream.ops()]
    found = merged([op.latency for op in ops], [op.requests for op in ops])
    if found is None:
        return ["Results: no seek was completed"]
    best, mean, worst, _ = found
    return style.wrap(
        f"Results: {units.count(sum(op.iops for op in ops))} seeks/second, {units.duration(mean)} random access time "
        f"(best {units.duration(best)}, worst {units.duration(worst)})"
    )
