"""The rows of a record: a pure function of it, so that `spindle store check` can compare them with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import msgspec

from spindle.result.figures import Op, Stream, StreamInterval
from spindle.result.record import DeviceCounters, ImportedRecord, Record, RunRecord, Verdict
from spindle.result.workload import (
    FixedSize,
    LogNormalSize,
    RangeSize,
    WeightedSize,
    Workload,
    WorkloadStream,
)
from spindle.stats.metric import values

from .schema import COUNTERS, IOSTAT, LEGACY

Row = dict[str, Any]


@dataclass(frozen=True)
class RunRows:
    """The rows of one run, still without the key of the run."""

    run: Row
    settings: dict[str, str]
    settings_after: dict[str, str]
    environment: str
    tables: dict[str, list[Row]]


def runs_of(record: Record) -> list[RunRecord]:
    """The single runs of a record, in order."""
    return [record] if isinstance(record, RunRecord) else list(record.runs)


def record_row(record: Record) -> Row:
    """The row of the record itself."""
    if isinstance(record, ImportedRecord):
        return _imported_row(record)
    runs = runs_of(record)
    workloads = list(dict.fromkeys(run.workload.name for run in runs))
    return {
        "id": record.id,
        "kind": kind_of(record),
        "started": record.started,
        "workload": workloads[0] if len(workloads) == 1 else kind_of(record),
        "target": runs[0].target.asked if runs else "",
        "level": record.level.value,
        "version": record.tool.version,
    }


def _imported_row(record: ImportedRecord) -> Row:
    return {
        "id": record.id,
        "kind": kind_of(record),
        "started": record.started or record.reported or "",
        "workload": record.workload or record.source.tool,
        "target": record.target or "",
        "level": record.level.value,
        "version": record.tool.version,
    }


def kind_of(record: Record) -> str:
    """`run`, `knee`, `target`, `curve`, `quick`, `phases` or `imported`."""
    return str(type(record).__struct_config__.tag)


def run_rows(run: RunRecord, ordinal: int) -> RunRows:
    """The rows of one of its runs."""
    figures = run.figures
    return RunRows(
        run={
            "ordinal": ordinal,
            "id": run.id,
            "started": run.started,
            "workload": run.workload.name,
            "target": run.target.asked,
            "target_kind": run.target.kind,
            "target_bytes": run.target.size_bytes,
            "seed": str(run.seed),
            "engine": figures.generator.engine,
            "ended_by": str(type(figures.ended_by).__struct_config__.tag),
            "level": run.level.value,
            "measured_ns": figures.measured_ns,
            "elapsed_ns": figures.elapsed_ns,
            "requests": figures.requests,
            "iops": float(figures.iops),
            "bytes_per_s": float(figures.bytes_per_s),
            "mean_latency_ns": figures.mean_latency_ns(),
            "cpu_user_ns": figures.cpu.user_ns,
            "cpu_system_ns": figures.cpu.system_ns,
            "fetched_bytes": run.fetched_bytes,
        },
        settings=dict(run.settings.before),
        settings_after=dict(run.settings.after),
        environment=canonical(run.environment),
        tables={name: list(rows) for name, rows in _tables(run)},
    )


def metric_rows(record: Record) -> list[Row]:
    """The metrics of a record."""
    return [{"name": name, "value": value} for name, value in values(record).items() if isfinite(value)]


def device_interval_rows(record: Record) -> list[Row]:
    """Devices interval by interval."""
    if isinstance(record, ImportedRecord):
        return [
            {
                "run_ordinal": 0,
                "device": name,
                "number": number,
                "end_s": None,
                **_moment(moment.seconds, moment.values),
            }
            for name, moments in {device.name: device.moments for device in record.devices}.items()
            for number, moment in enumerate(moments)
        ]
    return [
        {
            "run_ordinal": ordinal,
            "device": name,
            "number": number,
            "end_s": sample.at_s,
            **_moment(sample.seconds, values),
        }
        for ordinal, run in enumerate(runs_of(record))
        for number, sample in enumerate(run.activity.samples)
        for name, values in sample.devices.items()
    ]


def _moment(seconds: float | None, values: Mapping[str, float]) -> Row:
    old = {column: values.get(name) for column, name in LEGACY.items()}
    return {"seconds": seconds, **iostat_columns(values), **old}


def verdict_rows(record: Record) -> Iterator[Row]:
    """Verdicts on the whole, then on each run."""
    of_whole = [] if isinstance(record, RunRecord) else [(None, record.verdicts)]
    of_runs = [(ordinal, run.verdicts) for ordinal, run in enumerate(runs_of(record))]
    verdicts = [(ordinal, verdict) for ordinal, found in [*of_whole, *of_runs] for verdict in found]
    for number, (ordinal, verdict) in enumerate(verdicts):
        yield _verdict(number, ordinal, verdict)


def canonical(value: Mapping[str, Any]) -> str:
    """JSON with sorted keys: equal values are equal texts."""
    return msgspec.json.encode(value, order="sorted").decode()


def digest(text: str | bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _verdict(number: int, run_ordinal: int | None, verdict: Verdict) -> Row:
    return {
        "ordinal": number,
        "run_ordinal": run_ordinal,
        "check_name": verdict.check,
        "level": verdict.level.value,
        "evidence": verdict.evidence,
        "advice": verdict.advice,
        "numbers": canonical(verdict.numbers),
    }


def _tables(run: RunRecord) -> Iterator[tuple[str, Iterator[Row]]]:
    streams = run.figures.streams
    yield "streams", (_stream(at, stream, run.workload) for at, stream in enumerate(streams))
    yield "operations", (_operation(*each) for each in _operations(streams))
    yield (
        "percentiles",
        (
            {"stream": at, "operation": name, "percentile": float(percentile), "ns": ns}
            for at, name, op in _operations(streams)
            for percentile, ns in dict(op.latency.percentiles).items()
        ),
    )
    yield "histograms", _histograms(streams)
    yield "intervals", _intervals(run)
    yield "devices", (_device(at, device) for at, device in enumerate(run.devices))


def _operations(streams: list[Stream]) -> Iterator[tuple[int, str, Op]]:
    for at, stream in enumerate(streams):
        yield from ((at, name, op) for name, op in stream.ops())
        if stream.fsync is not None:
            yield at, "fsync", stream.fsync


def _stream(at: int, stream: Stream, workload: Workload) -> Row:
    asked = workload.streams[at] if at < len(workload.streams) else None
    return {
        "stream": at,
        "name": stream.name,
        "measured_ns": stream.measured_ns,
        "total_read_bytes": stream.total_read_bytes,
        "total_write_bytes": stream.total_write_bytes,
        "total_bytes": stream.total_bytes,
        "mean_outstanding": float(stream.mean_outstanding),
        "max_lag_ns": stream.max_lag_ns,
        "errors": sum(error.count for error in stream.errors),
        **_asked(asked),
    }


def _asked(stream: WorkloadStream | None) -> Row:
    if stream is None:
        return dict.fromkeys(("workers", "depth", "pattern", "mean_size_bytes", "write_fraction", "direct"))
    return {
        "workers": stream.workers,
        "depth": stream.depth,
        "pattern": str(type(stream.pattern).__struct_config__.tag),
        "mean_size_bytes": _mean_size(stream),
        "write_fraction": float(stream.mix.write),
        "direct": int(stream.direct),
    }


def _mean_size(stream: WorkloadStream) -> float | None:
    match stream.size:
        case FixedSize(bytes=size):
            return float(size)
        case RangeSize(min=least, max=most):
            return (least + most) / 2
        case WeightedSize(choices=choices):
            weight = sum(each for _, each in choices)
            return sum(size * each for size, each in choices) / weight if weight else None
        case LogNormalSize(mean=mean):
            return float(mean)


def _operation(at: int, name: str, op: Op) -> Row:
    latency = op.latency
    return {
        "stream": at,
        "operation": name,
        "requests": op.requests,
        "bytes": op.bytes,
        "iops": float(op.iops),
        "bytes_per_s": float(op.bytes_per_s),
        "min_ns": latency.min_ns,
        "mean_ns": float(latency.mean_ns),
        "max_ns": latency.max_ns,
        "sdev_ns": float(latency.sdev_ns),
    }


def _histograms(streams: list[Stream]) -> Iterator[Row]:
    for at, name, op in _operations(streams):
        for kind, latency in (("latency", op.latency), ("service", op.service)):
            if latency is not None and latency.histogram:
                yield {"stream": at, "operation": name, "kind": kind, "hdr": latency.histogram}


_SUMS = tuple(name for name in StreamInterval.__struct_fields__ if name != "latency_counts")
"""Columns of an interval; its distribution is in the document."""


def _intervals(run: RunRecord) -> Iterator[Row]:
    for number, interval in enumerate(run.figures.series):
        for at, stream in enumerate(interval.streams):
            yield {
                "interval": number,
                "stream": at,
                "start_ns": interval.start_ns,
                "length_ns": interval.length_ns,
                **{name: getattr(stream, name) for name in _SUMS},
            }


def _device(at: int, device: DeviceCounters) -> Row:
    return {
        "device": at,
        "name": device.name,
        "role": device.role,
        "seconds": float(device.seconds),
        **{name: device.delta.get(name) for name in COUNTERS},
        **iostat_columns(device.iostat),
    }


def iostat_columns(known: Mapping[str, float | None]) -> Row:
    """iostat's columns with the names of the tables; rates in kB/s are used if there are none in MB/s."""
    columns: Row = {column: known.get(name) for column, name in IOSTAT.items()}
    if columns["aqu_sz"] is None:
        columns["aqu_sz"] = known.get("avgqu-sz")
    for letter in "rwd":
        rate = known.get(f"{letter}kB/s")
        if columns[f"{letter}mb_s"] is None and rate is not None:
            columns[f"{letter}mb_s"] = rate / 1024
    return columns
