"""Traits that distinguish runs, in words: campaign factors if there are some, else from the records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from spindle.base import units
from spindle.report.document import storage
from spindle.report.document.entry import Entry
from spindle.result.record import RunRecord
from spindle.result.workload import FixedSize, LogNormalSize, Open, RangeSize, Size, WeightedSize, WorkloadStream

Traits = Mapping[str, str]

OUTSTANDING = "outstanding"
THREADS = (OUTSTANDING, "workers", "depth")
"""Traits that are about concurrency alone."""


def traits_of(run: RunRecord, entry: Entry) -> dict[str, str]:
    """Return name -> value in words, most important first. A campaign's factor replaces the trait of its name."""
    return {**entry.cell, **{name: value for name, value in _said(run, entry) if name not in entry.cell}}


def _said(run: RunRecord, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the traits in the record itself."""
    if entry.tags:
        yield "tag", ", ".join(sorted(entry.tags))
    yield "workload", run.workload.name
    yield "target", run.target.place
    array = storage.array_of(run)
    if array is not None:
        yield "array", array.name
        if array.chunk is not None:
            yield "chunk", units.size(array.chunk)
    if scheduler := storage.scheduler_of(run):
        yield "scheduler", scheduler
    if (read_ahead := storage.setting_of(run, "read_ahead_kb")) is not None:
        yield "read-ahead", f"{read_ahead} KiB"
    yield OUTSTANDING, str(run.workload.outstanding)
    streams = run.workload.streams
    for stream in streams:
        of = f"{stream.name} " if len(streams) > 1 else ""
        for name, value in _of_stream(stream).items():
            yield of + name, value
    yield "seed", str(run.seed)


def _of_stream(stream: WorkloadStream) -> dict[str, str]:
    if stream.names is not None:
        return {
            "operation": stream.names.operation,
            "workers": str(stream.workers),
            "files": str(stream.names.tree.files),
        }
    mix = stream.mix
    found = {"size": size_words(stream.size), "pattern": type(stream.pattern).__struct_config__.tag or ""}
    found["writes"] = units.percent(mix.write)
    if mix.rewrite:
        found["rewrites"] = units.percent(mix.rewrite)
    found["workers"] = str(stream.workers)
    found["depth"] = str(stream.depth)
    if isinstance(stream.arrival, Open):
        found["rate"] = f"{units.count(stream.arrival.rate_iops)} IOPS"
    found["I/O"] = "direct" if stream.direct else "buffered"
    if stream.priority is not None:
        found["priority"] = f"{stream.priority.class_}:{stream.priority.level}"
    region = stream.region
    found["region"] = "-".join(
        units.size(place.bytes) if hasattr(place, "bytes") else units.percent(place.fraction)
        for place in (region.offset, region.end)
    )
    return {name: str(value) for name, value in found.items()}


def size_words(size: Size) -> str:
    """`64 KiB`, `4 KiB-64 KiB`, `26 KiB mean`."""
    match size:
        case FixedSize(bytes=found):
            return units.size(found)
        case RangeSize(min=low, max=high):
            return f"{units.size(low)}-{units.size(high)}"
        case LogNormalSize(mean=mean):
            return f"{units.size(mean)} mean"
        case WeightedSize(choices=choices):
            return ", ".join(f"{units.size(found)}:{weight:g}" for found, weight in choices)


def distinguishing(found: Sequence[Traits]) -> list[str]:
    """Return the fewest traits, in order, that distinguish all distinguishable runs. A seed is not one: it repeats."""
    chosen: list[str] = []
    groups = 1
    names = list(dict.fromkeys(name for traits in found for name in traits if name != "seed"))
    for name in names:
        now = len({tuple(traits.get(each) for each in [*chosen, name]) for traits in found})
        if now > groups:
            chosen.append(name)
            groups = now
    return _without_needless(chosen, found, groups)


def _without_needless(chosen: list[str], found: Sequence[Traits], groups: int) -> list[str]:
    """Drop traits that later ones make superfluous: `outstanding` beside `workers` and `depth`."""
    for name in reversed(chosen):
        rest = [each for each in chosen if each != name]
        if rest and len({tuple(traits.get(each) for each in rest) for traits in found}) == groups:
            chosen = rest
    return chosen


_BELONGS = {
    "target": ("array", "chunk", "scheduler", "read-ahead"),
    "array": ("chunk",),
    OUTSTANDING: ("workers", "depth"),
    "workers": (OUTSTANDING,),
    "depth": (OUTSTANDING,),
}
"""Traits that always change with a trait."""


def entangled(found: Sequence[Traits], chosen: Sequence[str]) -> list[str]:
    """Return traits that change only together with the chosen ones, without a cause: their effects are confounded."""
    if "workload" in chosen or "tag" in chosen:  # it contains the whole request
        return []
    names = list(dict.fromkeys(name for traits in found for name in traits if name not in ("seed", "tag")))
    differing = [name for name in names if len({traits.get(name) for traits in found}) > 1]
    implied = {each for name in chosen for each in _BELONGS.get(name, ())}
    return [name for name in differing if name not in chosen and name.rpartition(" ")[2] not in implied]


_AMOUNT = re.compile(r"^(-?\d+(?:[ .]\d+)*)\s*([KMGTP]i?B|[kMG]B|B|KiB|ns|us|ms|s|%)?\b", re.ASCII)
_FACTOR = {
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "ns": 1.0,
    "us": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "%": 1.0,
    **{f"{letter}iB": float(1 << 10 * (at + 1)) for at, letter in enumerate("KMGTP")},
}


def amount(value: str) -> float | None:
    """Return the number in a value such as `64 KiB` or `16`; None: it is a word."""
    found = _AMOUNT.match(value)
    if found is None:
        return None
    return float(found[1].replace(" ", "")) * _FACTOR.get(found[2] or "", 1.0)


def order(value: str | None, levels: Sequence[str] = ()) -> tuple[int, float, str]:
    """Return a sort key: by `levels`, then amounts by size, then words by the alphabet."""
    if value is None:
        return (2, 0.0, "")
    if value in levels:
        return (-1, float(levels.index(value)), "")
    number = amount(value)
    return (1, 0.0, value) if number is None else (0, number, value)
