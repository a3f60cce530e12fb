"""Records to report about."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

from msgspec.structs import replace

from spindle.report.document.entry import Entry
from spindle.result.document import encode
from spindle.result.record import Record, RunRecord
from spindle.run.order import Order, carry_out
from spindle.run.resolve import resolve
from spindle.run.searching import FindKnee
from spindle.run.targets import parse
from spindle.run.watch import SilentWatch

CHUNKS = ("64KiB", "256KiB", "1MiB")


@cache
def modelled(workload: str, target: str, *overrides: tuple[str, str], find_knee: bool = False) -> Record:
    """A run on a modelled machine."""
    return carry_out(Order(workload, parse(target), overrides, search=FindKnee() if find_knee else None), SilentWatch())


def entry(record: Record, name: str = "a.json", **more: object) -> Entry:
    """A record as if its file were named on the command line."""
    return Entry(record=record, source=name, **more)  # type: ignore[arg-type]


def randomio(target: str = "six-sata-f2", workers: int = 16, seed: int = 1, seconds: int = 8) -> RunRecord:
    """The table of 2008: random reads and writes."""
    options = [("workers", str(workers)), ("size", "64KiB"), ("seed", str(seed)), ("seconds", str(seconds))]
    record = modelled("randomio", target, *options)
    assert isinstance(record, RunRecord)
    return record


def scaled(record: RunRecord, factor: float) -> RunRecord:
    """The same run with a multiple of its throughput."""
    streams = [
        replace(
            stream,
            **{
                name: replace(op, iops=op.iops * factor, bytes_per_s=op.bytes_per_s * factor)
                for name, op in stream.ops()
            },
        )
        for stream in record.figures.streams
    ]
    return replace(record, figures=replace(record.figures, streams=streams))


def asked(record: RunRecord, name: str, **changes: object) -> RunRecord:
    """The same figures of another request."""
    streams = [replace(stream, **changes) for stream in record.workload.streams]
    return replace(record, workload=replace(record.workload, name=name, streams=streams))


def of_kind(record: RunRecord, kind: str, path: str) -> RunRecord:
    """The same figures of another kind of target."""
    return replace(record, target=replace(record.target, kind=kind, asked=path))


def on_names(record: RunRecord, operation: str, factor: float = 1.0) -> RunRecord:
    """The reads of a run as operations on names."""
    loads = [phase.spec for phase in resolve("metadata").phases]
    stream = next(s for load in loads for s in load.streams if s.names is not None and s.names.operation == operation)
    seen = scaled(record, factor).figures.streams[0]
    assert seen.read is not None
    op = replace(seen.read, bytes=0, bytes_per_s=0.0)
    figures = replace(record.figures, streams=[replace(seen, read=None, write=None, **{operation: op})])
    workload = replace(record.workload, name=f"metadata {operation}", streams=[stream])
    return replace(record, workload=workload, figures=figures)


def campaign(cells: int, trials: int = 2) -> list[Entry]:
    """Schedulers, read-ahead and depths; throughput grows from cell to cell."""
    levels = {
        "scheduler": ["none", "mq-deadline", "bfq", "kyber"],
        "read_ahead_kb": [str(4 << step) for step in range(12)],
        "depth": ["1", "32"],
    }
    every = [dict(zip(levels, cell, strict=True)) for cell in product(*levels.values())][:cells]
    return [
        entry(
            scaled(randomio(seed=1 + trial), 1 + at / 10),
            f"{at}.{trial}.json",
            campaign="big",
            block=trial,
            cell=cell,
            levels=levels,
        )
        for at, cell in enumerate(every)
        for trial in range(trials)
    ]


def noisy(folds: Sequence[float] = (30, 1.3, 0.1)) -> list[Entry]:
    """Four schedulers at two depths; one of them has very noisy results."""
    names = ["none", "mq-deadline", "bfq", "kyber"]
    return [
        entry(
            scaled(randomio(seed=1 + trial), folds[trial] if name == "kyber" else (1 + at / 10) * depth),
            f"{name}.{depth}.{trial}",
            campaign="noisy",
            block=trial,
            cell={"scheduler": name, "depth": str(depth)},
            levels={"scheduler": names},
        )
        for trial in range(3)
        for at, name in enumerate(names)
        for depth in (1, 2)
    ]


def machine(folder: Path, name: str, level: str, layout: str = "", chunk: str = "64KiB") -> str:
    """A file of the four drives of 2008 as an array."""
    drives = ("HDT725032VLA360", "HD321KJ", "ST3320620AS", "WD3200AAKS")
    path = folder / f"{name}.toml"
    text = f'[host]\nkernel = "2.6.25"\n\n[queue]\nscheduler = "cfq"\n\n[array]\nlevel = "{level}"\nchunk = "{chunk}"\n'
    text += f'layout = "{layout}"\n' if layout else ""
    path.write_text(text + "".join(f'\n[[drive]]\nmodel = "{drive}"\nregion = "4GB-8GB"\n' for drive in drives))
    return str(path)


def single(folder: Path) -> str:
    """One of them alone."""
    path = folder / "one.toml"
    path.write_text(
        '[host]\nkernel = "2.6.25"\n\n[queue]\nscheduler = "cfq"\n\n[[drive]]\nmodel = "HD321KJ"\nregion = "4GB-8GB"\n'
    )
    return str(path)


def matrix(folder: Path) -> list[Entry]:
    """Streams over levels, layouts and chunks, reads and writes, and one drive alone."""
    targets = [(single(folder), "128KiB", 2)]
    for level, layout, data in (("raid10", "f2", 4), ("raid10", "n2", 2), ("raid5", "left-symmetric", 3)):
        for chunk in CHUNKS:
            size = f"{data * int(chunk.replace('MiB', '')) if 'MiB' in chunk else data * int(chunk[:-3])}{chunk[-3:]}"
            targets.append((machine(folder, f"{level}-{layout}-{chunk}", level, layout, chunk), size, 4))
    found: list[Entry] = []
    for target, size, depth in targets:
        for share in ("0", "1"):
            options = [("size", size), ("depth", str(depth)), ("write_fraction", share), ("seconds", "3")]
            found.append(entry(modelled("sdd-read", target, *options), f"{len(found)}.json"))
    return found


def saved(folder: Path, *records: Record) -> list[str]:
    """Files of records."""
    names = []
    for at, record in enumerate(records):
        path = folder / f"record{at}.json"
        path.write_bytes(encode(record))
        names.append(str(path))
    return names
