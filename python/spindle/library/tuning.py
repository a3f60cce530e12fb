"""`spindle tune`: the best settings for a load, from the arguments to the decision."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from spindle.base.commands import given, shell
from spindle.campaign.cells import cell_of
from spindle.campaign.execution import CheckedPlan, RunOptions, made_ready
from spindle.campaign.plan import Method
from spindle.campaign.prepare import place_of
from spindle.campaign.source import read_plan
from spindle.cluster.choice import choice_of
from spindle.host.signals import unwinding_here
from spindle.knobs import asking
from spindle.knobs.catalogue import IOSCHED
from spindle.knobs.persist import BootFile, drafts, write
from spindle.knobs.session import Session, Setting
from spindle.library.arguments import Name, public
from spindle.library.campaigns import beginning, carried_out, resuming, to_resume
from spindle.library.options import consent_of, engine_of, preflight_of, text_of
from spindle.library.session import Progress, watched
from spindle.library.shown import Printable
from spindle.library.stores import Store
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
    machine: Name | None = None
    """A model of the target, which screens the settings; a modelled target is its own."""
    model: bool = True
    """False: no model."""


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
    maximise: str | Sequence[str] = (),
    minimise: str | Sequence[str] = (),
    bounds: Sequence[str] = (),
    trials: int | None = Effort.trials,
    confirm: int = Effort.confirm,
    method: str = Effort.method,
    seed: int = Effort.seed,
    assignments: Sequence[str] = (),
    name: str = NAME,
) -> CheckedPlan:
    """The plan of a search, every level of it checked. Raises errors of one line."""
    if (workload is None) == (load is None):
        raise Usage("give a workload, or a command with `load=`: one of them")
    if load is not None and not maximise and not minimise:
        raise Usage("`load=`: which figure of the device? give `maximise=`, for example device.r/s")
    goal = goal_of(_several(maximise), _several(minimise), bounds)
    text = plan_text(
        target=os.fspath(target),
        workload=os.fspath(workload) if workload is not None else None,
        load=load,
        kernel=options.kernel,
        dimensions=space_of(target, workload, load, options).dimensions,
        goal=goal,
        effort=Effort(trials=trials, confirm=confirm, method=Method(method), seed=seed),
        machine=_machine(target, load, options) if method == Method.GUIDED and not goal.also else None,
    )
    return made_ready(read_plan(text, NAME, name, assignments))


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _machine(target: Name, load: str | None, options: SpaceOptions) -> str | None:
    if options.machine is not None:
        if not options.model:
            raise Usage("`machine=` names a model, `model=False` wants none: one of them")
        if load is not None:
            raise Usage("`machine=`: a model cannot run a command; leave it out, or give a workload")
        return os.fspath(options.machine)
    name = os.fspath(target)
    return name if options.model and load is None and parse(name).is_modelled else None


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


@dataclass(frozen=True, kw_only=True)
class Aftermath:
    """The use of a recommendation."""

    apply: bool = False
    """Leave the recommended knobs in force."""
    persist: Sequence[str] = ()
    """Files that set them at every boot: `PERSISTS`."""
    root: Path = Path("/")
    """Folder below which these files are written."""


PUT_BACK = Aftermath()
PERSISTS = ("udev", "sysctl", "tuned")


@public
def tune(
    target: Name | None = None,
    workload: Name | None = None,
    *,
    load: str | None = None,
    maximise: str | Sequence[str] = (),
    minimise: str | Sequence[str] = (),
    bounds: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    only: bool = False,
    allow: Sequence[Literal["durability", "memory"]] = (),
    kernel: bool = False,
    machine: Name | None = None,
    model: bool = True,
    trials: int | None = None,
    confirm: int = Effort.confirm,
    method: Literal["guided", "random", "grid"] = "guided",
    seed: int = Effort.seed,
    changes: Mapping[str, object] | None = None,
    name: str = NAME,
    resume: str | None = None,
    apply: bool = False,
    persist: Sequence[Literal["udev", "sysctl", "tuned"]] = (),
    store: Store | Name | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    erase: Name | None = None,
    erase_signature: str | None = None,
    erase_stacked: bool = False,
    erase_shared: bool = False,
    confirm_erase: Callable[[str], bool] | None = None,
    engine: Literal["auto", "io_uring", "pread"] = "auto",
    cpus: Sequence[int] | None = None,
    strict: bool = False,
    wait_idle: float = 0.0,
    quiet_machine: bool = False,
    progress: Progress = False,
) -> TuningResult:
    """Search the best settings of a target for a workload, as `spindle tune`; everything is put back.

    `knobs`: ranges of settings, `{"nr_requests": "16..1024", "options.depth": "1..64"}`; `only`: no others. `bounds`:
    `["read.p99<20ms"]`. Several metrics to `maximise` and `minimise` give a front. `machine`: a model of the target,
    which screens the settings first; a modelled target is its own, unless `model` is False. `changes`: keys of the
    plan. `resume`: go on with the search of this name, or read its decision again. `apply`: leave the best settings in
    force. `persist`: write the files that set them at every boot. The rest is as of `spindle.campaign`.

    Raises `spindle.Error`; Ctrl-C too ends with one, and `resume` goes on.
    """
    means = RunOptions(
        consent=consent_of(erase, erase_signature, erase_stacked, erase_shared, confirm_erase),
        engine_options=engine_of(engine=engine, cpus=cpus),
        preflight_options=preflight_of(strict=strict, wait_idle=wait_idle, quiet_machine=quiet_machine),
        where=choice_of(workers, cluster),
    )
    after = Aftermath(apply=apply, persist=persist)
    if resume is not None:
        if target is not None:
            raise Usage("`resume=` goes on with the target and the load of then; leave them out")
        return resumed(resume, store, means, lambda: watched(progress), after)
    if target is None:
        raise Usage("tune what? give a device, a file, a folder or a modelled machine, and a workload")
    ranges = [f"{knob}={text}" for knob, text in (knobs or {}).items()]
    space = SpaceOptions(knobs=ranges, only=only, allow=allow, kernel=kernel, machine=machine, model=model)
    ready = planned(
        target, workload, load, space, maximise=maximise, minimise=minimise, bounds=bounds, trials=trials,
        confirm=confirm, method=method, seed=seed, name=name,
        assignments=[f"{key}={text_of(value)}" for key, value in (changes or {}).items()],
    )  # fmt: skip
    return tuned(ready, store, means, lambda: watched(progress), after)


def tuned(
    ready: CheckedPlan,
    store: Store | Name | None,
    means: RunOptions,
    watched: Callable[[], AbstractContextManager[Watch]],
    after: Aftermath = PUT_BACK,
) -> TuningResult:
    """Carry out a search to its decision. Raises errors of one line."""
    with _opened(store) as opened:
        start = beginning(ready, opened, None)
        with watched() as watch:
            found = carried_out(ready, opened, start, means, watch)
        return _decided(found, opened, after)


def resumed(
    name: str,
    store: Store | Name | None,
    means: RunOptions,
    watched: Callable[[], AbstractContextManager[Watch]],
    after: Aftermath = PUT_BACK,
) -> TuningResult:
    """Go on with a search; of one that is done, its decision again. Raises errors of one line."""
    with _opened(store, create=False) as opened:
        found, ready = to_resume(name, opened)
        if found.state != "done":
            with watched() as watch:
                found = carried_out(ready, opened, resuming(found), means, watch)
        return _decided(found, opened, after)


@contextmanager
def _opened(store: Store | Name | None, create: bool = True) -> Iterator[Stored]:
    if isinstance(store, Store):
        yield store.raw
        return
    with open_store(store, create=create) as opened:
        yield opened


def _decided(campaign: Campaign, store: Stored, after: Aftermath) -> TuningResult:
    found = tuning_of(campaign, store)
    return TuningResult(found, used(found, after))


def used(found: Tuning, after: Aftermath) -> str:
    """Leave the recommended knobs in force, write the files that do so at boot, as asked. Returns the sentence about
    the way there or back; empty if nothing is recommended. Raises KnobRefusal or KnobUsage, and Usage where there is
    nothing to set.
    """
    if found.front and (after.apply or after.persist):
        raise Usage("`apply=` and `persist=`: a front has no single best; `spindle knobs set` sets those you choose")
    if not found.changes:
        return ""
    target = parse(found.plan.always.target or "")
    if target.is_modelled:
        for name, asked in (("apply=", after.apply), ("persist=", after.persist)):
            if asked:
                raise Usage(f"`{name}`: {target.asked} is a modelled machine; there is nothing to set")
        return "A modelled machine has nothing to set: write these settings into its file."
    wanted = recommended(found)
    if not wanted:
        return "No knob is among these settings; everything was put back."
    files = _boot_files(wanted, after)
    words = " ".join(f"{one.address}={one.value}" for one in wanted)
    said = [f"Everything was put back; `spindle knobs set {words}` sets it, `spindle restore` undoes that."]
    if after.apply:
        session = Session("set")
        with unwinding_here(), session:
            session.change(wanted)
            session.keep()
        said = [f"Set until the next boot: {words}. `spindle restore` puts back what was there."]
    if files:
        write(files, after.root)
        names = ", ".join(str(one.path) for one in files)
        removes = shell("spindle", "knobs", "persist", *given(remove=True))
        said.append(f"Written, for every boot: {names}. `{removes}` takes it away again.")
    elif after.apply:
        said.append(f"`spindle knobs persist {words}` sets it at every boot.")
    return " ".join(said)


def _boot_files(wanted: Sequence[Setting], after: Aftermath) -> list[BootFile]:
    """The files that were asked for. Raises KnobUsage or KnobRefusal, Usage if a kind has none of these settings."""
    if not after.persist:
        return []
    every = drafts(wanted, after.root, "tuned" in after.persist)
    found = []
    for kind in dict.fromkeys(after.persist):
        own = [one for one in every if one.kind == kind]
        if not own:
            names = ", ".join(one.address for one in wanted)
            raise Usage(f"`persist=` {kind}: sets none of {names}; nothing was written")
        found += own
    return found


def recommended(found: Tuning) -> list[Setting]:
    """The knobs of a real target that a decision changes. Raises KnobUsage."""
    if not found.changes or found.winner is None:
        return []
    cell = cell_of(found.plan, found.winner)
    moved = {name.replace("iosched.", IOSCHED) for name in found.changes}
    wanted = [f"{name}={value}" for name, value in cell.settings.knobs.items() if name in moved]
    target = parse(cell.settings.target or "")
    return asking.settings(place_of(target), wanted) if not target.is_modelled else []
