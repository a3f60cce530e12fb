"""fio's normal output (fio 3, `stat.c`): a job per stream with latencies, percentiles and rates; then the group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spindle.report import histogram
from spindle.report.charts.seconds import coarser
from spindle.result.figures import Latency, Op
from spindle.result.record import RunRecord
from spindle.result.workload import (
    FixedSize,
    LogNormalSize,
    RangeSize,
    Sequential,
    Size,
    WeightedSize,
    WorkloadStream,
)

PERCENTILES = (1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
"""fio's defaults."""
_UNITS = (("nsec", 1), ("usec", 10**3), ("msec", 10**6))


def page(runs: Sequence[RunRecord]) -> list[str]:
    """Return one run after the other."""
    return [line for run in runs for line in _run(run)]


def _run(run: RunRecord) -> Iterator[str]:
    engine = run.figures.generator.engine
    for stream in run.workload.streams:
        low, high = _sizes(stream.size)
        size = f"{_short(low)}-{_short(high)}"
        yield (
            f"{stream.name}: (g=0): rw={_rw(stream)}, bs=(R) {size}, (W) {size}, (T) {size}, ioengine={engine}, "
            f"iodepth={stream.depth}"
        )
    yield ""
    for at, stream in enumerate(run.workload.streams[: len(run.figures.streams)]):
        yield from _job(run, at, stream)
    yield ""
    yield "Run status group 0 (all jobs):"
    for name in ("read", "write", "trim"):
        found = [op for stream in run.figures.streams for each, op in stream.ops() if each == name]
        if found:
            yield _group(name.upper(), found, run.figures.measured_ns)
    if run.devices:
        yield ""
        yield "Disk stats (read/write):"
        for device in run.devices:
            delta, util = device.delta, device.iostat.get("%util", 0.0)
            yield (
                f"  {device.name}: ios={delta.get('reads', 0):.0f}/{delta.get('writes', 0):.0f}, "
                f"merge={delta.get('read_merges', 0):.0f}/{delta.get('write_merges', 0):.0f}, "
                f"ticks={delta.get('read_ms', 0):.0f}/{delta.get('write_ms', 0):.0f}, "
                f"in_queue={delta.get('weighted_ms', 0):.0f}, util={util:.2f}%"
            )


def _job(run: RunRecord, at: int, spec: WorkloadStream) -> Iterator[str]:
    stream = run.figures.streams[at]
    errors = stream.errors[0].errno if stream.errors else 0
    yield f"{spec.name}: (groupid=0, jobs={spec.workers}): err={errors:2d}: {run.started}"
    for name, op in stream.ops():
        yield (
            f"  {name}: IOPS={_decimal(op.iops)}, BW={_binary(op.bytes_per_s)}/s ({_metric(op.bytes_per_s)}/s)"
            f"({_binary(op.bytes)}/{stream.measured_ns / 1e6:.0f}msec)"
        )
        yield from _latency(op.latency)
        yield from _rates(run, at, name)
    if stream.fsync is not None:
        yield "  fsync/fdatasync/sync_file_range:"
        yield f"    {_spread(stream.fsync.latency, 'sync')}"
    cpu, elapsed = run.figures.cpu, max(run.figures.elapsed_ns, 1)
    switches = cpu.voluntary_switches + cpu.involuntary_switches
    yield (
        f"  cpu          : usr={100 * cpu.user_ns / elapsed:.2f}%, sys={100 * cpu.system_ns / elapsed:.2f}%, "
        f"ctx={switches}"
    )
    counts = {name: op.requests for name, op in stream.ops()}
    total = ",".join(str(counts.get(name, 0)) for name in ("read", "write", "trim"))
    yield f"     issued rwts: total={total},{stream.fsync.requests if stream.fsync else 0}"


def _latency(latency: Latency) -> Iterator[str]:
    yield f"     {_spread(latency)}"
    found = histogram.percentiles([latency.histogram], PERCENTILES)
    if not found:
        return
    unit, factor = _unit(min(found), max(found))
    yield f"     lat percentiles ({unit}):"
    width = max(5, len(f"{max(found) / factor:.0f}"))
    cells = [f"{percent:5.2f}th=[{ns / factor:{width}.0f}]" for percent, ns in zip(PERCENTILES, found, strict=True)]
    for start in range(0, len(cells), 4):
        yield f"     | {', '.join(cells[start : start + 4])}" + ("," if start + 4 < len(cells) else "")


def _spread(latency: Latency, name: str = "lat") -> str:
    unit, factor = _unit(latency.min_ns, latency.max_ns, latency.sdev_ns)
    return (
        f"{name} ({unit}): min={_decimal(latency.min_ns / factor)}, max={_decimal(latency.max_ns / factor)}, "
        f"avg={latency.mean_ns / factor:.2f}, stdev={latency.sdev_ns / factor:.2f}"
    )


def _unit(low: float, high: float, deviation: float = math.inf) -> tuple[str, int]:
    """Return the largest unit that keeps all digits: fio's `nsec_to_usec` and `nsec_to_msec`."""
    chosen = _UNITS[0]
    for unit in _UNITS[1:]:
        if low > 2 * unit[1] and high >= 100 * unit[1] and deviation > unit[1]:
            chosen = unit
    return chosen


def _rates(run: RunRecord, at: int, name: str) -> Iterator[str]:
    """Yield rates over the intervals of the series."""
    if name not in ("read", "write"):
        return
    parts = coarser(run.figures.series, 10**9)
    intervals = [interval for part in parts for interval in part if interval.length_ns and at < len(interval.streams)]
    if not intervals:
        return
    moved = [getattr(each.streams[at], f"{name}_bytes") / 1024 / (each.length_ns / 1e9) for each in intervals]
    done = [getattr(each.streams[at], f"{name}s") / (each.length_ns / 1e9) for each in intervals]
    for head, values in (("bw (  KiB/s)", moved), ("iops        ", done)):
        mean = sum(values) / len(values)
        deviation = (sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5
        yield (
            f"   {head}: min={min(values):5.0f}, max={max(values):5.0f}, avg={mean:.2f}, stdev={deviation:.2f}, "
            f"samples={len(values)}"
        )


def _group(name: str, ops: Sequence[Op], measured_ns: int) -> str:
    rates, moved = [op.bytes_per_s for op in ops], sum(op.bytes for op in ops)
    total, low, high = sum(rates), min(rates), max(rates)
    span = f"{measured_ns / 1e6:.0f}-{measured_ns / 1e6:.0f}msec"
    return (
        f"{name:>7}: bw={_binary(total)}/s ({_metric(total)}/s), {_binary(low)}/s-{_binary(high)}/s "
        f"({_metric(low)}/s-{_metric(high)}/s), io={_binary(moved)} ({_metric(moved)}), run={span}"
    )


def _rw(stream: WorkloadStream) -> str:
    sequential = isinstance(stream.pattern, Sequential)
    if stream.mix.trim:
        return "trim" if sequential else "randtrim"
    if 0 < stream.mix.of_calls < 1:
        return "rw" if sequential else "randrw"
    name = "write" if stream.mix.of_calls else "read"
    return name if sequential else f"rand{name}"


def _sizes(size: Size) -> tuple[int, int]:
    match size:
        case FixedSize(bytes=each):
            return each, each
        case RangeSize(min=low, max=high) | LogNormalSize(min=low, max=high):
            return low, high
        case WeightedSize(choices=choices):
            return min(each for each, _ in choices), max(each for each, _ in choices)


def _short(size: int) -> str:
    return f"{size}B" if size < 10_000 else _binary(size)


def _scaled(value: float, base: int, units: Sequence[str], digits: int = 3) -> str:
    at = 0
    while (value >= base * 10 and at < len(units) - 1) or (value >= base and at == 0 and len(units) > 1):
        value /= base
        at += 1
    decimals = max(0, digits - len(f"{value:.0f}"))
    return f"{value:.{decimals}f}{units[at]}"


def _decimal(value: float) -> str:
    """`512`, `72.9k`."""
    return f"{value:.0f}" if value < 10_000 else _scaled(value, 1000, ("", "k", "M", "G"))


def _binary(value: float) -> str:
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def _metric(value: float) -> str:
    return _scaled(value, 1000, ("B", "kB", "MB", "GB", "TB"))
