"""The search for the cheapest array of one volume, and for its front: nets, races, confirming runs.

Candidates are taken in the order of their cost. Those of one cost run against each other in short simulations of the
same requests; the best go to the confirming runs, which are long, have several seeds and include the degraded and the
rebuilding array. The first that is confirmed is the cheapest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from spindle.design.drives import Candidate
from spindle.design.front import front
from spindle.design.loads import Volume
from spindle.design.loss import yearly_loss
from spindle.design.nets import MARGIN, Need, array_group, closed_needs, predicted_share, rough_losses
from spindle.design.requirement import Requirement, State
from spindle.design.space import ArrayDesign, Floats, Grid, grid
from spindle.design.trial import LONG, SHORT, Effort, Outcome, Simulator
from spindle.run.watch import Watch

HEADS = 8
"""Levels and regions of one cost that run in its first heat."""
CLOSE = 1.3
"""Those within this factor of the best of them, whose chunks and schedulers run in the second heat: chance and the
chunk may turn the order."""
HOPELESS = 1.5
"""A cost is given up if its first heat misses the bounds by this factor: chunk and scheduler change less."""
NEARLY = 1.1
"""A short run is noisy: a design that misses a bound by no more may still be confirmed."""
CONFIRMED = 12
"""Designs of one cost that get a confirming run before the cost is given up."""
SPEEDS = (20_000_000, 50_000_000, 100_000_000, 200_000_000)
"""Values of `sync_speed_min` that are tried where the rebuild is too slow, bytes/s."""
PLAUSIBLE = 1.25
"""Largest approximated latency of a design of the front, as a multiple of its bound."""
FRONT = 12
"""Most designs of the front that are simulated in a round."""
FRONT_HOURS = 24.0
"""Rebuild time with which the front is approximated."""
FRONT_ROUNDS = 2
"""Rounds, if less than half of that is confirmed."""
DEAREST = 3.0
"""Designs of the front cost at most this multiple of the cheapest."""


@dataclass(frozen=True)
class Confirmed:
    """A design whose confirming runs meet all needs."""

    design: ArrayDesign
    cost: float
    watts: float
    bays: int
    usable_bytes: float
    outcome: Outcome
    yearly_loss: float
    predicted_share: float

    @property
    def objectives(self) -> tuple[float, float, float, float]:
        """Cost, latency, probability of a loss, watts."""
        latency = self.outcome.share or self.outcome.latency_ns
        return self.cost, latency, self.yearly_loss, self.watts


@dataclass
class Counts:
    """Candidates that are left after each net."""

    candidates: int = 0
    possible: int = 0
    """After the closed formulas."""
    promising: int = 0
    """After the queueing approximation."""
    raced: int = 0
    confirmed: int = 0
    """Designs that had a confirming run."""


@dataclass(frozen=True)
class Missed:
    """A need that nothing meets."""

    need: str
    excess: float
    """Least miss, as a share of the need."""
    asked: float
    best: float
    unit: str
    design: ArrayDesign | None = None
    """The design that comes nearest."""


@dataclass
class VolumeSearch:
    """The search for one volume."""

    requirement: Requirement
    volume: Volume
    drives: Sequence[Candidate]
    simulator: Simulator
    watch: Watch
    final: Effort = LONG
    """Length of the confirming runs."""
    counts: Counts = field(default_factory=Counts)
    _best_misses: list[tuple[float, ArrayDesign, Outcome]] = field(default_factory=list)
    _needs: list[Need] = field(default_factory=list)

    def __post_init__(self) -> None:
        factor = self.rate_factor
        everything = grid(self.requirement, self.drives)
        self._everything = everything
        self._needs = closed_needs(everything, self.volume, self.requirement, factor)
        possible = np.logical_and.reduce([need.met for need in self._needs])
        self._grid = everything.take(possible)
        self._share = predicted_share(self._grid, self.volume, factor)
        self.counts.candidates, self.counts.possible = len(everything), len(self._grid)
        self.counts.promising = int((self._share <= MARGIN).sum())

    @property
    def rate_factor(self) -> float:
        """Growth of the rates at the end of the years."""
        return self.requirement.growth.load_factor

    # --- the cheapest ---

    def cheapest(self, above: float = 0.0, below: float = math.inf) -> Confirmed | None:
        """The cheapest design that is confirmed, with a cost from `above` to below `below`; None: there is none."""
        for cost, rows in self._by_cost(above, below):
            self.watch.step(f"{self.volume.name}: designs for {cost:,.0f}, {self.simulator.runs} simulations")
            found = self._race(rows)
            if found is not None:
                return found
        return None

    def _by_cost(self, above: float, below: float) -> Iterator[tuple[float, NDArray[np.intp]]]:
        """Rows of each cost that the approximation does not rule out, cheapest first."""
        cost = self._grid.cost
        wanted = np.flatnonzero((self._share <= MARGIN) & (cost >= above - 1e-9) & (cost < below - 1e-9))
        order = wanted[np.lexsort((wanted, self._share[wanted], cost[wanted]))]
        edges = np.flatnonzero(np.diff(cost[order]) > 1e-9) + 1
        for rows in np.split(order, edges):
            if len(rows):
                yield float(cost[rows[0]]), rows

    def _race(self, rows: NDArray[np.intp]) -> Confirmed | None:
        """The best design of one cost, if one is confirmed."""
        heads = self._heads(rows)
        ran = self._run(heads)
        best = min(outcome.share for _, _, outcome in ran)
        if best > HOPELESS:
            return None
        families = {_family(self._grid, row) for share, row, _ in ran if share <= CLOSE * best}
        ran += self._run([row for row in rows if _family(self._grid, row) in families and row not in heads])
        for row in self._hopeful(ran)[:CONFIRMED]:
            if confirmed := self.confirm([row]):
                return confirmed[0]
        return None

    def _hopeful(self, ran: Sequence[tuple[float, np.intp, Outcome]]) -> list[np.intp]:
        """Rows that may be confirmed: the best of each family, then the second of each ... The members of a family are
        alike, so one that breaks a bound of the degraded array must not keep other families from their turn. Of equal
        figures (two schedulers on a queue that is never long) only the first counts."""
        turns: dict[tuple[int, ...], int] = {}
        seen = set()
        found = []
        for share, row, outcome in sorted(ran, key=lambda one: (one[0], one[1])):
            family = _family(self._grid, row)
            figures = (family, *((figure.iops, figure.latency_ns["mean"]) for figure in outcome.figures))
            if share > NEARLY or figures in seen:
                continue
            seen.add(figures)
            turns[family] = turns.get(family, 0) + 1
            found.append((turns[family], share, row))
        return [row for *_, row in sorted(found)]

    def _heads(self, rows: NDArray[np.intp]) -> list[np.intp]:
        """The most promising row of each family, at most `HEADS`."""
        first: dict[tuple[int, ...], np.intp] = {}
        for row in rows:
            first.setdefault(_family(self._grid, row), row)
        return list(first.values())[:HEADS]

    def _run(self, rows: Sequence[np.intp]) -> list[tuple[float, np.intp, Outcome]]:
        designs = [self._grid.design(int(row)) for row in rows]
        outcomes = self.simulator.evaluate(designs, self.volume, SHORT, self.rate_factor, self.requirement.seed)
        self.counts.raced += len(designs)
        for design, outcome in zip(designs, outcomes, strict=True):
            if not outcome.meets:
                self._best_misses.append((outcome.share, design, outcome))
        return [
            (outcome.share or outcome.latency_ns / 1e15, row, outcome)
            for row, outcome in zip(rows, outcomes, strict=True)
        ]

    def confirm(self, rows: Sequence[np.intp]) -> list[Confirmed]:
        """The confirming runs of some designs; those that meet every need in them."""
        designs = [self._grid.design(int(row)) for row in rows]
        outcomes = self._confirming(designs)
        self.counts.confirmed += len(designs)
        found = []
        for row, design, outcome in zip(rows, designs, outcomes, strict=True):
            if outcome.meets and not self._is_safe(row, outcome):
                design, outcome = self._faster_rebuild(row, design, outcome)
            if outcome.meets and self._is_safe(row, outcome):
                found.append(self._confirmed(row, design, outcome))
            else:
                self._best_misses.append((max(outcome.share, 1.0), design, outcome))
        return found

    def _confirming(self, designs: Sequence[ArrayDesign]) -> list[Outcome]:
        """The confirming runs. A design that breaks a bound in the first of them has no other."""
        first = self._evaluate(designs, replace(self.final, seeds=1, states=(State.WHOLE,)))
        left = [design for design, outcome in zip(designs, first, strict=True) if outcome.meets]
        all_runs = dict(zip(left, self._evaluate(left, self.final), strict=True))
        return [all_runs.get(design, outcome) for design, outcome in zip(designs, first, strict=True)]

    def _evaluate(self, designs: Sequence[ArrayDesign], effort: Effort) -> list[Outcome]:
        seed = self.requirement.seed + 1000
        return self.simulator.evaluate(designs, self.volume, effort, self.rate_factor, seed)

    def _is_safe(self, row: np.intp, outcome: Outcome) -> bool:
        """True if the rebuild is fast enough, and with its time a loss rare enough."""
        limits, hours = self.requirement.limits, outcome.rebuild_hours or 0.0
        if limits.rebuild_hours is not None and hours > limits.rebuild_hours:
            return False
        return limits.yearly_loss is None or self._loss(row, hours) <= limits.yearly_loss

    def _faster_rebuild(self, row: np.intp, design: ArrayDesign, outcome: Outcome) -> tuple[ArrayDesign, Outcome]:
        """The same design with the least `sync_speed_min` of `SPEEDS` with which its rebuild is fast enough. If there
        is none, or a bound breaks: the last one that was tried."""
        for speed in SPEEDS if outcome.rebuild_hours else ():
            design = replace(design, sync_speed_min=speed)
            outcome = self._confirming([design])[0]
            if not outcome.meets or self._is_safe(row, outcome):
                break
        return design, outcome

    def _loss(self, row: np.intp, hours: float) -> float:
        return yearly_loss(array_group(self._grid, int(row), hours))

    def _confirmed(self, row: np.intp, design: ArrayDesign, outcome: Outcome) -> Confirmed:
        one = self._grid.take(np.array([row]))
        return Confirmed(
            design=design,
            cost=float(one.cost[0]),
            watts=float(one.watts[0]),
            bays=int(one.bays[0]),
            usable_bytes=float(one.usable[0]),
            outcome=outcome,
            predicted_share=float(self._share[row]),
            yearly_loss=self._loss(row, outcome.rebuild_hours or 0.0),
        )

    # --- the front ---

    def front(self, cheapest: Confirmed) -> list[Confirmed]:
        """Confirmed designs that no other one beats in cost, latency, loss and watts; the cheapest is among them."""
        of, share = self._grid, self._share
        left = np.flatnonzero((share <= PLAUSIBLE) & (of.cost <= DEAREST * cheapest.cost))
        left = _best_of_hardware(of, left, share)
        confirmed = [cheapest]
        for _ in range(FRONT_ROUNDS):
            rows = self._spread_front(left)
            if not len(rows) or len(confirmed) > FRONT // 2:
                break
            self.watch.step(f"{self.volume.name}: {len(rows)} designs of the front")
            found = self.confirm([row for value, row, _ in self._run(list(rows)) if value <= NEARLY])
            confirmed += [one for one in found if one.design != cheapest.design]
            # A drive and level of which nothing was confirmed are left out of the next round.
            good = {(one.design.drive, one.design.scheme.name) for one in found}
            tried = {self._kind(row) for row in rows}
            left = np.array([row for row in left if row not in rows and self._kind(row) not in tried - good], dtype=int)
        kept = front(np.array([one.objectives for one in confirmed]))
        chosen = [one for one, is_kept in zip(confirmed, kept, strict=True) if is_kept or one is cheapest]
        return sorted(chosen, key=lambda one: (one.objectives, one.design.sort_key))

    def _kind(self, row: np.intp) -> tuple[str, str]:
        return self._grid.drives[self._grid.drive[row]].name, self._grid.schemes[self._grid.scheme[row]].name

    def _spread_front(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows of the approximated front, at most `FRONT` of them, evenly over the cost."""
        if not len(rows):
            return rows
        of, share = self._grid, self._share
        loss = rough_losses(of.take(rows), np.full(len(rows), FRONT_HOURS))
        points = np.stack([of.cost[rows], np.round(share[rows], 3), loss, of.watts[rows]], axis=1)
        rows = rows[front(points)]
        rows = rows[np.lexsort((rows, share[rows], of.cost[rows]))]
        spread = np.unique(np.linspace(0, len(rows) - 1, min(FRONT, len(rows))).round().astype(int))
        return np.asarray(rows[spread])

    # --- nothing meets the need ---

    def missed(self) -> list[Missed]:
        """Why nothing was found, the nearest miss first: needs that are broken by every candidate that meets all other
        needs of the formulas, else bounds that the simulations broke."""
        met = np.stack([need.met for need in self._needs]) if self._needs else np.empty((0, 0), dtype=bool)
        if not len(self._everything):
            return []
        if np.logical_and.reduce(met).any():
            return self._missed_in_simulations()
        found = []
        for at, need in enumerate(self._needs):
            others = np.logical_and.reduce(np.delete(met, at, axis=0))
            if others.any():
                found.append(self._missed_by(need, np.flatnonzero(others)))
        if not found:  # no single one: the nearest of each that is never met, or misses that come together
            found = [
                self._missed_by(need, np.arange(len(self._everything))) for need in self._needs if not need.met.any()
            ]
        if not found:
            total = sum(np.maximum(need.excess, 0) for need in self._needs)
            nearest = np.array([int(np.argmin(total))])
            found = [self._missed_by(need, nearest) for need in self._needs if not need.met[nearest[0]]]
        return sorted(found, key=lambda one: one.excess)

    def _missed_by(self, need: Need, rows: NDArray[np.intp]) -> Missed:
        row = rows[int(np.argmin(need.excess[rows]))]
        return Missed(
            need.name,
            float(need.excess[row]),
            need.need,
            float(need.offer[row]),
            need.unit,
            self._everything.design(int(row)),
        )

    def _missed_in_simulations(self) -> list[Missed]:
        if not self._best_misses:  # the approximation dropped all: simulate its best
            order = np.lexsort((np.arange(len(self._share)), self._share))[:HEADS]
            self._run(list(order))
        if not self._best_misses:
            return []
        _, design, outcome = min(self._best_misses, key=lambda one: (one[0], one[1].sort_key))
        found = [
            Missed(
                f"{broken.key} of {broken.load}"
                + (f", {broken.operation}s" if broken.operation else "")
                + (f", {broken.state.value}" if broken.state.value != "whole" else ""),
                broken.excess,
                broken.bound,
                broken.found,
                "1/s" if broken.key.startswith("rate") else "ns",
                design,
            )
            for broken in outcome.broken
        ]
        limits = self.requirement.limits
        if not found and limits.rebuild_hours is not None and (outcome.rebuild_hours or 0) > limits.rebuild_hours:
            hours = outcome.rebuild_hours or 0.0
            found = [Missed("rebuild", hours / limits.rebuild_hours - 1, limits.rebuild_hours, hours, "h", design)]
        if not found and limits.yearly_loss is not None:
            found = [Missed("yearly_loss", math.nan, limits.yearly_loss, math.nan, "a year", design)]
        return sorted(found, key=lambda one: -one.excess)


def _family(of: Grid, row: np.intp) -> tuple[int, ...]:
    """Level, layout, region and drive of a candidate: chunk and scheduler are left open."""
    return int(of.scheme[row]), int(of.region[row]), int(of.drive[row]), int(of.count[row])


def _best_of_hardware(of: Grid, rows: NDArray[np.intp], share: Floats) -> NDArray[np.intp]:
    """The most promising row of each drive, number, spares and level."""
    keys = np.stack([of.drive[rows], of.count[rows], of.spare[rows], of.scheme[rows]], axis=1)
    order = np.lexsort((rows, share[rows]))
    _, first = np.unique(keys[order], axis=0, return_index=True)
    return np.asarray(rows[order][np.sort(first)])
