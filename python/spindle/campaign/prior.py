"""The model of a search's target: the simulator screens many settings before anything is measured."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spindle import _core
from spindle.campaign.cells import Cell, cell_of
from spindle.campaign.machine import has_equivalent, with_fields
from spindle.campaign.plan import Plan
from spindle.campaign.prepare import Sources
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload
from spindle.run.simulate import read_figures
from spindle.run.targets import MachineTarget
from spindle.search.prior import Expected, Prior
from spindle.search.space import Point, Space
from spindle.stats.metric import of_figures

MOST = 1000
"""Settings that are screened."""
REQUESTS = 1000
"""Requests of one run of the model: a shorter run than a trial, as there are many."""
_AT_ONCE = 64
_ROUNDS = 2
"""Times that the neighbours of the best settings so far are screened, in a space that is larger."""
_BEST = 3


@dataclass
class Model:
    """Runs of the model, each once. `space` and `points` as in the search."""

    plan: Plan
    space: Space
    text: str
    sources: Sources
    metrics: Sequence[str]
    found: dict[Point, Expected] = field(default_factory=dict)
    _workloads: dict[tuple[tuple[str, str], ...], ResolvedWorkload] = field(default_factory=dict)

    def expect(self, points: Sequence[Point]) -> list[Expected]:
        """Values of the metrics at each point."""
        missing = [point for point in dict.fromkeys(points) if point not in self.found]
        for at in range(0, len(missing), _AT_ONCE):
            some = missing[at : at + _AT_ONCE]
            self.found |= zip(some, self._run(some), strict=True)
        return [self.found[point] for point in points]

    def _run(self, points: Sequence[Point]) -> list[Expected]:
        cells = [cell_of(self.plan, levels_of(self.space, point)) for point in points]
        runs: list[tuple[int, _core.Machine, ResolvedWorkload]] = []
        for at, cell in enumerate(cells):
            try:
                machine = self._machine(self._text_of(cell))
                runs.append((at, machine, self._workload(cell, machine)))
            except _core.ConfigError:
                continue  # settings that the model does not have
        texts = _core.simulate_many([(machine, load.core) for _, machine, load in runs])
        found: list[Expected] = [(None,) * len(self.metrics)] * len(points)
        for (at, _, load), text in zip(runs, texts, strict=True):
            values = of_figures(load.spec, read_figures(text).run)
            found[at] = tuple(values.get(name) for name in self.metrics)
        return found

    def _machine(self, text: str) -> _core.Machine:
        return _core.Machine.parse(text, self.plan.source)

    def _text_of(self, cell: Cell) -> str:
        knobs = {name: value for name, value in cell.settings.knobs.items() if has_equivalent(name)}
        return with_fields(self.text, cell.settings.machine, knobs, self.plan.source)

    def _workload(self, cell: Cell, machine: _core.Machine) -> ResolvedWorkload:
        """The cell's workload, so short that the model makes about `REQUESTS` requests."""
        options = tuple(sorted(cell.settings.options.items()))
        if options not in self._workloads:
            assert cell.settings.workload is not None
            whole = self.sources.workload(cell.settings.workload, list(options))
            self._workloads[options] = _shortened(whole, machine)
        return self._workloads[options]


def _shortened(whole: ResolvedWorkload, machine: _core.Machine) -> ResolvedWorkload:
    """Without a ramp, and long enough for `REQUESTS` requests; as it is if it does not end by time."""
    loads = whole.spec.loads
    if len(loads) != 1 or loads[0].end.time_ns is None:
        return whole
    seconds = loads[0].end.time_ns / 1e9
    brief = min(seconds, 0.01)
    while True:
        found = whole.with_overrides([("seconds", f"{brief:.6f}"), ("ramp", "0s")])
        if brief >= seconds:
            return found
        requests = read_figures(_core.simulate_many([(machine, found.core)])[0]).run.requests
        if requests >= REQUESTS / 2:
            return found
        brief = min(seconds, brief * max(2.0, min(20.0, REQUESTS / max(1, requests))))


def levels_of(space: Space, point: Point) -> dict[str, str]:
    """The levels of a point; the first one where it has no effect."""
    return {axis.name: axis.labels[max(0, level)] for axis, level in zip(space.axes, point, strict=True)}


def prior_of(plan: Plan, space: Space, sources: Sources, stored: Mapping[str, Any] | None) -> Prior | None:
    """The model of a plan; None: it names none. `stored`: as `stored_of` gave it when the search was begun; None: the
    settings are screened now. Raises Usage.
    """
    assert plan.search is not None
    assert plan.trials.metric is not None
    if plan.search.prior is None:
        return None
    target = sources.target(plan.search.prior)
    if not isinstance(target, MachineTarget):
        raise Usage(f"{plan.source}: search.prior: {plan.search.prior} is not a modelled machine")
    if plan.search.also:
        raise Usage(f"{plan.source}: search.prior: a search for several objectives uses no model; leave it out")
    if plan.always.load:
        raise Usage(f"{plan.source}: search.prior: a model cannot run a command; leave it out, or give a workload")
    metrics = (plan.trials.metric, *(one.metric for one in plan.search.limits))
    model = Model(plan, space, target.read(), sources, metrics)
    if stored is not None:
        model.found |= {
            tuple(point): tuple(values) for point, values in zip(stored["points"], stored["values"], strict=True)
        }
        return Prior(list(model.found), model.expect)
    return Prior(_screened(plan, space, model), model.expect)


def _screened(plan: Plan, space: Space, model: Model) -> list[Point]:
    """Every point of a small space; of a large one random points, and the neighbours of the best."""
    assert plan.search is not None
    if space.size <= MOST:
        points = list(space.every())
        model.expect(points)
        return points
    by = random.Random(f"{plan.seed}/model")
    draws = (space.draw(by) for _ in range(MOST // 2))
    points = list(dict.fromkeys(point for point in draws if point is not None))
    sign = 1 if plan.search.higher else -1
    for _ in range(_ROUNDS):
        values = dict(zip(points, model.expect(points), strict=True))
        known = [point for point in points if values[point][0] is not None]
        best = sorted(known, key=lambda point: -sign * (values[point][0] or 0.0))[:_BEST]
        points = list(dict.fromkeys([*points, *(other for point in best for other in space.neighbours(point))]))
    model.expect(points)
    return points


def stored_of(prior: Prior | None) -> dict[str, Any] | None:
    """The screened settings with their values as plain data, which `prior_of` takes."""
    if prior is None:
        return None
    values = prior.expect(prior.screened)
    return {"points": [list(point) for point in prior.screened], "values": [list(one) for one in values]}
