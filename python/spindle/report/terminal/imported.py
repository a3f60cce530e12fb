"""Imported results: a row for each stream and operation, a row for each device; unknown figures are `-`."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.base import units
from spindle.base.numbers import plain
from spindle.report.terminal import verdicts
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.imported import DeviceSeries, PartialLatency, PartialOp, together
from spindle.result.record import ImportedRecord, Level

UNKNOWN = "-"
SHOWN = (50.0, 90.0, 99.0, 99.9)
USUAL = ("r/s", "rMB/s", "r_await", "w/s", "wMB/s", "w_await", "tps", "await", "areq-sz", "aqu-sz", "%util")
"""Columns of devices, if the file has them."""


def page(record: ImportedRecord, style: Style) -> list[str]:
    """Return the page of a record."""
    lines = [*style.headline(title(record)), *style.wrap("; ".join(_facts(record)))]
    lines += verdicts.lines(record.verdicts, style, [Level.INVALID])
    for columns, rows in tables(record):
        lines += ["", *table(columns, rows, style)]
    if not together(record.streams) and len(record.streams) > 1:
        lines += style.wrap("These did not run at the same time, or that is unknown: do not add their rates.")
    return [*lines, "", *verdicts.warnings(record.verdicts, style)]


def title(record: ImportedRecord) -> str:
    """`fio's randread on /dev/sdb (fio-3.33)`."""
    source = record.source
    what = f"{source.tool}'s {record.workload}" if record.workload and record.workload != source.tool else source.tool
    version = f" ({source.version})" if source.version else ""
    return f"{what}{f' on {record.target}' if record.target else ''}{version}"


def _facts(record: ImportedRecord) -> Iterator[str]:
    yield f"from {record.source.file}"
    if record.host:
        yield f"host {record.host}"
    yield f"started {record.started}" if record.started else "start unknown"
    lengths = {stream.seconds for stream in record.streams if stream.seconds is not None}
    if len(lengths) == 1:
        yield f"{units.seconds(lengths.pop())} measured"
    yield record.id


def tables(record: ImportedRecord) -> Iterator[tuple[list[Column], list[list[str]]]]:
    """Yield the tables of streams and of devices, if there are any."""
    ops = [(stream.name, name, op) for stream in record.streams for name, op in stream.operations.items()]
    if ops:
        yield _streams(ops)
    if record.devices:
        yield _devices(record.devices)


def _streams(ops: list[tuple[str, str, PartialOp]]) -> tuple[list[Column], list[list[str]]]:
    means = [op.timed.mean_ns for *_, op in ops if op.timed is not None and op.timed.mean_ns is not None]
    unit, factor = ("us", 1e3) if means and min(means) < 1e6 else ("ms", 1e6)
    columns = [
        Column("stream", words=True),
        Column("op", words=True),
        Column("ops/s"),
        Column("MB/s"),
        Column(f"mean {unit}"),
        *(Column(f"p{percent:g}") for percent in SHOWN),
        Column(f"max {unit}"),
    ]
    rows = [
        [stream, name, _number(op.iops), _number(op.bytes_per_s, 1e6), *_latency(op.timed, factor)]
        for stream, name, op in ops
    ]
    kept = [at for at in range(len(columns)) if at < 2 or any(row[at] != UNKNOWN for row in rows)]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]


def _latency(latency: PartialLatency | None, factor: float) -> list[str]:
    if latency is None:
        return [UNKNOWN] * (2 + len(SHOWN))
    values = [latency.mean_ns, *(latency.percentile(percent) for percent in SHOWN), latency.max_ns]
    return [_number(value, factor) for value in values]


def _devices(devices: list[DeviceSeries]) -> tuple[list[Column], list[list[str]]]:
    shown = [name for name in USUAL if any(name in device.mean for device in devices)]
    columns = [Column("device", words=True), Column("intervals"), *(Column(name) for name in shown)]
    rows = [
        [device.name, str(len(device.moments)), *(_number(device.mean.get(name)) for name in shown)]
        for device in devices
    ]
    return columns, rows


def _number(value: float | None, factor: float = 1.0) -> str:
    return UNKNOWN if value is None else plain(value / factor)
