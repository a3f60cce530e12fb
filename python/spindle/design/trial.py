"""Simulations of one array under its loads, and their comparison with the bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from spindle.base.units import exact_size
from spindle.cluster.place import HERE, Place
from spindle.cluster.simulation import ONE_INTERVAL_NS, Simulation
from spindle.design.loads import Volume, workload
from spindle.design.requirement import PERCENTILES, Load, State
from spindle.design.smaller import NAME, smaller_drive
from spindle.design.space import ArrayDesign
from spindle.result.figures import Op
from spindle.result.figures import Stream as StreamFigures
from spindle.run.simulate import SimulatedRun, read_figures
from spindle.run.watch import SilentWatch, Watch

REBUILD_SECONDS = {False: (8.0, 24.0), True: (0.5, 2.0)}
"""Two runs with a rebuild, of disks and of flash. Its rate is that between the ends of both: the kernel's thread begins
fast, and yields once it has measured the load. A rebuild of flash makes very many requests."""
MOST_REQUESTS = 40
"""A run counts at most this many times the requests that were asked for, where one load is much slower than another."""
CLOSED_RATE = 400.0
"""Requests/s that a closed loop is given the time for. Where it is faster, its requests end the run."""
FLASH_RAMP_S = 0.2
"""Ramp of closed loops on flash: hundreds of times their longest latency."""
DELIVERED = 0.01
"""Share of the rate that may be missing, besides chance."""


@dataclass(frozen=True)
class Effort:
    """The length of a simulation."""

    requests: int
    """Counted requests of all loads, and a quarter of them of each with a bound."""
    seeds: int
    states: tuple[State, ...] = (State.WHOLE,)
    only_bounded: bool = False
    """Leave out the states in which nothing is asked for."""


SHORT = Effort(4000, 1)
"""For the race."""
MEDIUM = Effort(8000, 1, tuple(State))
"""For searches with a changed need."""
LONG = Effort(15_000, 3, tuple(State))
"""For the recommendation and the front."""


@dataclass(frozen=True)
class Figure:
    """Figures of one operation of a load in one state, the worst of all seeds."""

    period: str | None
    state: State
    load: str
    operation: str
    iops: float
    bytes_per_s: float
    latency_ns: dict[str, float]
    """`mean`, `p99` ..."""
    requests: int = 0
    """Counted in the run with the fewest."""
    least_p99_ns: float = 0.0
    """The smallest p99 of all seeds."""

    @property
    def spread(self) -> float:
        """Largest difference of two seeds, as a share of the p99."""
        return 1 - self.least_p99_ns / self.latency_ns["p99"] if self.latency_ns["p99"] else 0.0


@dataclass(frozen=True)
class Broken:
    """A bound that is broken."""

    load: str
    state: State
    key: str
    """`p99`, or `rate`."""
    operation: str
    found: float
    """ns, or requests (bytes) per second."""
    bound: float

    @property
    def excess(self) -> float:
        """Miss, as a share of the bound."""
        if self.key.startswith("rate"):
            return self.bound / self.found - 1 if self.found else math.inf
        return self.found / self.bound - 1


@dataclass
class Outcome:
    """The result of the simulations of one array."""

    share: float = 0.0
    """Largest ratio of a latency to its bound, or of the needed to the delivered rate where that is missed."""
    latency_ns: float = 0.0
    """Largest p99 of any load with the whole array; for designs without bounds."""
    figures: list[Figure] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    rebuild_hours: float | None = None

    @property
    def spread(self) -> float:
        """Difference of two seeds in the largest p99 of the whole array, as a share of it."""
        whole = [figure for figure in self.figures if figure.state is State.WHOLE]
        return max(whole, key=lambda figure: figure.latency_ns["p99"]).spread if whole else 0.0

    @property
    def meets(self) -> bool:
        """True if no bound is broken."""
        return not self.broken


def simulated_text(design: ArrayDesign, state: State, flash_state: str) -> tuple[str, float]:
    """The machine file that is simulated, and the real bytes of a drive for each of its bytes."""
    smaller = smaller_drive(design.drive) if design.is_flash else None
    if smaller is None:
        return machine_text(design, state, flash_state), 1.0
    text = machine_text(replace(design, drive=NAME), state, flash_state)
    return f"{text}\n{smaller.sheet}", smaller.scale


def machine_text(design: ArrayDesign, state: State, flash_state: str, about: str = "") -> str:
    """The machine file of an array. The first member is the missing one, or the one being rebuilt."""
    lines = [f"about = {json.dumps(about, ensure_ascii=False)}", ""] if about else []
    lines += ["[host]", 'kernel = "6.1"', "", "[queue]", f'scheduler = "{design.scheduler}"', ""]
    scheme = design.scheme
    if scheme.level is not None:
        lines += ["[array]", f'level = "{scheme.level}"']
        if scheme.layout is not None:
            lines.append(f'layout = "{scheme.layout}"')
        if design.chunk is not None:
            lines.append(f'chunk = "{exact_size(design.chunk)}"')
        if scheme.groups > 1:
            lines.append(f"groups = {scheme.groups}")
        if state is State.DEGRADED:
            lines.append("missing = [0]")
        elif state is State.REBUILDING:
            lines.append("rebuild = 0")
        if state is State.REBUILDING and design.sync_speed_min is not None:
            lines.append(f'sync_speed_min = "{design.sync_speed_min // 1_000_000} MB/s"')
        lines.append("")
    lines += ["[[drive]]", f'model = "{design.drive}"', f"count = {design.drives}"]
    if design.region < 1:
        lines.append(f'region = "0%-{100 * design.region:g}%"')
    if flash_state:
        lines.append(f'state = "{flash_state}"')
    return "\n".join(lines) + "\n"


def run_seconds(loads: Sequence[Load], requests: int, factor: float) -> float:
    """Simulated time in which the loads make so many requests."""
    rates = [load.rate_iops * factor for load in loads]
    total = sum(rates)
    if not total:
        return requests / CLOSED_RATE  # closed loops only
    slowest = min(
        (rate for rate, load in zip(rates, loads, strict=True) if rate and any(load.bounds.values())), default=0.0
    )
    seconds = requests / total
    if slowest:
        seconds = min(max(seconds, requests / 4 / slowest), MOST_REQUESTS * requests / total)
    return min(max(seconds, 0.5), 7200.0)


def most_requests(loads: Sequence[Load], requests: int) -> int:
    """Counted requests that end a run before its time: of closed loops, which make as many as the drives manage."""
    if any(load.rate_iops for load in loads):
        return MOST_REQUESTS * requests
    return len(loads) * requests


@dataclass
class Simulator:
    """Runs simulations and keeps their results: equal ones run once."""

    slower: float = 1.0
    """Factor on all times of the drives: a load of `slower` times the rate on the same machine, with all latencies
    multiplied by it, is the same run with another unit of time."""
    place: Place = HERE
    watch: Watch = field(default_factory=SilentWatch)
    others: int = 0
    """Simulations of other simulators, which count too."""
    _kept: dict[tuple[str, str], SimulatedRun] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """Simulations so far. Several threads may ask for the same one; it counts once."""
        return len(self._kept) + self.others

    def evaluate(
        self,
        designs: Sequence[ArrayDesign],
        volume: Volume,
        effort: Effort,
        factor: float,
        seed: int = 1,
    ) -> list[Outcome]:
        """Simulate each design with the same requests. `factor`: on the rates of open loops. Raises
        `_core.ConfigError`."""
        plans = [list(self._plan(design, volume, effort, factor, seed)) for design in designs]
        self._run([run for plan in plans for run in plan])
        return [self._outcome(design, volume, factor, plan) for design, plan in zip(designs, plans, strict=True)]

    def _plan(
        self, design: ArrayDesign, volume: Volume, effort: Effort, factor: float, seed: int
    ) -> Iterable[_Planned]:
        flash = "used" if volume.writes and design.is_flash else ""
        for period in volume.periods:
            loads = volume.at(period)
            for state in effort.states:
                if state is not State.WHOLE and not design.scheme.tolerance:
                    continue
                if state is not State.WHOLE and effort.only_bounded and not any(state in load.bounds for load in loads):
                    continue
                text, _ = simulated_text(design, state, flash)
                lengths = [(run_seconds(loads, effort.requests, factor * self.slower), seed)]
                if state is State.WHOLE:
                    lengths = [(lengths[0][0], seed + number) for number in range(effort.seeds)]
                elif state is State.REBUILDING:
                    lengths = [(seconds, seed) for seconds in REBUILD_SECONDS[design.is_flash]]
                ends = None if state is State.REBUILDING else most_requests(loads, effort.requests)
                is_closed = not any(load.rate_iops for load in loads)
                ramp = FLASH_RAMP_S if is_closed and design.is_flash and ends is not None else None
                for seconds, of_seed in lengths:
                    load = workload(loads, seconds, of_seed, factor * self.slower, requests=ends, ramp_s=ramp).to_json()
                    yield _Planned(period, state, text, load, f"{state.value} {effort.requests} {bool(flash)}")

    def _run(self, planned: Sequence[_Planned]) -> None:
        new = {of.key: of for of in planned if of.key not in self._kept}
        pieces = [Simulation(of.text, of.json, ONE_INTERVAL_NS, kind=of.kind) for of in new.values()]
        texts = self.place.figures(pieces, self.watch, "design")
        for key, text in zip(new, texts, strict=True):
            self._kept[key] = read_figures(text)

    def _outcome(self, design: ArrayDesign, volume: Volume, factor: float, plan: Sequence[_Planned]) -> Outcome:
        found = Outcome()
        rebuilds: dict[str | None, list[tuple[SimulatedRun, float]]] = {}
        for planned in plan:
            run = self._kept[planned.key]
            if run.rebuild is not None:
                spec = json.loads(planned.json)
                rebuilds.setdefault(planned.period, []).append((run, run.run.measured_s + spec["ramp_ns"] / 1e9))
                if len(rebuilds[planned.period]) < len(REBUILD_SECONDS[design.is_flash]):
                    continue  # the short run is only for the rate
            for load in volume.at(planned.period):
                for figure in self._figures(run, load, planned):
                    _worst(found, figure)
                    _judge(found, figure, load)
                _judge_rate(found, run, load, planned.state, factor, self.slower)
        for runs in rebuilds.values():
            hours = _rebuild_hours(runs) * self.slower * simulated_text(design, State.REBUILDING, "")[1]
            found.rebuild_hours = max(found.rebuild_hours or 0.0, hours)
        return found

    def _figures(self, run: SimulatedRun, load: Load, planned: _Planned) -> Iterable[Figure]:
        for stream in _streams(run, load):
            for name in ("read", "write", "fsync"):
                op: Op | None = getattr(stream, name)
                if op is not None and op.requests:
                    known = dict(op.latency.percentiles)
                    latency = {key: known[percent] * self.slower for key, percent in PERCENTILES.items()}
                    latency["mean"] = op.latency.mean_ns * self.slower
                    yield Figure(
                        planned.period,
                        planned.state,
                        load.name,
                        name,
                        op.iops / self.slower,
                        op.bytes_per_s / self.slower,
                        latency,
                        op.requests,
                        latency["p99"],
                    )


@dataclass(frozen=True)
class _Planned:
    period: str | None
    state: State
    text: str
    json: str
    kind: str

    @property
    def key(self) -> tuple[str, str]:
        return self.text, self.json


def _streams(run: SimulatedRun, load: Load) -> list[StreamFigures]:
    names = {stream["name"] for stream in load.parsed()}
    return [stream for stream in run.run.streams if stream.name in names]


def _worst(found: Outcome, figure: Figure) -> None:
    """Add a figure, or keep the worse one of two seeds."""
    for at, other in enumerate(found.figures):
        same = ("period", "state", "load", "operation")
        if all(getattr(other, name) == getattr(figure, name) for name in same):
            worse = figure if figure.latency_ns["p99"] > other.latency_ns["p99"] else other
            found.figures[at] = replace(
                worse,
                requests=min(figure.requests, other.requests),
                least_p99_ns=min(figure.least_p99_ns, other.least_p99_ns),
            )
            break
    else:
        found.figures.append(figure)
    if figure.state is State.WHOLE:
        found.latency_ns = max(found.latency_ns, figure.latency_ns["p99"])


def _judge(found: Outcome, figure: Figure, load: Load) -> None:
    for key, most in load.bounds.get(figure.state, {}).items():
        value = figure.latency_ns[key]
        found.share = max(found.share, value / most)
        if value > most:
            _break(found, Broken(load.name, figure.state, key, figure.operation, value, most))


def _judge_rate(found: Outcome, run: SimulatedRun, load: Load, state: State, factor: float, slower: float) -> None:
    """Compare the delivered with the required rate, where the state has bounds."""
    if state not in load.bounds:
        return
    streams = _streams(run, load)
    operations = [op for stream in streams for op in (stream.read, stream.write, stream.trim) if op is not None]
    iops = sum(op.iops for op in operations) / slower
    offered = load.rate_iops * factor
    if offered:
        count = max(1, sum(op.requests for op in operations))
        least = offered * (1 - DELIVERED - 3 / math.sqrt(count))
        _judge_least(found, Broken(load.name, state, "rate", "", iops, offered), least)
    if load.least_iops:
        _judge_least(found, Broken(load.name, state, "rate", "", iops, load.least_iops), load.least_iops)
    if load.least_bytes_per_s:
        rate = sum(op.bytes_per_s for op in operations) / slower
        asked = Broken(load.name, state, "rate in bytes", "", rate, load.least_bytes_per_s)
        _judge_least(found, asked, load.least_bytes_per_s)


def _judge_least(found: Outcome, asked: Broken, least: float) -> None:
    if asked.found < least:
        found.share = max(found.share, asked.bound / max(asked.found, 1e-9))
        _break(found, asked)


def _break(found: Outcome, broken: Broken) -> None:
    """Add a broken bound; of several seeds the worst."""
    for at, other in enumerate(found.broken):
        if (other.load, other.state, other.key, other.operation) == (
            broken.load,
            broken.state,
            broken.key,
            broken.operation,
        ):
            if broken.excess > other.excess:
                found.broken[at] = broken
            return
    found.broken.append(broken)


def _rebuild_hours(runs: Sequence[tuple[SimulatedRun, float]]) -> float:
    """Hours to rebuild a member at the rate between the ends of a short and a long run, whose lengths are in s."""
    (short, short_s), (long, long_s) = runs
    assert short.rebuild is not None
    assert long.rebuild is not None
    if long.rebuild.finished_ns is not None:
        return long.rebuild.finished_ns / 3.6e12
    rate = (long.rebuild.done_bytes - short.rebuild.done_bytes) / (long_s - short_s)
    return long.rebuild.bytes / max(rate, 1.0) / 3600
