"""Records to report about."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from spindle.report.document.entry import Entry
from spindle.result.document import encode
from spindle.result.record import Record
from spindle.run.order import Order, carry_out
from spindle.run.searching import FindKnee
from spindle.run.targets import parse
from spindle.run.watch import Silent

CHUNKS = ("64KiB", "256KiB", "1MiB")


@cache
def modelled(workload: str, target: str, *overrides: tuple[str, str], find_knee: bool = False) -> Record:
    """A run on a modelled machine."""
    return carry_out(Order(workload, parse(target), overrides, search=FindKnee() if find_knee else None), Silent())


def entry(record: Record, name: str = "a.json", **more: object) -> Entry:
    """As if it had been named on the command line."""
    return Entry(record=record, source=name, **more)  # type: ignore[arg-type]


def randomio(target: str = "six-sata-f2", workers: int = 16, seed: int = 1, seconds: int = 8) -> Record:
    """The table of 2008: random reads and writes."""
    options = [("workers", str(workers)), ("size", "64KiB"), ("seed", str(seed)), ("seconds", str(seconds))]
    return modelled("randomio", target, *options)


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
    found = []
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
