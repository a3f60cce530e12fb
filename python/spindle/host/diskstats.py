"""Device counters from /proc/diskstats and the columns that iostat computes from them.

Fields: Documentation/admin-guide/iostats.rst of the kernel. iostat itself is not used: its JSON lacks fields, and it
needs a second for any output.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from .devices import HERE, SECTOR, Device, Machine, text_of
from .number import whole_number

_WRAP = 1 << 32
"""Counts and sectors are `unsigned long`, so they wrap here on 32-bit kernels; times are cut to 32 bits on all
(block/genhd.c, diskstats_show)."""
_LEAST = 11
"""Number of fields in every kernel; discards came with Linux 4.18, flushes with 5.5."""


@dataclass(frozen=True)
class Counters:
    """Counters of one device since boot; `in_flight` is the current value. Times in ms, as the kernel prints them."""

    reads: int = 0
    read_merges: int = 0
    read_sectors: int = 0
    read_ms: int = 0
    writes: int = 0
    write_merges: int = 0
    write_sectors: int = 0
    write_ms: int = 0
    in_flight: int = 0
    busy_ms: int = 0
    weighted_ms: int = 0
    discards: int = 0
    discard_merges: int = 0
    discard_sectors: int = 0
    discard_ms: int = 0
    flushes: int = 0
    flush_ms: int = 0


_NAMES = [field.name for field in fields(Counters)]


@dataclass(frozen=True)
class Snapshot:
    """Counters of several devices at one moment of the monotonic clock."""

    at_ns: int
    counters: dict[str, Counters]


@dataclass(frozen=True)
class DiskDelta:
    """Activity of one device between two snapshots."""

    seconds: float
    reads: int
    read_merges: int
    read_bytes: int
    read_ms: int
    writes: int
    write_merges: int
    write_bytes: int
    write_ms: int
    in_flight: int
    """At the end."""
    busy_ms: int
    weighted_ms: int
    discards: int
    discard_merges: int
    discard_bytes: int
    discard_ms: int
    flushes: int
    flush_ms: int

    def iostat(self) -> dict[str, float]:
        """The columns of `iostat -mx`, with its units: MB/s are 2^20 bytes/s there, sizes KiB, times ms."""
        columns: dict[str, float] = {}
        for letter, count, merges, size_bytes, spent in (
            ("r", self.reads, self.read_merges, self.read_bytes, self.read_ms),
            ("w", self.writes, self.write_merges, self.write_bytes, self.write_ms),
            ("d", self.discards, self.discard_merges, self.discard_bytes, self.discard_ms),
        ):
            columns[f"{letter}/s"] = _per(count, self.seconds)
            columns[f"{letter}MB/s"] = _per(size_bytes / (1 << 20), self.seconds)
            columns[f"{letter}rqm/s"] = _per(merges, self.seconds)
            columns[f"%{letter}rqm"] = 100 * _per(merges, count + merges)
            columns[f"{letter}_await"] = _per(spent, count)
            columns[f"{letter}areq-sz"] = _per(size_bytes / 1024, count)
        columns["f/s"] = _per(self.flushes, self.seconds)
        columns["f_await"] = _per(self.flush_ms, self.flushes)
        columns["aqu-sz"] = _per(self.weighted_ms / 1000, self.seconds)
        # busy_ms is counted in ticks of the scheduler's clock, so for a short interval it can be a little too large.
        columns["%util"] = min(100.0, 100 * _per(self.busy_ms / 1000, self.seconds))
        return columns

    def numbers(self) -> dict[str, float]:
        """The differences alone, without derived columns."""
        return {name: float(value) for name, value in asdict(self).items()}

    def to_dict(self) -> dict[str, object]:
        """Differences and derived columns, the JSON of the result record."""
        return {**asdict(self), "iostat": self.iostat()}


def _per(amount: float, divisor: float) -> float:
    return amount / divisor if divisor > 0 else 0.0


def counters_of(parts: Sequence[str]) -> Counters | None:
    """Counters from the fields after the name; None if one is not a number. Counters that a kernel lacks are 0."""
    values = [whole_number(part) for part in parts[: len(_NAMES)]]
    known = [value for value in values if value is not None]
    readable = len(known) == len(values) and len(values) >= _LEAST
    return Counters(**dict(zip(_NAMES, known, strict=False))) if readable else None


def parse(text: str, names: Collection[str] | None = None) -> dict[str, Counters]:
    """Parse /proc/diskstats: counters by device name, of all or of these. A line that cannot be parsed is skipped."""
    found = {}
    for line in text.splitlines():
        parts = line.split(maxsplit=3 + len(_NAMES))
        if len(parts) > 3 and (names is None or parts[2] in names) and (counters := counters_of(parts[3:])) is not None:
            found[parts[2]] = counters
    return found


def snapshot(devices: Iterable[Device] | None = None, machine: Machine = HERE) -> Snapshot:
    """Counters now, of these devices (hidden NVMe paths may have none) or of all."""
    names = None if devices is None else [device.counted_name for device in devices]
    if names == []:
        return Snapshot(time.monotonic_ns(), {})
    text = text_of(machine.proc / "diskstats") or ""
    at_ns = time.monotonic_ns()
    if names is None:
        return Snapshot(at_ns, parse(text))
    counters = parse(text, names)
    return Snapshot(at_ns, {name: counters[name] for name in names if name in counters})


def fetched_bytes(machine: Machine = HERE) -> int | None:
    """`read_bytes` of proc_pid_io(5): counts reads handed to a block device, over all threads of this process."""
    found = re.search(r"^read_bytes: ([0-9]{1,20})$", text_of(machine.proc / "self/io") or "", re.MULTILINE)
    return int(found[1]) if found is not None else None


def delta(before: Snapshot, after: Snapshot) -> dict[str, DiskDelta]:
    """Activity of each device in between. A device that is gone or was replaced is left out."""
    seconds = (after.at_ns - before.at_ns) / 1e9
    found = {}
    for name, new in after.counters.items():
        old = before.counters.get(name)
        if old is not None and (change := difference(old, new, seconds)) is not None:
            found[name] = change
    return found


def difference(old: Counters, new: Counters, seconds: float) -> DiskDelta | None:
    """Activity in between; None if the counters were reset."""
    values: dict[str, int] = {}
    for name in _NAMES:
        before, after = getattr(old, name), getattr(new, name)
        change = after - before
        if name == "in_flight":
            change = after
        elif name.endswith("_ms"):
            change %= _WRAP
        elif change < 0:
            # A wrap of a 32-bit kernel goes a little past zero; a replaced device falls back to zero.
            change += _WRAP
            if before >= _WRAP or change >= _WRAP // 2:
                return None
        if name.endswith("_sectors"):
            name, change = name.replace("_sectors", "_bytes"), change * SECTOR
        values[name] = change
    return DiskDelta(seconds=seconds, **values)
