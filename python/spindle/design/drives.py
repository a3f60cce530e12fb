"""Drives that can be bought: their sheets' figures, their prices, and the times that the formulas need.

The times come from the drive models themselves: a drive alone under closed loops of random reads or writes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spindle import _core
from spindle.cluster.place import HERE, Place
from spindle.cluster.simulation import Simulation
from spindle.design.facts import Facts, facts_of
from spindle.design.prices import Prices
from spindle.design.smaller import NAME, smaller_drive
from spindle.run.simulate import read_figures
from spindle.run.watch import SilentWatch, Watch

DEPTHS = (1, 4, 32)
"""Requests outstanding at the drive."""
SIZES = (4096, 256 << 10)
REQUESTS = 500
"""Counted requests of each closed loop."""
PLACES = (0.0, 0.5, 0.98)
"""Where the sequential rate is taken, as shares of the drive."""


@dataclass(frozen=True)
class Candidate:
    """A drive with its price and its times."""

    name: str
    is_disk: bool
    capacity: int
    price: float
    facts: Facts
    read_ns: NDArray[np.float64]
    """Time of a request: region, depth, size."""
    write_ns: NDArray[np.float64]
    tail: NDArray[np.float64]
    """99th percentile of a read alone at the drive, as a multiple of its mean: region."""
    rate: NDArray[np.float64]
    """Mean sequential rate of each region, bytes/s."""
    outer_rate: float


def candidates(
    prices: Prices,
    names: Sequence[str],
    regions: Sequence[float],
    writes: bool,
    place: Place = HERE,
    watch: Watch | None = None,
) -> list[Candidate]:
    """Measure each drive that has a price; `names`: only these, if any. `writes`: measure writes too."""
    wanted = [name for name in _core.drive_names() if name in prices.of and (not names or name in names)]
    lines = {name: json.loads(_core.drive_line(name)) for name in wanted}
    plan = [(name, run) for name in wanted for run in _runs(lines[name]["rpm"] is not None, regions, writes)]
    pieces = [
        Simulation(_machine(name, run), _core.Workload.parse(run.workload, "drive", "drive").to_json(), kind=run.kind)
        for name, run in plan
    ]
    results = iter(place.figures(pieces, watch or SilentWatch(), "measuring the drives"))
    found = []
    for name in wanted:
        line = lines[name]
        runs = _runs(line["rpm"] is not None, regions, writes)
        figures = [_op(next(results)) for _ in runs]
        found.append(_candidate(name, line, prices.of[name], regions, dict(zip(runs, figures, strict=True))))
    return found


@dataclass(frozen=True)
class _Run:
    kind: str
    """`read`, `write` or `sequential`."""
    region: float
    depth: int
    size: int
    place: float = 0.0
    state: str | None = None

    @property
    def workload(self) -> str:
        pattern = "sequential" if self.kind == "sequential" else "uniform"
        count = 200 if self.kind == "sequential" else REQUESTS
        return (
            f"pattern = '{pattern}'\nsize = '{self.size}'\nwrite_fraction = {int(self.kind == 'write')}\n"
            f"workers = 1\ndepth = {self.depth}\nrequests = {count}\nseconds = 'none'\nramp = '1s'\n"
        )


def _runs(is_disk: bool, regions: Sequence[float], writes: bool) -> list[_Run]:
    """The closed loops of a drive. A flash drive is as fast everywhere, and has been written to if the load writes."""
    state = None if is_disk or not writes else "used"
    kinds = ("read", "write") if writes else ("read",)
    shares = regions if is_disk else (1.0,)
    depths = DEPTHS if is_disk else DEPTHS[::2]
    found = [
        _Run(kind, region, depth, size, 0.0, state)
        for kind in kinds
        for region in shares
        for depth in depths
        for size in SIZES
    ]
    return found + [_Run("sequential", 1.0, 2, 1 << 20, place) for place in (PLACES if is_disk else PLACES[:1])]


def _machine(name: str, run: _Run) -> str:
    smaller = smaller_drive(name)
    start = run.place * 100
    keys = f"region = '{start:g}%-{min(100.0, start + run.region * 100):g}%'\n"
    if run.state:
        keys += f"state = '{run.state}'\n"
    model, sheet = (NAME, smaller.sheet) if smaller is not None else (name, "")
    return f"[queue]\nscheduler = 'none'\n[[drive]]\nmodel = '{model}'\n{keys}\n{sheet}"


def _op(text: str) -> tuple[float, float, float]:
    """Requests/s, bytes/s, and the 99th percentile as a multiple of the mean."""
    stream = read_figures(text).run.streams[0]
    op = stream.read or stream.write
    if op is None or not op.requests:
        return 1e-9, 1e-9, 1.0
    return op.iops, op.bytes_per_s, dict(op.latency.percentiles)[99.0] / max(1.0, op.latency.mean_ns)


def _candidate(
    name: str,
    line: dict[str, float],
    price: float,
    regions: Sequence[float],
    figures: dict[_Run, tuple[float, float, float]],
) -> Candidate:
    is_disk = line["rpm"] is not None

    def times(kind: str) -> NDArray[np.float64]:
        """Region, depth, size; of flash and of loads without writes what is known stands for the rest."""
        found = np.empty((len(regions), len(DEPTHS), len(SIZES)))
        known = {(run.region, run.depth, run.size): 1e9 / of[0] for run, of in figures.items() if run.kind == kind}
        for at in np.ndindex(found.shape):
            region = regions[at[0]] if is_disk else 1.0
            depth = DEPTHS[at[1]]
            if (region, depth, SIZES[at[2]]) in known:
                found[at] = known[region, depth, SIZES[at[2]]]
            else:
                ends = [known[region, each, SIZES[at[2]]] for each in (DEPTHS[0], DEPTHS[-1])]
                found[at] = float(np.sqrt(ends[0] * ends[1]))
        return found

    read_ns = times("read")
    tails = {run.region: of[2] for run, of in figures.items() if (run.kind, run.depth, run.size) == ("read", 1, 4096)}
    rates = [of[1] for run, of in figures.items() if run.kind == "sequential"]
    rates = rates if len(rates) == len(PLACES) else [rates[0]] * len(PLACES)
    curve = np.polyfit(PLACES, rates, 2)
    return Candidate(
        name=name,
        is_disk=is_disk,
        capacity=int(line["capacity"]),
        price=price,
        facts=facts_of(name),
        read_ns=read_ns,
        write_ns=times("write") if any(run.kind == "write" for run in figures) else read_ns,
        tail=np.array([tails[region if is_disk else 1.0] for region in regions]),
        rate=np.array([_mean_rate(curve, region) for region in regions]),
        outer_rate=rates[0],
    )


def _mean_rate(curve: NDArray[np.float64], region: float) -> float:
    """Rate of a pass over a region: the harmonic mean of the rates in it."""
    at = np.linspace(0, region, 21)
    return float(1 / np.mean(1 / np.polyval(curve, at)))
