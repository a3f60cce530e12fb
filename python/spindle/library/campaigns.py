"""`spindle.campaign`: alternatives compared by many trials in fair order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from spindle.campaign import execution
from spindle.campaign.execution import CheckedPlan, RunOptions, begin, checked, latest, made_ready, reopened
from spindle.campaign.outcome import Outcome, outcome_of
from spindle.campaign.preview import Preview, preview
from spindle.campaign.source import open_plan, preset_names
from spindle.cluster.choice import choice_of
from spindle.host.signals import Stopped
from spindle.library.arguments import public
from spindle.library.options import consent_of, engine_of, preflight_of, text_of
from spindle.library.session import Progress, watched
from spindle.library.shown import Printable
from spindle.library.stores import Store, open_store
from spindle.library.table import Table
from spindle.run.consent import Consent
from spindle.run.errors import RunFailed, Usage
from spindle.run.watch import Watch
from spindle.store import Campaign, StoreUsage
from spindle.store import Store as Stored

if TYPE_CHECKING:
    from spindle.report.terminal.store import CampaignLine
    from spindle.report.terminal.style import Style

Name = str | os.PathLike[str]


class CampaignResult(Printable):
    """A campaign's cells, each with the mean of its trials. `spindle.compare(store["campaign:NAME"])` says more."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        """The cells, the plan's factors, the metric."""

    @property
    def name(self) -> str:
        """Its name in the store: `campaign:NAME` selects its results."""
        return self.outcome.campaign.name

    @property
    def cells(self) -> Table:
        """A row for each cell: the factors, `mean`, `low`, `high` (units of the metric), `done`, `given_up`."""
        cells = self.outcome.cells
        columns: dict[str, list[Any]] = {
            factor: [cell.cell.get(factor) for cell in cells] for factor in self.outcome.factors
        }
        names = ("mean", "low", "high", "done", "given_up")
        return Table(columns | {name: [getattr(cell, name) for cell in cells] for name in names})

    def _data(self) -> object:
        return self.outcome.to_dict()

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.campaign import of_outcome

        return list(of_outcome(self.outcome, style))

    def __repr__(self) -> str:
        return f"<Campaign {self.name}: {self.outcome.done} trials done>"

    def _repr_html_(self) -> str:
        metric = self.outcome.metric.name if self.outcome.metric is not None else "no result yet"
        return f"<div><p><b>{escape(self.name)}</b>: {escape(metric)}</p>{self.cells._repr_html_()}</div>"


class PlanPreview(Printable):
    """A plan before it is begun: cells, trials, their order and time, and the settings that it will change."""

    def __init__(self, found: Preview) -> None:
        self.found = found

    def _data(self) -> object:
        return self.found.to_dict()

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.campaign import of_preview

        return of_preview(self.found, style)


class CampaignList(Printable):
    """The campaigns of a store, the oldest first."""

    def __init__(self, lines: Sequence[CampaignLine]) -> None:
        self.lines = lines

    def _data(self) -> object:
        return self.lines

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.campaign import of_list

        return of_list(self.lines, style)


class PlanPreset(Printable, Struct, frozen=True):
    """A plan that comes with the program."""

    name: str
    text: str

    def page(self, _style: Style) -> list[str]:
        """As `Printable`."""
        return self.text.rstrip().splitlines()


class PlanPresets(Printable):
    """All of them: name -> a line about it."""

    def __init__(self, about: Mapping[str, str]) -> None:
        self.about = about

    def _data(self) -> object:
        return [{"name": name, "about": about} for name, about in self.about.items()]

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.campaign import of_presets

        return of_presets(self.about, style)


def plan_preset(name: str) -> PlanPreset:
    """The plan of this name, or of a file. Raises `Usage`."""
    plan = open_plan(name)
    return PlanPreset(plan.name, plan.text)


def plan_presets() -> PlanPresets:
    """The plans that come with the program."""
    return PlanPresets({name: open_plan(name).about for name in preset_names()})


@public
def campaign(
    plan: Name | None = None,
    target: Name | None = None,
    *,
    resume: str | bool = False,
    load: str | None = None,
    changes: Mapping[str, object] | None = None,
    name: str | None = None,
    store: Store | Name | None = None,
    jobs: int = 1,
    workers: int | None = None,
    cluster: str | None = None,
    erase: Name | None = None,
    erase_signature: str | None = None,
    erase_stacked: bool = False,
    erase_shared: bool = False,
    confirm: Callable[[str], bool] | None = None,
    engine: Literal["auto", "io_uring", "pread"] = "auto",
    cpus: Sequence[int] | None = None,
    strict: bool = False,
    wait_idle: float = 0.0,
    quiet_machine: bool = False,
    progress: Progress = False,
) -> CampaignResult:
    """Carry out a plan of factors, trial by trial in random blocks; every trial is in the store when it is done.

    `plan`: a TOML file or a preset. `target`: in place of the plan's. `load`: a command as the load. `changes`: keys of
    the plan, `{"trials.count": 5, "chunk": "64KiB,1MiB"}`. `name`: of the campaign, instead of the plan's. `resume`: go
    on with the campaign of this name, True: the last one, instead of beginning with a plan. `jobs`: trials of a
    modelled machine at the same time. `workers`, `cluster`: simulate them in worker processes, or on a cluster of Dask
    at this address (docs/reference/cluster.md). The rest is as of `spindle.run`.

    Raises `spindle.Error`; Ctrl-C too ends with one, and `resume` goes on.
    """
    means = RunOptions(
        consent=consent_of(erase, erase_signature, erase_stacked, erase_shared, confirm),
        engine_options=engine_of(engine=engine, cpus=cpus),
        preflight_options=preflight_of(strict=strict, wait_idle=wait_idle, quiet_machine=quiet_machine),
        jobs=jobs,
        where=choice_of(workers, cluster),
    )
    opened: AbstractContextManager[Store] = nullcontext(store) if isinstance(store, Store) else open_store(store)
    with opened as kept:
        if resume:
            found, ready = to_resume(None if resume is True else resume, kept.raw)
            if found.state == "done":
                return result_of(found, kept.raw)
            start = resuming(found)
        else:
            if plan is None:
                raise Usage("which plan? give a TOML file or a preset, or `resume=` a campaign")
            ready = planned(os.fspath(plan), target, load, changes or {})
            start = beginning(ready, kept.raw, name)
        with watched(progress) as watch:
            made = carried_out(ready, kept.raw, start, means, watch)
        return result_of(made, kept.raw)


Start = Callable[[Consent], tuple[Campaign, Consent]]
"""Enters the campaign in the store, or finds it there; returns the consent that is still to be asked for."""


def planned(
    plan: str, target: Name | None, load: str | None, changes: Mapping[str, object] | Sequence[str] = ()
) -> CheckedPlan:
    """A plan whose every cell can be run. `changes`: `KEY=VALUE`, or keys and values. Raises errors of one line."""
    given = [f"{key}={text_of(value)}" for key, value in changes.items()] if isinstance(changes, Mapping) else changes
    more = [f"target={os.fspath(target)}"] if target is not None else []
    more += [f"load.command={load}"] if load is not None else []
    return made_ready(open_plan(plan, [*given, *more]))


def previewed(ready: CheckedPlan) -> PlanPreview:
    """Show what a plan would do; nothing is changed. Raises as the knobs of a device."""
    return PlanPreview(preview(ready))


def beginning(ready: CheckedPlan, store: Stored, name: str | None) -> Start:
    """Begin a new campaign. It is checked before it is entered: a campaign that is refused has not begun."""

    def start(consent: Consent) -> tuple[Campaign, Consent]:
        left = checked(ready, consent)
        return begin(ready, store, name), left

    return start


def resuming(found: Campaign) -> Start:
    """Go on with a campaign."""
    return lambda consent: (found, consent)


def to_resume(name: str | None, store: Stored) -> tuple[Campaign, CheckedPlan]:
    """A campaign of the store, None: the last one that is not done; and its plan. Raises errors of one line."""
    found = store.campaigns.get(name) if name is not None else latest(store)
    return found, reopened(found, store)


def carried_out(ready: CheckedPlan, store: Stored, start: Start, means: RunOptions, watch: Watch) -> Campaign:
    """Make all trials that are left. Raises errors of one line."""
    from dataclasses import replace

    campaign, consent = start(means.consent)
    try:
        execution.carry_out(campaign, ready, store, watch, replace(means, consent=consent))
    except Stopped as stopped:
        watch.end()
        trials = store.campaigns.trials(campaign.name)
        done = sum(one.state == "done" for one in trials)
        raise RunFailed(
            f"campaign {campaign.name}: stopped by {stopped} after {done} of {len(trials)} trials; "
            f"`spindle campaign resume {campaign.name}` goes on"
        ) from None
    return store.campaigns.get(campaign.name)


def named(name: str | None, store: Stored) -> Campaign:
    """A campaign of the store, None: the last one. Raises `StoreUsage`."""
    if name is not None:
        return store.campaigns.get(name)
    every = store.campaigns.all()
    if not every:
        raise StoreUsage("there is no campaign yet; `spindle campaign run PRESET` starts one")
    return every[-1]


def result_of(found: Campaign, store: Stored, metric: str | None = None) -> CampaignResult:
    """The results of a campaign so far; `metric`: instead of the plan's. Raises `Usage` for a missing metric."""
    return CampaignResult(outcome_of(found, store, metric))
