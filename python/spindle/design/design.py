"""From a requirement and prices to the answer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

from spindle.base import units
from spindle.cluster.place import HERE, Place
from spindle.design import answer as answers
from spindle.design.changes import Change, changes
from spindle.design.commands import Built, commands
from spindle.design.drives import candidates
from spindle.design.front import front
from spindle.design.loads import Volume, separable, volumes
from spindle.design.prices import Prices
from spindle.design.requirement import Requirement, State
from spindle.design.search import Confirmed, Missed, VolumeSearch
from spindle.design.trial import MEDIUM, Broken, Simulator, machine_text
from spindle.design.words import bound_words, limits_of, missed_words, need_words
from spindle.run.errors import Usage
from spindle.run.watch import SilentWatch, Watch

SLOWER = 1.1
MORE_LOAD = 1.5
MOST_HEADROOM = 4.0
"""Most factor on the rates that is tried."""
MOST_EXCESS = 1e6
"""A greater miss is no figure: the best offer is nothing."""
MOST_AT_ONCE = 8
"""Searches at the same time: each has its own table of candidates."""
LOOK_S = 0.2


@dataclass(frozen=True)
class Machine:
    """Confirmed arrays together."""

    parts: tuple[tuple[Volume, Confirmed], ...]

    @property
    def cost(self) -> float:
        """Price of all drives."""
        return sum(one.cost for _, one in self.parts)

    @property
    def watts(self) -> float:
        """Power of all drives."""
        return sum(one.watts for _, one in self.parts)

    @property
    def bays(self) -> int:
        """Drives."""
        return sum(one.bays for _, one in self.parts)

    @property
    def yearly_loss(self) -> float:
        """Probability that one of the arrays loses data in a year."""
        return -math.expm1(sum(math.log1p(-one.yearly_loss) for _, one in self.parts))

    @property
    def share(self) -> float:
        """Largest ratio of a latency to its bound."""
        return max(one.outcome.share for _, one in self.parts)

    @property
    def p99_ns(self) -> float:
        """Largest p99."""
        return max(one.outcome.latency_ns for _, one in self.parts)

    @property
    def objectives(self) -> tuple[float, float, float, float]:
        """Cost, latency (as a share of its bound, if there is one), probability of a loss, watts."""
        return self.cost, self.share or self.p99_ns, self.yearly_loss, self.watts


@dataclass
class Designer:
    """The searches for one requirement. Drives are measured and simulations are run once."""

    requirement: Requirement
    prices: Prices
    watch: Watch
    place: Place = HERE

    def __post_init__(self) -> None:
        self.watch.step("measuring the drives")
        space = self.requirement.space
        writes = any(volume.writes for volume in volumes(self.requirement, ()))
        self.drives = candidates(self.prices, space.drives, space.regions, writes, self.place, self.watch)
        if not self.drives:
            raise Usage(f"{self.prices.source}: none of the requirement's drives has a price")
        self.simulator = Simulator(place=self.place, watch=self.watch)
        self._apart_only: list[Machine] = []
        """Machines each array of which is within the limits, but not all together."""

    def answer(self) -> answers.DesignAnswer:
        """Search, confirm, and explain."""
        searches = [
            [self._search(self.requirement, volume) for volume in volumes(self.requirement, apart)]
            for apart in _apart(self.requirement)
        ]
        machines = [found for each in searches if (found := self._cheapest(each, self.requirement)) is not None]
        if not machines:
            return self._answer(searches, [], None)
        best = min(machines, key=lambda machine: (machine.cost, machine.objectives))
        return self._answer(searches, self._front(searches, machines, best), best)

    # --- searches ---

    def _search(self, requirement: Requirement, volume: Volume) -> VolumeSearch:
        return VolumeSearch(requirement, volume, self.drives, self.simulator, self.watch)

    def _cheapest(self, searches: Sequence[VolumeSearch], requirement: Requirement) -> Machine | None:
        """The cheapest machine of one array for each search; None: nothing meets the need."""
        found = []
        for search in searches:
            one = search.cheapest()
            if one is None:
                return None
            found.append((search.volume, one))
        machine = Machine(tuple(found))
        if _is_within(machine, requirement):
            return machine
        fronts = [
            [(search.volume, one) for one in search.front(part)]
            for search, (_, part) in zip(searches, found, strict=True)
        ]
        together = [Machine(parts) for parts in itertools.product(*fronts)]
        within = [one for one in together if _is_within(one, requirement)]
        if not within:
            self._apart_only.append(machine)
        return min(within, key=lambda one: (one.cost, one.objectives), default=None)

    def _front(
        self, searches: Sequence[Sequence[VolumeSearch]], machines: Sequence[Machine], best: Machine
    ) -> list[Machine]:
        """Machines that no other one beats in cost, latency, loss and watts."""
        found = [best]
        for machine in machines:
            names = [volume.name for volume, _ in machine.parts]
            each = next(each for each in searches if [search.volume.name for search in each] == names)
            fronts = [
                [(search.volume, one) for one in search.front(part)]
                for search, (_, part) in zip(each, machine.parts, strict=True)
            ]
            combined = [Machine(parts) for parts in itertools.product(*fronts)]
            found += [one for one in combined if _is_within(one, self.requirement) and one != best]
        kept = front(np.array([one.objectives for one in found]))
        chosen = [one for one, is_kept in zip(found, kept, strict=True) if is_kept or one is best]
        return sorted(chosen, key=lambda one: (one.cost, one is not best, one.objectives))

    # --- the recommendation ---

    def _needs(self, best: Machine) -> Iterator[answers.NeedEffect]:
        """The cheapest machine, with the same arrays, if one need is easier or harder."""
        apart = [volume.name for volume, _ in best.parts[1:]]
        every = list(changes(self.requirement))
        for change, found in zip(every, self._searched(every, apart, best), strict=True):
            cost = found.cost if found is not None else None
            yield answers.NeedEffect(
                need=change.need,
                change=change.change,
                asked=change.asked,
                cost=cost,
                machine=self._machine(found).words if found is not None else "",
                decides=cost is None or abs(cost - best.cost) > 1e-6,
            )

    def _searched(self, every: Sequence[Change], apart: Sequence[str], best: Machine) -> Iterator[Machine | None]:
        """The cheapest machine of each change. Workers would wait for a single search: several go on at a time."""
        if self.place.is_here:
            for change in every:
                self.watch.step(f"{change.need}: {change.change}")
                yield self._cheapest_changed(change, apart, best, self.watch)
            return
        pool = ThreadPoolExecutor(min(MOST_AT_ONCE, 2 * self.place.threads))
        try:
            begun = [pool.submit(self._cheapest_changed, change, apart, best, SilentWatch()) for change in every]
            for change, found in zip(every, begun, strict=True):
                while not wait([found], LOOK_S).done:  # signals are handled in between
                    self.watch.step(f"{change.need}: {change.change}; {self.place}")
                yield found.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _cheapest_changed(self, change: Change, apart: Sequence[str], best: Machine, watch: Watch) -> Machine | None:
        """A harder need is never cheaper, an easier one never dearer: only that side is searched."""
        requirement, is_harder = change.requirement, change.is_harder
        parts = []
        for volume, (_, old) in zip(volumes(requirement, apart), best.parts, strict=True):
            search = _with_medium_runs(VolumeSearch(requirement, volume, self.drives, self.simulator, watch))
            above, below = (old.cost, math.inf) if is_harder else (0.0, old.cost)
            one = search.cheapest(above, below)
            if one is None and is_harder:
                return None
            parts.append((volume, one or old))
        changed = Machine(tuple(parts))
        return changed if _is_within(changed, requirement) else None

    def _broken(self, best: Machine, factor: float, slower: float = 1.0) -> list[Broken]:
        simulator = self.simulator if slower == 1.0 else Simulator(slower, self.place, self.watch)
        found = []
        before = simulator.runs
        for volume, one in best.parts:
            effort = replace(MEDIUM, only_bounded=True)
            load_factor = self.requirement.growth.load_factor * factor
            seed = self.requirement.seed + 2000
            found += simulator.evaluate([one.design], volume, effort, load_factor, seed)[0].broken
        if simulator is not self.simulator:
            self.simulator.others += simulator.runs - before
        return found

    def _breaks(self, best: Machine) -> Iterator[answers.Break]:
        self.watch.step("what would break it")
        conditions = [(f"drives {100 * (SLOWER - 1):.0f} % slower", 1.0, SLOWER)]
        if any(load.rate_iops for load in self.requirement.loads):  # a closed loop asks for as much as it gets
            conditions.insert(0, (f"load x {MORE_LOAD:g}", MORE_LOAD, 1.0))
        for condition, factor, slower in conditions:
            broken = [bound_words(one) for one in self._broken(best, factor, slower)]
            yield answers.Break(condition=condition, broken=broken)
        growth = self.requirement.growth
        if growth.years:
            broken = [bound_words(one) for one in self._broken(best, 1 + growth.load)]
            for volume, one in best.parts:
                needed = volume.needed_bytes * (1 + growth.capacity)
                if needed > one.usable_bytes:
                    broken.append(
                        f"{volume.name}: {units.si_size(round(needed))} of {units.si_size(round(one.usable_bytes))}"
                    )
            yield answers.Break(condition="one more year of growth", broken=broken)

    def _headroom(self, best: Machine) -> float | None:
        """Factor on the rates up to which no bound breaks, by bisection in steps of 5 %."""
        if not any(load.rate_iops for load in self.requirement.loads):
            return None
        low, high = 0, round((MOST_HEADROOM - 1) / 0.05)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if not self._broken(best, 1 + 0.05 * middle) else (low, middle - 1)
        return 1 + 0.05 * low

    # --- the answer ---

    def _answer(
        self, searches: Sequence[Sequence[VolumeSearch]], machines: Sequence[Machine], best: Machine | None
    ) -> answers.DesignAnswer:
        needs = list(self._needs(best)) if best is not None else []
        breaks = list(self._breaks(best)) if best is not None else []
        headroom = self._headroom(best) if best is not None else None
        self.watch.end()
        return answers.DesignAnswer(
            about=self.requirement.about,
            need=need_words(self.requirement),
            currency=self.prices.currency,
            prices=self.prices.source,
            drives=[drive.name for drive in self.drives],
            nets=_nets(searches),
            simulations=self.simulator.runs,
            front=[self._machine(machine) for machine in machines],
            recommendation=self._machine(best) if best is not None else None,
            figures=_figures(best) if best is not None else [],
            needs=needs,
            breaks=breaks,
            headroom=headroom,
            missed=self._missed(searches) if best is None else [],
            commands=self._commands(best) if best is not None else [],
            machines={volume.name: self._file(volume, one) for volume, one in best.parts} if best is not None else {},
            limits=limits_of(self.requirement, self.drives, best is not None and len(best.parts) > 1),
        )

    def _machine(self, machine: Machine) -> answers.MachineAnswer:
        return answers.MachineAnswer(
            arrays=[_array(volume, one) for volume, one in machine.parts],
            cost=round(machine.cost, 2),
            bays=machine.bays,
            watts=round(machine.watts, 1),
            yearly_loss=machine.yearly_loss,
            bound_share=machine.share or None,
            p99_ns=machine.p99_ns,
            p99_spread=max(one.outcome.spread for _, one in machine.parts),
        )

    def _commands(self, best: Machine) -> list[str]:
        by_name = {drive.name: drive for drive in self.drives}
        built = [Built(volume.name, one.design, by_name[one.design.drive].capacity) for volume, one in best.parts]
        return commands(built, self.requirement.space.filesystem)

    def _file(self, volume: Volume, one: Confirmed) -> str:
        flash = "used" if volume.writes and one.design.is_flash else ""
        about = self.requirement.about or "designed by `spindle design`"
        return machine_text(one.design, State.WHOLE, flash, f"{about}: {volume.name}")

    def _missed(self, searches: Sequence[Sequence[VolumeSearch]]) -> list[answers.MissedNeed]:
        """Needs that nothing meets, of the machine that comes nearest."""
        found: list[answers.MissedNeed] = []
        if self._apart_only:
            nearest = min(self._apart_only, key=lambda machine: machine.objectives)
            found = [_joint(self._machine(nearest), *pair) for pair in _joint_limits(nearest, self.requirement)]
        for search in searches[0] if not found else ():
            for missed in search.missed():
                asked, best = missed_words(missed, self.prices.currency)
                excess = missed.excess if missed.excess < MOST_EXCESS else None  # nothing at all, or not known
                found.append(
                    answers.MissedNeed(
                        array=search.volume.name,
                        need=missed.need,
                        asked=asked,
                        best=best,
                        excess=excess,
                        machine=_design_words(missed),
                    )
                )
            if found:
                break
        return found


def _with_medium_runs(search: VolumeSearch) -> VolumeSearch:
    """The search with confirming runs of medium length."""
    search.final = replace(MEDIUM, only_bounded=_is_only_bounded(search.requirement))
    return search


def _is_only_bounded(requirement: Requirement) -> bool:
    """True if no limit needs the time of a rebuild."""
    return requirement.limits.rebuild_hours is None and requirement.limits.yearly_loss is None


def _apart(requirement: Requirement) -> list[tuple[str, ...]]:
    """The sets of arrays besides that of the data."""
    names = separable(requirement)
    return [tuple(some) for count in range(len(names) + 1) for some in itertools.combinations(names, count)]


def _is_within(machine: Machine, requirement: Requirement) -> bool:
    """True if all arrays together are within the limits."""
    return not _joint_limits(machine, requirement)


def _joint_limits(machine: Machine, requirement: Requirement) -> list[tuple[str, float, float]]:
    """The limits that all arrays together break: name, found, most."""
    limits = requirement.limits
    pairs = (
        ("budget", machine.cost, limits.budget),
        ("bays", machine.bays, limits.bays),
        ("watts", machine.watts, limits.watts),
        ("yearly_loss", machine.yearly_loss, limits.yearly_loss),
    )
    return [(name, value, most) for name, value, most in pairs if most is not None and value > most]


def _joint(machine: answers.MachineAnswer, name: str, found: float, most: float) -> answers.MissedNeed:
    return answers.MissedNeed(
        array="",
        need=f"{name} of all arrays together",
        asked=f"{most:.3g}",
        best=f"{found:.3g}",
        excess=found / most - 1,
        machine=machine.words,
    )


def _nets(searches: Sequence[Sequence[VolumeSearch]]) -> list[answers.Net]:
    every = [search.counts for each in searches for search in each]
    return [
        answers.Net(name=name, left=sum(getattr(counts, key) for counts in every))
        for name, key in (
            ("candidates", "candidates"),
            ("possible by the closed formulas", "possible"),
            ("not ruled out by the queueing approximation", "promising"),
            ("simulated briefly", "raced"),
            ("with confirming runs", "confirmed"),
        )
    ]


def _array(volume: Volume, one: Confirmed) -> answers.ArrayAnswer:
    design = one.design
    return answers.ArrayAnswer(
        name=volume.name,
        drive=design.drive,
        level=design.scheme.name,
        drives=design.drives,
        spares=design.spares,
        chunk=design.chunk,
        scheduler=design.scheduler,
        region=design.region,
        sync_speed_min=design.sync_speed_min,
        needed_bytes=volume.needed_bytes,
        usable_bytes=round(one.usable_bytes),
        rebuild_hours=one.outcome.rebuild_hours,
        yearly_loss=one.yearly_loss,
    )


def _figures(best: Machine) -> list[answers.LoadFigure]:
    return [
        answers.LoadFigure(
            array=volume.name,
            period=figure.period,
            state=figure.state.value,
            load=figure.load,
            operation=figure.operation,
            iops=figure.iops,
            bytes_per_s=figure.bytes_per_s,
            mean_ns=figure.latency_ns["mean"],
            p99_ns=figure.latency_ns["p99"],
            p999_ns=figure.latency_ns["p999"],
            requests=figure.requests,
        )
        for volume, one in best.parts
        for figure in one.outcome.figures
    ]


def _design_words(missed: Missed) -> str:
    design = missed.design
    if design is None:
        return ""
    count = f"{design.drives}+{design.spares}" if design.spares else str(design.drives)
    return f"{count} x {design.drive}, {design.scheme.name}"


def design(requirement: Requirement, prices: Prices, watch: Watch, place: Place = HERE) -> answers.DesignAnswer:
    """Design the cheapest machine. Raises Usage or `_core.ConfigError`, one line."""
    return Designer(requirement, prices, watch, place).answer()
