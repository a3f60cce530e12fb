"""Measured figures beside predicted ones, and the likely causes of differences, as rules.

A rule reads a finished record and its prediction and returns a cause with its evidence, or nothing. It applies to
figures outside their bands only. It names a likely cause; it proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from spindle.base import units
from spindle.prediction.model import Band, OperationFigures, Prediction
from spindle.result.record import DeviceCounters, Level, RunRecord

TOLERANCE = 0.05
"""A figure this far outside its band is still taken for inside."""
CACHED = 0.05
"""Share of the bytes read that no device moved, from which a cache is named."""
SLOW_MEMBER = 1.5
"""A device is slow if its requests take this many times those of the others in the middle."""
SPLIT = 1.3
"""Direct requests are split if the device gets this many times the predicted number for each of the load."""
SHORT_READS = 0.7
"""Reads of the device are short below this share of the predicted size."""


class Side(StrEnum):
    """Where a measured figure is."""

    BELOW = "below"
    WITHIN = "within"
    ABOVE = "above"


class OperationComparison(Struct, frozen=True, kw_only=True):
    """One operation, measured and predicted."""

    label: str
    operation: str
    iops: float
    predicted: Band
    """IOPS."""
    mean_ns: float
    predicted_mean_ns: Band
    side: Side
    """Place of the IOPS."""


class Hint(Struct, frozen=True, kw_only=True):
    """A likely cause of a difference."""

    rule: str
    cause: str
    evidence: str


class PredictedRun(Struct, frozen=True, kw_only=True):
    """A run beside its prediction."""

    operations: list[OperationComparison]
    hints: list[Hint]


@dataclass(frozen=True)
class Case:
    """The input of a rule."""

    record: RunRecord
    prediction: Prediction
    below: bool
    """Some figure is below its band."""
    above: bool


def beside(record: RunRecord, prediction: Prediction) -> PredictedRun:
    """Compare a run with its prediction."""
    found = list(_compared(record, prediction))
    case = Case(
        record,
        prediction,
        below=any(of.side is Side.BELOW for of in found),
        above=any(of.side is Side.ABOVE for of in found),
    )
    outside = case.below or case.above
    return PredictedRun(
        operations=found, hints=[hint for rule in RULES if outside and (hint := rule(case)) is not None]
    )


def _compared(record: RunRecord, prediction: Prediction) -> Iterator[OperationComparison]:
    predicted = {(of.stream, of.operation): of for of in prediction.operations}
    for stream in record.figures.streams:
        for name, op in stream.ops():
            of = predicted.get((stream.name, name))
            if of is None or not op.requests:
                continue
            yield OperationComparison(
                label=of.label,
                operation=name,
                iops=op.iops,
                predicted=of.iops,
                mean_ns=op.latency.mean_ns,
                predicted_mean_ns=of.mean_ns,
                side=_side(op.iops, of),
            )


def _side(iops: float, of: OperationFigures) -> Side:
    if iops > of.iops.most * (1 + TOLERANCE):
        return Side.ABOVE
    return Side.BELOW if iops < of.iops.least * (1 - TOLERANCE) else Side.WITHIN


def _page_cache(case: Case) -> Hint | None:
    """Reads that no device made came from the page cache."""
    asked, counters = case.record.figures.total_read_bytes, case.record.counters
    moved = counters.bytes_of("read") if counters is not None else None
    if not case.above or not asked or moved is None or moved > (1 - CACHED) * asked:
        return None
    return Hint(
        rule="page-cache",
        cause="a cache of this machine answered reads: the figure is not the device's",
        evidence=f"the load read {units.size(asked)}, the device {units.size(moved)}",
    )


def _cache_below(case: Case) -> Hint | None:
    """All bytes were moved by the device, faster than it can: a cache in or behind it."""
    asked, counters = case.record.figures.total_read_bytes, case.record.counters
    moved = counters.bytes_of("read") if counters is not None else None
    if not case.above or not asked or moved is None or moved <= (1 - CACHED) * asked:
        return None
    return Hint(
        rule="cache-below",
        cause="a cache in or behind the device is in play (controller, virtual machine's host, a loop device's file)",
        evidence=f"the device moved all {units.size(moved)} faster than its description allows",
    )


def _slow_member(case: Case) -> Hint | None:
    """One of several devices takes much longer than the others."""
    waits = {device.name: wait for device in _members(case.record) if (wait := _wait_ms(device)) is not None}
    if not case.below or len(waits) < 3:
        return None
    slowest = max(waits, key=lambda name: waits[name])
    middle = sorted(waits.values())[len(waits) // 2]
    if waits[slowest] < SLOW_MEMBER * middle:
        return None
    return Hint(
        rule="slow-member",
        cause=f"{slowest} holds back the others",
        evidence=f"its requests take {waits[slowest]:.3g} ms, those of the others {middle:.3g} ms in the middle",
    )


def _members(record: RunRecord) -> list[DeviceCounters]:
    return [device for device in record.devices if device.role == "below"]


def _wait_ms(device: DeviceCounters) -> float | None:
    delta = device.delta
    requests = delta.get("reads", 0.0) + delta.get("writes", 0.0)
    return (delta.get("read_ms", 0.0) + delta.get("write_ms", 0.0)) / requests if requests >= 100 else None


def _split(case: Case) -> Hint | None:
    """Direct requests reach the devices in more pieces than predicted: their places are not aligned."""
    done, predicted = _pieces(case.record), case.prediction.requests_of_devices
    if not case.below or done is None or not predicted or any(not of.direct for of in case.record.workload.streams):
        return None
    if done < SPLIT * predicted:
        return None
    return Hint(
        rule="misaligned",
        cause="requests are split: the start of a partition or volume is not a multiple of the chunk or block",
        evidence=f"{done:.2f} requests of devices for each of the load, {predicted:.2f} predicted",
    )


def _pieces(record: RunRecord) -> float | None:
    """Requests of the lowest devices for each request of the load."""
    devices = _members(record) or [device for device in record.devices if device.role == "target"]
    requests = sum(device.delta.get("reads", 0.0) + device.delta.get("writes", 0.0) for device in devices)
    return requests / record.figures.requests if record.figures.requests and requests else None


def _short_reads(case: Case) -> Hint | None:
    """Buffered reads of the device are shorter than predicted: another read-ahead is in force."""
    counters, predicted = case.record.counters, case.prediction.read_size
    if counters is None or predicted is None or all(of.direct for of in case.record.workload.streams):
        return None
    reads, moved = counters.requests_of("read"), counters.bytes_of("read")
    if not case.below or not reads or not moved or moved / reads > SHORT_READS * predicted:
        return None
    return Hint(
        rule="read-ahead",
        cause="read-ahead is smaller than the machine file has it: look at read_ahead_kb",
        evidence=f"reads of the device have {units.size(moved / reads)}, predicted {units.size(predicted)}",
    )


def _write_through(case: Case) -> Hint | None:
    """A device without its write cache writes slower than one with it."""
    writes = any(of.side is Side.BELOW and of.operation == "write" for of in _compared(case.record, case.prediction))
    off = [
        name.removesuffix(".write_cache")
        for name, value in case.record.settings.before.items()
        if name.endswith(".write_cache") and value == "write through"
    ]
    if not writes or not off or not case.prediction.has_write_cache:
        return None
    return Hint(
        rule="write-cache",
        cause="the write cache is off",
        evidence=f"{', '.join(off)}: write through; the machine file has a write cache",
    )


def _deep(case: Case) -> Hint | None:
    """More requests are at the device than the machine file lets it have: it reorders more than predicted."""
    counters = case.record.counters
    waiting = counters.iostat.get("aqu-sz", 0.0) if counters is not None else 0.0
    depth = case.prediction.queue_depth
    if not case.above or waiting <= 1.5 * depth:
        return None
    return Hint(
        rule="deep-queue",
        cause="a controller takes more commands than the drives of the machine file and sorts them",
        evidence=f"{waiting:.0f} requests at the device on average; the machine file's drives take {depth}",
    )


def _others(case: Case) -> Hint | None:
    """Others used the device or the processors."""
    names = [
        verdict.check
        for verdict in case.record.verdicts
        if verdict.level is not Level.OK
        and verdict.check in ("other-io", "before-other-io", "during-cpu", "before-jobs")
    ]
    if not case.below or not names:
        return None
    return Hint(
        rule="others",
        cause="something else used the device or the processors",
        evidence=f"verdicts: {', '.join(names)}",
    )


RULES: tuple[Callable[[Case], Hint | None], ...] = (
    _page_cache,
    _cache_below,
    _slow_member,
    _split,
    _short_reads,
    _write_through,
    _deep,
    _others,
)
