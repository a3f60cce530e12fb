"""Heading of a run: workload and target."""

from __future__ import annotations

from spindle.base import units
from spindle.report.terminal.style import Style
from spindle.result.record import RunRecord
from spindle.result.steady import steady_part
from spindle.result.workload import WorkloadStream


def page(record: RunRecord, style: Style) -> list[str]:
    """Return workload, target, load and generator."""
    generator = record.figures.generator
    load = "; ".join(_stream_words(stream, len(record.workload.streams) > 1) for stream in record.workload.streams)
    time_stamps = "" if generator.timestamps == "request" else f", time stamps by {generator.timestamps}"
    return [
        *style.headline(f"{record.workload.name} on {record.target.words}"),
        *style.wrap(
            f"{load}; {units.seconds(record.figures.measured_s)} measured; {generator.engine}{time_stamps}; "
            f"seed {record.seed}; {record.id}"
        ),
        *_steady_words(record, style),
    ]


def _steady_words(record: RunRecord, style: Style) -> list[str]:
    """Return the figures of the steady part, if the run went on until it was steady. The tables show the whole run."""
    part = steady_part(record.figures)
    if part is None:
        return []
    latency = "" if part.mean_latency_ns is None else f", mean {units.duration(part.mean_latency_ns)}"
    return style.wrap(
        f"steady from {units.seconds(part.from_s)} to {units.seconds(part.to_s)}: {units.count(part.iops)} IOPS, "
        f"{units.rate(part.bytes_per_s)}{latency}; the tables are of the whole run, before it was steady included"
    )


def _stream_words(stream: WorkloadStream, named: bool) -> str:
    name = f"{stream.name}: " if named else ""
    if stream.names is not None:
        threads = f"{units.count(stream.outstanding)} thread{'s' if stream.outstanding != 1 else ''}"
        return f"{name}{stream.names.operation} by {threads}"
    io = "direct" if stream.direct else "buffered"
    rate = getattr(stream.arrival, "rate_iops", None)
    if rate is not None:
        return f"{name}{units.count(rate)} requests a second, {io}"
    workers = f"{stream.workers} worker{'s' if stream.workers != 1 else ''}"
    return f"{name}{workers} x depth {stream.depth}, {io}"
