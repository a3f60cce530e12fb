"""Figures of the steady part of a run: they count if the run was to go on until steady."""

from __future__ import annotations

from dataclasses import dataclass

from spindle.result.figures import Figures


@dataclass(frozen=True)
class SteadyPart:
    """All streams and operations, fsyncs apart, in the whole intervals of the steady window."""

    from_s: float
    """Seconds after the end of the ramp."""
    to_s: float
    iops: float
    bytes_per_s: float
    mean_latency_ns: float | None


def steady_part(figures: Figures) -> SteadyPart | None:
    """Return None if the run was not to be steady, was not steady, or its intervals are too long."""
    found = figures.steady
    if found is None:
        return None
    inside = [
        interval
        for interval in figures.series
        if interval.start_ns >= found.from_ns and interval.start_ns + interval.length_ns <= found.at_ns
    ]
    seconds = sum(interval.length_ns for interval in inside) / 1e9
    streams = [stream for interval in inside for stream in interval.streams]
    if seconds <= 0:
        return None
    requests = sum(stream.reads + stream.writes for stream in streams)
    moved = sum(stream.read_bytes + stream.write_bytes for stream in streams)
    latency = sum(stream.read_latency_ns + stream.write_latency_ns for stream in streams)
    return SteadyPart(
        from_s=inside[0].start_ns / 1e9,
        to_s=(inside[-1].start_ns + inside[-1].length_ns) / 1e9,
        iops=requests / seconds,
        bytes_per_s=moved / seconds,
        mean_latency_ns=latency / requests if requests else None,
    )
