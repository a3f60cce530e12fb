"""`spindle.campaign`: alternatives compared by many trials in fair order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from spindle.campaign import execution
from spindle.campaign.execution import (
    LOST,
    CheckedPlan,
    RunOptions,
    begin,
    check_crew,
    checked,
    latest,
    made_ready,
    reopened,
)
from spindle.campaign.hosts import on_hosts
from spindle.campaign.outcome import Outcome, outcome_of
from spindle.campaign.preview import Preview, preview
from spindle.campaign.source import open_plan, preset_names
from spindle.cluster.choice import choice_of
from spindle.fleet.crew import HostCrew
from spindle.host.signals import Stopped
from spindle.library.arguments import Name, public
from spindle.library.fleets import FleetOptions
from spindle.library.options import consent_of, engine_of, preflight_of, several, text_of
from spindle.library.session import Progress, watched
from spindle.library.shown import Printable
from spindle.library.stores import Store, open_store
from spindle.library.table import Table
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.errors import RunFailed, Usage
from spindle.run.watch import Watch
from spindle.store import Campaign, StoreUsage
from spindle.store import Store as Stored

if TYPE_CHECKING:
    from spindle.report.terminal.store import CampaignLine
    from spindle.report.terminal.style import Style


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
    def lost(self) -> Mapping[str, Mapping[str, Any]]:
        """Hosts that were lost in the last call -> `reason`, and the exit `status`; their other trials are left."""
        found: Mapping[str, Mapping[str, Any]] = self.outcome.campaign.detail.get(LOST, {})
        return found

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
    hosts: Name | None = None,
    agent: Name | None = None,
    erase: Name | Sequence[str] | None = None,
    erase_signature: str | None = None,
    erase_content: Sequence[str] = (),
    erase_stacked: bool | Sequence[str] = False,
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
    at this address (docs/reference/cluster.md). `hosts`: a file of hosts that carry out every trial, on their own
    storage (docs/reference/campaign.md#on-several-hosts); `agent`, `erase` (a list of `HOST:DEVICE`), `erase_content`
    and `erase_stacked` (lists of hosts) are then as of `spindle.fleet`. The rest is as of `spindle.run`.

    Raises `spindle.Error`; Ctrl-C too ends with one, and `resume` goes on.
    """
    crew = crew_of(hosts, erase, erase_content, erase_stacked, agent)
    means = RunOptions(
        consent=consent_here(crew, erase, erase_signature, erase_stacked, erase_shared, confirm),
        crew=crew,
        engine_options=engine_of(engine=engine, cpus=cpus),
        preflight_options=preflight_of(strict=strict, wait_idle=wait_idle, quiet_machine=quiet_machine),
        jobs=jobs,
        where=choice_of(workers, cluster),
    )
    opened: AbstractContextManager[Store] = nullcontext(store) if isinstance(store, Store) else open_store(store)
    with opened as kept:
        if resume:
            found, ready = to_resume(None if resume is True else resume, kept.raw, crew)
            if found.state == "done":
                return result_of(found, kept.raw)
            start = resuming(found)
        else:
            if plan is None:
                raise Usage("which plan? give a TOML file or a preset, or `resume=` a campaign")
            ready = planned(os.fspath(plan), target, load, changes or {}, crew)
            start = beginning(ready, kept.raw, name)
        with watched(progress) as watch:
            made = carried_out(ready, kept.raw, start, means, watch)
        return result_of(made, kept.raw)


Start = Callable[[Consent], tuple[Campaign, Consent]]
"""Enters the campaign in the store, or finds it there; returns the consent that is still to be asked for."""


def crew_of(
    hosts: Name | None,
    erase: Name | Sequence[str] | None,
    content: Sequence[str],
    stacked: bool | Sequence[str],
    agent: Name | None,
) -> HostCrew | None:
    """The hosts of a file with their consents; None: there is no file. `stacked`: True for every host of `erase`.
    Raises errors of one line."""
    if hosts is None:
        if content or agent is not None:
            raise Usage(f"`{'erase_content=' if content else 'agent='}`: goes with `hosts=`")
        return None
    agreed = [erase] if isinstance(erase, str) else [os.fspath(one) for one in _words(erase)]
    named = [word.partition(":")[0] for word in agreed] if stacked is True else stacked or ()
    return FleetOptions(
        hosts=hosts, erase=agreed, erase_content=several(content), erase_stacked=several(named), agent=agent
    ).crew()


def _words(erase: Name | Sequence[str] | None) -> Sequence[Name]:
    if erase is None:
        return ()
    return (erase,) if isinstance(erase, str | os.PathLike) else erase


def consent_here(
    crew: HostCrew | None,
    erase: Name | Sequence[str] | None,
    signature: str | None,
    stacked: bool | Sequence[str],
    shared: bool,
    confirm: Callable[[str], bool] | None,
) -> Consent:
    """The consent to overwrite a device of this machine. Raises `Usage`."""
    if crew is not None:
        if signature is not None or shared:
            given = "erase_signature=" if signature is not None else "erase_shared="
            raise Usage(f"`{given}`: is for a device of this machine; hosts take `erase_content=` and `erase_stacked=`")
        return NO_CONSENT
    devices = _words(erase)
    if len(devices) > 1 or not isinstance(stacked, bool):
        raise Usage(f"`{'erase=' if len(devices) > 1 else 'erase_stacked='}`: several go with `hosts=`")
    return consent_of(devices[0] if devices else None, signature, stacked, shared, confirm)


def planned(
    plan: str,
    target: Name | None,
    load: str | None,
    changes: Mapping[str, object] | Sequence[str] = (),
    crew: HostCrew | None = None,
) -> CheckedPlan:
    """A plan whose every cell can be run. `changes`: `KEY=VALUE`, or keys and values. `crew`: the hosts that carry it
    out. Raises errors of one line."""
    if crew is not None and target is not None:
        raise Usage("`target=`: the file of hosts says the target of each; leave it out with `hosts=`")
    given = [f"{key}={text_of(value)}" for key, value in changes.items()] if isinstance(changes, Mapping) else changes
    more = [f"target={os.fspath(target)}"] if target is not None else []
    more += [f"load.command={load}"] if load is not None else []
    return made_ready(on_hosts(open_plan(plan, [*given, *more]), crew.of_plan if crew is not None else ()))


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


def to_resume(name: str | None, store: Stored, crew: HostCrew | None = None) -> tuple[Campaign, CheckedPlan]:
    """A campaign of the store, None: the last one that is not done; and its plan. Raises errors of one line."""
    found = store.campaigns.get(name) if name is not None else latest(store)
    ready = reopened(found, store)
    if crew is not None:
        crew.check_same(ready.plan.hosts, f"campaign {found.name}")
    return found, ready


def carried_out(ready: CheckedPlan, store: Stored, start: Start, means: RunOptions, watch: Watch) -> Campaign:
    """Make all trials that are left. Raises errors of one line."""
    from dataclasses import replace

    check_crew(ready, means)
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
