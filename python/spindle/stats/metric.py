"""Values of the metrics of a record, by the names of `stats.names`.

Percentiles over several streams come from their merged histograms, never from averaged percentiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from spindle import _core
from spindle.result.figures import Figures, Latency, Op, Stream
from spindle.result.figures_properties import DATA, OPERATIONS
from spindle.result.imported import PartialLatency, PartialOp, PartialStream, together
from spindle.result.record import (
    CurveRecord,
    DeviceCounters,
    ImportedRecord,
    KneeRecord,
    PhasesRecord,
    QuickRecord,
    Record,
    RunRecord,
    TargetRecord,
)
from spindle.result.steady import steady_part
from spindle.result.workload import Sequential, Workload, WorkloadStream
from spindle.stats.cases import cases
from spindle.stats.names import PERCENTILES, Direction, metric

COMMITS = ("commits_per_s", "commit.p99_ns")
"""The metrics that a load with a log is compared by."""
MOST_MAIN = 8
"""Most metrics that are chosen by default."""
MOVING = (*DATA, "create")
"""Operations that move bytes."""


def value(record: Record, name: str) -> float | None:
    """One metric of a record; None: the record does not have it."""
    return values(record).get(name)


def values(record: Record) -> dict[str, float]:
    """Every metric of a record. Unmeasured ones are missing."""
    match record:
        case RunRecord():
            return _of_run(record)
        case KneeRecord():
            return _of_knee(record)
        case TargetRecord():
            return _of_target(record)
        case CurveRecord():
            return _of_curve(record)
        case QuickRecord():
            return _of_quick(record)
        case PhasesRecord():
            return _of_phases(record)
        case ImportedRecord():
            return _of_imported(record)


def main_metrics(names: Sequence[str], found: dict[str, float] | None = None) -> list[str]:
    """The most informative metrics, for comparisons that name none: throughput, and the tail of reads and of writes;
    of a load with a log the commits, and their tail.

    Throughput is bytes a second if requests are large (64 KiB in the mean, from `found`), else requests a second.
    """
    there = set(names)
    chosen: list[str] = []
    large = found is not None and found.get("iops", 0) > 0 and found.get("bytes_per_s", 0) / found["iops"] >= 65536
    for first, second in [("bytes_per_s", "iops")] if large else [("iops", "bytes_per_s")]:
        chosen += [first] if first in there else [second] if second in there else []
    if there.issuperset(COMMITS):
        beside = chosen if any(name.endswith("/iops") for name in there) else []
        chosen = [*COMMITS, *beside, *(["read.p99_ns"] if "read.p99_ns" in there else [])]
    else:
        chosen += [name for name in ("read.p99_ns", "write.p99_ns") if name in there]
    if not chosen:
        chosen = [
            name for name in ("knee.iops", "target.iops", "curve.iops", "device.r/s", "device.w/s") if name in there
        ]
    if not chosen:  # the steps of a quick look
        chosen = [f"{step}.{'bytes_per_s' if large else 'iops'}" for step, large in _STEPS if f"{step}.iops" in there]
    if not chosen:
        chosen = _of_each_phase(names, found or {})
    return chosen or sorted(there)[:1]


def _of_each_phase(names: Sequence[str], found: Mapping[str, float]) -> list[str]:
    """Phases never ran together: each by itself, the rates of all before the tails of any."""
    there = set(names)
    phases = list(dict.fromkeys(name.rpartition("/")[0] for name in names if re.search(r"/(bytes_per_s|iops)$", name)))
    top = [phase for phase in phases if phase and phase.rpartition("/")[0] not in phases]
    rates = []
    for phase in top:
        if f"{phase}/commits_per_s" in there:
            rates.append(f"{phase}/commits_per_s")
            if not any(re.fullmatch(f"{re.escape(phase)}/[^/]+/iops", name) for name in there):
                continue
        iops, moved = f"{phase}/iops", f"{phase}/bytes_per_s"
        small = 0 < found.get(moved, 0) < 65536 * found.get(iops, 0)
        rates.append(iops if moved not in there or (small and iops in there) else moved)
    tails = [
        name
        for phase in top
        for kind in (("read", "commit") if f"{phase}/commit.p99_ns" in there else ("read", "write"))
        if (name := f"{phase}/{kind}.p99_ns") in there
    ]
    return [*rates, *tails][:MOST_MAIN]


def _of_run(record: RunRecord) -> dict[str, float]:
    return of_figures(record.workload, record.figures) | _of_device(record.counters)


def of_figures(workload: Workload, figures: Figures) -> dict[str, float]:
    """Every metric of the figures of one run of a workload, without those of devices."""
    found = dict(_operations("", figures.streams))
    requests = figures.requests
    if requests:
        found |= {"iops": figures.iops}
        found |= {"bytes_per_s": figures.bytes_per_s} if _moves(figures.streams) else {}
        found |= _of_cpu(figures)
        found |= dict(
            _latency("", [op.latency for stream in figures.streams for _, op in stream.ops()], _counts(figures))
        )
    found |= dict(_commits(workload, figures))
    if (part := steady_part(figures)) is not None:
        found |= {"steady.iops": part.iops, "steady.bytes_per_s": part.bytes_per_s}
        found |= {} if part.mean_latency_ns is None else {"steady.mean_ns": part.mean_latency_ns}
    if len(figures.streams) > 1:
        for stream in figures.streams:
            if stream.requests:
                found |= {f"{stream.name}/iops": stream.iops}
                found |= {f"{stream.name}/bytes_per_s": stream.bytes_per_s} if _moves([stream]) else {}
            found |= dict(_operations(f"{stream.name}/", [stream]))
    return found


def _of_cpu(figures: Figures) -> dict[str, float]:
    """CPU use of the load; a modelled machine measures none."""
    cpu = figures.cpu
    used_ns = cpu.user_ns + cpu.system_ns
    if not used_ns or not figures.measured_ns:
        return {}
    return {
        "cpu_percent": 100 * used_ns / figures.measured_ns,
        "cpu_ns_per_request": used_ns / figures.requests,
        "switches_per_request": (cpu.voluntary_switches + cpu.involuntary_switches) / figures.requests,
    }


def _commits(workload: Workload, figures: Figures) -> Iterator[tuple[str, float]]:
    """Commits of the slowest log, if the load has one. A commit waits for its write if that is durable when it
    returns, else for the sync after it.
    """
    pairs = zip(workload.streams, figures.streams, strict=False)  # a record may be edited by hand
    logs = [
        (got.write, got.write if asked.sync.dsync or asked.sync.osync else got.fsync)
        for asked, got in pairs
        if _is_log(asked) and got.write is not None and got.write.requests
    ]
    waits = [wait for _, wait in logs if wait is not None and wait.requests]
    if not logs or len(waits) < len(logs):
        return
    yield "commits_per_s", min(write.iops for write, _ in logs)
    each = [dict(_latency("commit.", [wait.latency], [wait.requests])) for wait in waits]
    yield from ((name, max(one[name] for one in each)) for name in each[0] if all(name in one for one in each))


def _is_log(stream: WorkloadStream) -> bool:
    """True for a stream of sequential writes that are durable, each or some together."""
    sync = stream.sync
    durable = sync.dsync or sync.osync or sync.fsync_every > 0 or sync.fdatasync_every > 0
    return isinstance(stream.pattern, Sequential) and stream.mix.write == 1 and stream.names is None and durable


def _moves(streams: Sequence[Stream]) -> bool:
    """True if it moves data: metadata operations and empty files move none."""
    return any(op.bytes for stream in streams for _, op in stream.ops())


def _counts(figures: Figures) -> list[int]:
    return [op.requests for stream in figures.streams for _, op in stream.ops()]


def _operations(prefix: str, streams: Sequence[Stream]) -> Iterator[tuple[str, float]]:
    for operation in OPERATIONS:
        ops: list[Op] = [op for stream in streams if (op := getattr(stream, operation)) is not None and op.requests]
        if not ops:
            continue
        yield f"{prefix}{operation}.iops", sum(op.iops for op in ops)
        if operation in MOVING and any(op.bytes for op in ops):
            yield f"{prefix}{operation}.bytes_per_s", sum(op.bytes_per_s for op in ops)
        counts = [op.requests for op in ops]
        yield from _latency(f"{prefix}{operation}.", [op.latency for op in ops], counts)
        service = [op.service for op in ops if op.service is not None]
        if len(service) == len(ops):
            yield from _latency(f"{prefix}{operation}.service.", service, counts)


def _latency(prefix: str, parts: Sequence[Latency], counts: Sequence[int]) -> Iterator[tuple[str, float]]:
    """Latency metrics of one distribution, or of several merged."""
    pairs = [(part, count) for part, count in zip(parts, counts, strict=True) if count]
    total = sum(count for _, count in pairs)
    if not total:
        return
    mean = sum(part.mean_ns * count for part, count in pairs) / total
    yield f"{prefix}mean_ns", mean
    yield f"{prefix}max_ns", float(max(part.max_ns for part, _ in pairs))
    if len(pairs) == 1:
        only = pairs[0][0]
        yield f"{prefix}sdev_ns", only.sdev_ns
        yield from ((f"{prefix}p{p:g}_ns", float(ns)) for p in PERCENTILES if (ns := only.percentile(p)) is not None)
        return
    squares = sum(count * (part.sdev_ns**2 + (part.mean_ns - mean) ** 2) for part, count in pairs)
    yield f"{prefix}sdev_ns", (squares / total) ** 0.5
    try:
        together = _core.histogram_percentiles([part.histogram for part, _ in pairs], PERCENTILES)
    except ValueError:  # written by hand or damaged: percentiles of the parts cannot be merged
        return
    yield from ((f"{prefix}p{p:g}_ns", float(ns)) for p, ns in zip(PERCENTILES, together, strict=False))


def _of_device(counters: DeviceCounters | None) -> dict[str, float]:
    return {} if counters is None else {f"device.{name}": float(value) for name, value in counters.iostat.items()}


def _of_knee(record: KneeRecord) -> dict[str, float]:
    points = record.sweep.points
    if not points:
        return {}
    found = {"knee.iops": max(p.iops for p in points), "knee.bytes_per_s": max(p.bytes_per_s for p in points)}
    return found if record.sweep.knee is None else found | {"knee.outstanding": float(record.sweep.knee)}


def _of_target(record: TargetRecord) -> dict[str, float]:
    """The highest throughput within the bounds."""
    point = record.search.at(record.search.held)
    if point is None:
        return {}
    found = {"target.iops": point.iops, "target.bytes_per_s": point.bytes_per_s}
    return found | ({"target.outstanding": point.value} if record.search.variable == "depth" else {})


def _of_curve(record: CurveRecord) -> dict[str, float]:
    """The highest rate that was served as it came, with its latencies."""
    point = next((each for each in record.curve.points if each.offered_iops == record.curve.sustained_iops), None)
    if point is None:
        return {}
    found = {"curve.iops": point.iops, "curve.bytes_per_s": point.bytes_per_s}
    known = {"curve.p50_ns": point.p50_latency_ns, "curve.p99_ns": point.p99_latency_ns}
    return found | {name: float(ns) for name, ns in known.items() if ns is not None}


def _of_quick(record: QuickRecord) -> dict[str, float]:
    """Each step's figures; the mean if it has several runs, the highest if it rises to a knee."""
    runs = {run.id: run for run in record.runs}
    found: dict[str, float] = {}
    for step in record.steps:
        parts = [_of_run(runs[each]) for each in step.runs if each in runs]
        take = max if step.name.endswith("-rising") else fmean
        for name in sorted(set.intersection(*(set(part) for part in parts))) if parts else []:
            if take is fmean or metric(name).better is Direction.HIGHER:
                found[f"{step.name}.{name}"] = take([part[name] for part in parts])
    return found


def _of_phases(record: PhasesRecord) -> dict[str, float]:
    """Each phase's figures by its name."""
    found: dict[str, float] = {}
    for phase, run in zip(record.phases, record.runs, strict=False):
        of_run = _of_run(run)
        of_run |= {"cpu_percent": phase.cpu_percent} if phase.cpu_percent else {}
        found |= {f"{phase.label}/{name}": value for name, value in of_run.items()}
    return found


def _of_imported(record: ImportedRecord) -> dict[str, float]:
    """The file's figures; a total only for streams that ran together and all have the figure."""
    streams = record.streams
    found: dict[str, float] = {}
    if together(streams):
        data = [op for stream in streams for _, op in stream.data_ops()]
        found |= dict(_partial_rates("", data))
        found |= dict(_partial_latency("", data))
        found |= dict(_partial_operations("", streams))
    if len(streams) > 1:
        for case, own in cases(record).items():
            data = [op for stream in own for _, op in stream.data_ops()]
            found |= dict(_partial_rates(f"{case}/", data))
            found |= dict(_partial_latency(f"{case}/", data))
            found |= dict(_partial_operations(f"{case}/", own))
    for device in record.devices:
        prefix = f"{device.name}/" if len(record.devices) > 1 else ""
        found |= {f"{prefix}device.{name}": value for name, value in device.mean.items()}
    return found


def _partial_operations(prefix: str, streams: Sequence[PartialStream]) -> Iterator[tuple[str, float]]:
    for name in dict.fromkeys(name for stream in streams for name in stream.operations):
        ops = [op for stream in streams if (op := stream.operations.get(name)) is not None]
        yield from _partial_rates(f"{prefix}{name}.", ops)
        yield from _partial_latency(f"{prefix}{name}.", ops)


def _partial_rates(prefix: str, ops: Sequence[PartialOp]) -> Iterator[tuple[str, float]]:
    iops = [op.iops for op in ops if op.iops is not None]
    rates = [op.bytes_per_s for op in ops if op.bytes_per_s is not None]
    if ops and len(iops) == len(ops):
        yield f"{prefix}iops", sum(iops)
    if ops and len(rates) == len(ops):
        yield f"{prefix}bytes_per_s", sum(rates)


def _partial_latency(prefix: str, ops: Sequence[PartialOp]) -> Iterator[tuple[str, float]]:
    """One distribution unchanged; several as far as their counts, moments and histograms allow."""
    parts = [(op.timed, op.requests) for op in ops if op.requests != 0]
    known = [part for part, _ in parts if part is not None]
    if not parts or len(known) < len(parts):
        return
    if len(known) == 1:
        only = known[0]
        moments = {"mean_ns": only.mean_ns, "max_ns": only.max_ns, "sdev_ns": only.sdev_ns}
        percentiles = {f"p{p:g}_ns": only.percentile(p) for p in PERCENTILES}
        yield from ((f"{prefix}{name}", float(ns)) for name, ns in (moments | percentiles).items() if ns is not None)
        return
    whole = [(latency, count) for part, count in parts if (latency := _complete(part)) is not None and count]
    if len(whole) == len(parts):
        yield from _latency(prefix, [latency for latency, _ in whole], [count for _, count in whole])


def _complete(part: PartialLatency | None) -> Latency | None:
    """A distribution with all moments. Without a histogram it has no percentiles."""
    if part is None or part.mean_ns is None or part.sdev_ns is None or part.min_ns is None or part.max_ns is None:
        return None
    return Latency(
        min_ns=part.min_ns,
        mean_ns=part.mean_ns,
        max_ns=part.max_ns,
        sdev_ns=part.sdev_ns,
        percentiles=part.percentiles,
        histogram=part.histogram or "",
    )


_STEPS = (("sequential-read", True), ("random-read", False), ("random-read-rising", False), ("mix", False))
"""The most informative steps of a quick look, and true if bytes are the better rate."""
