"""The measured cases of a folder, a row per drive in its tables, as objects."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from spindle.run.errors import Usage
from spindle.validation.kernel.runner import CaseFigures, LoadFigures, MemberFigures

REQUESTS = "requests.csv"
ELEVATORS = "elevators.csv"
NOMINAL_BYTES = 256 * 1024 * 1024
"""Random loads stay in the first 256 MiB."""
APPENDED_BYTES = 512
_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407


class CasesError(Usage):
    """A folder or a table that cannot be read."""


class Load(Struct, frozen=True):
    """One process with its requests."""

    write: bool
    random: bool
    size_bytes: int
    depth: int
    count: int
    seed: int = 7
    priority: str | None = None
    is_buffered: bool = False
    """Through the page cache, writes with fdatasync at the end; otherwise direct."""
    syncs: bool = False
    """An fsync after each write."""
    makes_file: bool = False
    """The file is new, and grows."""

    def offsets(self) -> list[int]:
        """Offset of each request in bytes, in the order of submission."""
        if not self.random:
            return [self.size_bytes * index for index in range(self.count)]
        state, places = self.seed, NOMINAL_BYTES // self.size_bytes
        offsets = []
        for _ in range(self.count):
            state = (state * _MULTIPLIER + _INCREMENT) % 2**64
            offsets.append((state >> 33) % places * self.size_bytes)
        return offsets


class Case(Struct, frozen=True, kw_only=True):
    """A machine, a load on it, and what was measured."""

    name: str
    table: str
    level: str
    """`single`, or md's level with RAID10's layout: `raid10f2`."""
    operation: str
    loads: list[Load]
    """Empty if there are none: a check or a rebuild."""
    one_after_another: bool
    """The second load starts when the first one is over; otherwise they start together."""
    scheduler: str
    queue_depth: int
    chunk_kib: int | None
    file_system: str
    stripe_cache: int
    degraded: int
    """Members gone: the third one (RAID1: the second), then the fourth."""
    bitmap: bool
    memory: str
    drive_mib: int
    max_request_kib: int
    rotational: bool
    data_offset_sectors: int
    """First sector of md's data on each member; 0 without an array."""
    read_ahead_kib: str
    """Written to the device read; `default` or empty: left alone."""
    size_kib: int
    count: int
    measured: CaseFigures

    @property
    def kind(self) -> str:
        """The line of the table that counts it."""
        if self.table == ELEVATORS:
            array = "" if self.level == "single" else f" {self.level}"
            return f"{self.scheduler}{array}"
        degraded = f" -{self.degraded}" if self.degraded else ""
        return f"{self.operation} {self.level}{degraded}"

    @property
    def members(self) -> int:
        """Drives of the machine."""
        return {"single": 1, "raid1": 2}.get(self.level, 4)


def read_cases(folder: Path) -> list[Case]:
    """Return the cases of both tables in their order; one of the tables may be absent. Raises CasesError."""
    found = [name for name in (REQUESTS, ELEVATORS) if (folder / name).is_file()]
    if not found:
        raise CasesError(f"{folder}: neither {REQUESTS} nor {ELEVATORS} is there")
    return [case for name in found for case in _table(folder / name)]


def case_of(table: str, row: Mapping[str, str]) -> Case:
    """Return a case that has not been measured: its row without figures."""
    unmeasured = defaultdict(str, dict.fromkeys(("elapsed_ns", "reads", "writes"), "0"), **row)
    return _READ[table]([unmeasured])


def _table(path: Path) -> Iterator[Case]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    read = _READ[path.name]
    for name, of_case in groupby(rows, key=lambda row: row.get("case")):
        try:
            yield read(list(of_case))
        except (KeyError, ValueError, TypeError) as error:
            raise CasesError(f"{path}: case {name}: {error!r} in a column that is needed") from None


def _number(text: str | None, absent: int = 0) -> int:
    return int(text) if text else absent


def _sizes(text: str) -> dict[int, int]:
    """`sectors:count`, most frequent first; sizes beyond the twelfth are only counted."""
    pairs = (item.split(":") for item in text.split(";") if ":" in item)
    return {int(sectors): int(count) for sectors, count in pairs}


def _request_case(rows: list[dict[str, str]]) -> Case:
    row, operation = rows[0], rows[0]["op"]
    direct = operation.startswith(("direct", "rand"))
    appends = operation == "append-fsync"
    syncs = operation.endswith("-fsync")
    buffered = operation in ("bufread", "bufwrite") or syncs
    load = Load(
        write=operation.endswith("write") or syncs,
        random=operation.startswith(("rand", "bufrand")),
        size_bytes=APPENDED_BYTES if appends else int(row["bs_kib"]) * 1024,
        depth=int(row["depth"]),
        count=int(row["count"]),
        is_buffered=buffered,
        syncs=syncs,
        makes_file=bool(row["fs"]) and operation != "bufread",
    )
    members = [
        MemberFigures(
            device=of["device"],
            reads=int(of["drv_reads"]),
            read_sectors=int(of["drv_read_sectors"]),
            writes=int(of["drv_writes"]),
            write_sectors=int(of["drv_write_sectors"]),
            read_sizes=_sizes(of["read_sizes"]),
            write_sizes=_sizes(of["write_sizes"]),
            trace_sha1=of.get("trace_sha1"),
        )
        for of in rows
        if of["device"].startswith("vd")
    ]
    elapsed_ns = int(row["elapsed_ns"])
    loads = []
    if direct:
        latencies = _number(row["mean_lat_ns"]), _number(row["max_lat_ns"])
        loads = [LoadFigures(load.count, elapsed_ns, *latencies)]
    return _case(
        rows,
        table=REQUESTS,
        loads=[load] if direct or buffered else [],
        queue_depth=256,
        measured=CaseFigures(elapsed_ns=elapsed_ns, members=members, loads=loads),
    )


def _elevator_case(rows: list[dict[str, str]]) -> Case:
    row = rows[0]
    members = [
        MemberFigures(
            device=of["device"],
            reads=int(of["reads"]),
            writes=int(of["writes"]),
            read_sizes=_sizes(of["read_sizes"]),
            write_sizes=_sizes(of["write_sizes"]),
            order_sha1=of["order_sha1"],
            trace_sha1=of.get("trace_sha1"),
        )
        for of in rows
    ]
    loads = [
        LoadFigures(*(_number(row[f"load{at}_{figure}"]) for figure in _LOAD_COLUMNS))
        for at in (1, 2)
        if row[f"load{at}_requests"]
    ]
    return _case(
        rows,
        table=ELEVATORS,
        loads=_elevator_loads(row),
        queue_depth=32,
        measured=CaseFigures(elapsed_ns=int(row["elapsed_ns"]), members=members, loads=loads),
    )


_READ = {REQUESTS: _request_case, ELEVATORS: _elevator_case}
_LOAD_COLUMNS = ("requests", "elapsed_ns", "mean_lat_ns", "max_lat_ns")


def _elevator_loads(row: dict[str, str]) -> list[Load]:
    operation, depth, count = row["op"], int(row["depth"]), int(row["count"])

    def load(
        *, write: bool = False, random: bool = True, depth: int = depth, count: int = count, priority: str | None = None
    ) -> Load:
        return Load(write, random, int(row["bs_kib"]) * 1024, depth, count, 7, priority)

    def second(load: Load) -> Load:
        return Load(load.write, load.random, load.size_bytes, load.depth, load.count, 9, load.priority)

    match operation:
        case "randread" | "randwrite":
            return [load(write=operation == "randwrite")]
        case "mix":
            return [load(), second(load(write=True, count=count // 4))]
        case "mixw":
            return [load(depth=1, count=count // 4), second(load(write=True))]
        case "two":
            return [load(random=False), second(load())]
        case "rwseq":
            return [load(random=False), second(load(write=True))]
        case "prio":
            return [load(priority="realtime:0"), second(load(count=count // 4, priority="idle"))]
        case "seqmerge":
            return [load(write=True, random=False), second(load(random=False))]
        case "bufwrite" | "bufread":
            return [replace(load(write=operation == "bufwrite", random=False), is_buffered=True)]
    return []


_ELEVATORS_OFFSET = 4096
"""Sectors before the data of the arrays of elevators.csv: as requests.csv has it for the same arrays."""


def _case(
    rows: list[dict[str, str]], *, table: str, loads: list[Load], queue_depth: int, measured: CaseFigures
) -> Case:
    row, level = rows[0], rows[0]["level"]
    chunk = row.get("chunk_kib", "" if level == "single" else "512")
    offset = row.get("data_offset_sectors")
    return Case(
        name=row["case"],
        table=table,
        level=level,
        operation=row["op"],
        loads=loads,
        one_after_another=row["op"] == "seqmerge",
        scheduler=row["scheduler"],
        queue_depth=queue_depth,
        chunk_kib=int(chunk) if chunk else None,
        file_system=row.get("fs", ""),
        stripe_cache=_number(row.get("stripe_cache"), 256),
        degraded=_number(row.get("degraded")),
        bitmap=row.get("bitmap") == "internal",
        memory=row.get("mem", "1G"),
        drive_mib=_number(row.get("size_mib"), 512),
        max_request_kib=_number(row.get("max_sectors_kib"), 1280),
        rotational=row.get("rotational") != "0",
        data_offset_sectors=_number(offset, 0 if level == "single" else _ELEVATORS_OFFSET),
        read_ahead_kib=row.get("ra_kib", ""),
        size_kib=int(row["bs_kib"]),
        count=int(row["count"]),
        measured=measured,
    )
