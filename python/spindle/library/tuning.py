"""`spindle tune`: the best settings for a load, from the arguments to the decision."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spindle.campaign.cells import cell_of
from spindle.campaign.execution import CheckedPlan, RunOptions, made_ready
from spindle.campaign.plan import Method
from spindle.campaign.prepare import place_of
from spindle.campaign.source import read_plan
from spindle.host.signals import unwinding_here
from spindle.knobs import asking
from spindle.knobs.catalogue import IOSCHED
from spindle.knobs.session import Session, Setting
from spindle.library.campaigns import Name, beginning, carried_out, resuming, to_resume
from spindle.library.shown import Printable
from spindle.run.errors import Usage
from spindle.run.resolve import resolve
from spindle.run.targets import on_kernel, parse
from spindle.run.watch import Watch
from spindle.store import Campaign, open_store
from spindle.store import Store as Stored
from spindle.tune.decision import Tuning, tuning_of
from spindle.tune.plan import Effort, goal_of, plan_text
from spindle.tune.space import Dimension, dimensions

if TYPE_CHECKING:
    from spindle.report.terminal.style import Style

NAME = "tune"
"""Name of the campaign, unless one is given."""


@dataclass(frozen=True, kw_only=True)
class SpaceOptions:
    """The part of the space that is searched."""

    knobs: Sequence[str] = ()
    """`NAME=RANGE`."""
    only: bool = False
    """Move nothing but these."""
    allow: Sequence[str] = ()
    kernel: bool = False
    """A modelled machine under the real kernel."""


def space_of(target: Name, workload: Name | None, load: str | None, options: SpaceOptions) -> TuneSpace:
    """The settings that a search of this target may move, and those that it leaves alone. Raises errors of one line."""
    name = os.fspath(target)
    found = parse(name)
    if options.kernel:
        found = on_kernel(found, None, "`kernel=`")
    buffered = load is not None
    if workload is not None:
        loads = resolve(os.fspath(workload)).spec.loads
        buffered = any(not stream.direct for one in loads for stream in one.streams)
    return TuneSpace(dimensions(found, options.knobs, allow=options.allow, only=options.only, is_buffered=buffered))


def planned(
    target: Name,
    workload: Name | None,
    load: str | None,
    options: SpaceOptions,
    *,
    maximise: str | None = None,
    minimise: str | None = None,
    bounds: Sequence[str] = (),
    trials: int = Effort.trials,
    confirm: int = Effort.confirm,
    method: str = Effort.method,
    seed: int = Effort.seed,
    assignments: Sequence[str] = (),
    name: str = NAME,
) -> CheckedPlan:
    """The plan of a search, every level of it checked. Raises errors of one line."""
    if (workload is None) == (load is None):
        raise Usage("give a workload, or a command with `load=`: one of them")
    if load is not None and maximise is None and minimise is None:
        raise Usage("`load=`: which figure of the device? give `maximise=`, for example device.r/s")
    goal = goal_of(maximise, minimise, bounds)
    text = plan_text(
        target=os.fspath(target),
        workload=os.fspath(workload) if workload is not None else None,
        load=load,
        kernel=options.kernel,
        dimensions=space_of(target, workload, load, options).dimensions,
        goal=goal,
        effort=Effort(trials=trials, confirm=confirm, method=Method(method), seed=seed),
    )
    return made_ready(read_plan(text, NAME, name, assignments))


class TuningResult(Printable):
    """The decision of a search, with its reasons. `print` shows it as `spindle tune` does."""

    def __init__(self, tuning: Tuning, undo: str) -> None:
        self.tuning = tuning
        """The decision, the trials, the influence of each setting."""
        self.undo = undo
        """The way there or back; empty if nothing is recommended."""

    def _data(self) -> object:
        return self.tuning.to_dict() | {"undo": self.undo}

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.tune import of_tuning

        return of_tuning(self.tuning, style, self.undo)

    def __repr__(self) -> str:
        return f"<Tuning {self.tuning.campaign.name}: {self.tuning.sentence}>"


class TuneSpace(Printable):
    """The settings that a search moves, and those that it leaves alone."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self.dimensions = dimensions

    def _data(self) -> object:
        return [one.to_dict() for one in self.dimensions]

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.tune import of_space

        return of_space(self.dimensions, style)


def tuned(
    ready: CheckedPlan,
    store: Name | None,
    means: RunOptions,
    watched: Callable[[], AbstractContextManager[Watch]],
    keeps: bool = False,
) -> TuningResult:
    """Carry out a search to its decision. Raises errors of one line."""
    with open_store(store) as opened:
        start = beginning(ready, opened, None)
        with watched() as watch:
            found = carried_out(ready, opened, start, means, watch)
        return _decided(found, opened, keeps)


def resumed(
    name: str,
    store: Name | None,
    means: RunOptions,
    watched: Callable[[], AbstractContextManager[Watch]],
    keeps: bool = False,
) -> TuningResult:
    """Go on with a search; of one that is done, its decision again. Raises errors of one line."""
    with open_store(store, create=False) as opened:
        found, ready = to_resume(name, opened)
        if found.state != "done":
            with watched() as watch:
                found = carried_out(ready, opened, resuming(found), means, watch)
        return _decided(found, opened, keeps)


def _decided(campaign: Campaign, store: Stored, keeps: bool) -> TuningResult:
    found = tuning_of(campaign, store)
    return TuningResult(found, applied(found, keeps))


def applied(found: Tuning, keeps: bool) -> str:
    """Leave the recommended knobs in force if `keeps`. Returns the sentence about the way there or back; empty if
    nothing is recommended. Raises KnobRefusal or KnobUsage, and Usage where there is nothing to set.
    """
    if not found.changes:
        return ""
    target = parse(found.plan.always.target or "")
    if target.is_modelled:
        if keeps:
            raise Usage(f"`apply=`: {target.asked} is a modelled machine; there is nothing to set")
        return "A modelled machine has nothing to set: write these settings into its file."
    wanted = recommended(found)
    words = [f"{one.address}={one.value}" for one in wanted]
    if not wanted:
        return "No knob is among these settings; everything was put back."
    if not keeps:
        return f"Everything was put back; `spindle knobs set {' '.join(words)}` sets it, `spindle restore` undoes that."
    session = Session("set")
    with unwinding_here(), session:
        session.change(wanted)
        session.keep()
    return (
        f"Set until the next boot: {', '.join(words)}. `spindle restore` puts back what was there; "
        f"`spindle knobs persist {' '.join(words)}` sets it at every boot."
    )


def recommended(found: Tuning) -> list[Setting]:
    """The knobs of a real target that a decision changes. Raises KnobUsage."""
    if not found.changes or found.winner is None:
        return []
    cell = cell_of(found.plan, found.winner)
    moved = {name.replace("iosched.", IOSCHED) for name in found.changes}
    wanted = [f"{name}={value}" for name, value in cell.settings.knobs.items() if name in moved]
    target = parse(cell.settings.target or "")
    return asking.settings(place_of(target), wanted) if not target.is_modelled else []
