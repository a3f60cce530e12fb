"""Runs a campaign trial by trial. Each result is stored before it counts, so the next process continues with the
next trial, whatever ended this one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from spindle import _core
from spindle.base import units
from spindle.campaign import leftovers, order
from spindle.campaign.adaptive import LOOKING, STAGE, SearchSchedule, Stage, Step
from spindle.campaign.ahead import Lookahead, ahead
from spindle.campaign.cells import Cell, cell_of, cells_of, key_of, start_of
from spindle.campaign.hosts import Crew, HostTrial, OnHost, described, knobs_of, on_hosts, stored_hosts
from spindle.campaign.leftovers import RemovalFailed
from spindle.campaign.order import Schedule
from spindle.campaign.plan import HOST, Limit, Plan
from spindle.campaign.prepare import ReadyCell, Sources, prepare
from spindle.campaign.prior import prior_of, stored_of
from spindle.campaign.scratch import check_tools
from spindle.campaign.source import read_plan
from spindle.campaign.trial import SettingNotInForce, TrialResult, seeded, workshop
from spindle.cluster.choice import HERE, Choice
from spindle.host.errors import DeviceHeld as HeldByOthers
from spindle.host.errors import Refusal, TargetError, WrongTarget
from spindle.host.guard import StreamAccess, same_device
from spindle.host.signals import Stopped
from spindle.host.trusted import check_chosen
from spindle.knobs.errors import KnobRefusal, KnobUsage
from spindle.knobs.persist import persisted
from spindle.knobs.restore import CAMPAIGN, QUIET, restore
from spindle.knobs.undo import State
from spindle.result.record import Level, Record, RunRecord
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.engine import AS_USUAL, EngineOptions
from spindle.run.errors import RunFailed, Usage
from spindle.run.preparation import AS_IT_IS, PreflightOptions
from spindle.run.targets import MachineTarget
from spindle.run.watch import Watch
from spindle.stats.metric import main_metrics, value, values
from spindle.stats.names import absent
from spindle.store import Campaign, CampaignHold, PlannedTrial, Store, StoreUsage, Trial

LOST = "lost"
"""Key of the hosts that were lost in the last call, in the detail of a campaign."""
OVERHEAD_S = 2.5
"""Extra time of a trial on a real target: sync, the check of the machine, calibration, the store."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options for running trials, in addition to the plan."""

    consent: Consent = NO_CONSENT
    engine_options: EngineOptions = AS_USUAL
    preflight_options: PreflightOptions = AS_IT_IS
    jobs: int = 1
    """Modelled machines: trials computed at the same time."""
    where: Choice = HERE
    """Modelled machines: where trials are computed."""
    crew: Crew | None = None
    """The hosts of a plan that has hosts."""

    def __post_init__(self) -> None:
        if self.jobs > 1 and not self.where.is_here:
            raise Usage("`jobs=`: is for trials in this process; leave it out where workers compute")


@dataclass(frozen=True, kw_only=True)
class CheckedPlan:
    """A plan with all cells checked."""

    plan: Plan
    sources: Sources
    prepared: Sequence[ReadyCell]
    screened: Mapping[str, Any] | None = None
    """Settings that the model of a search has screened, as stored when it was begun."""

    @property
    def schedule(self) -> Schedule:
        """The trials."""
        return Schedule(self.plan, [one.cell for one in self.prepared])

    @cached_property
    def search(self) -> SearchSchedule:
        """The schedule of a search; settings are screened by its model."""
        return search_of(self.plan, self.sources, self.screened)

    @property
    def first(self) -> list[order.Trial]:
        """The trials that are known in advance, in order."""
        if self.plan.search is None:
            return next(self.schedule.batches(lambda cell, blocks: []))
        steps = self.search.next([])
        return [order.Trial(cell_of(self.plan, one.levels), one.block) for one in steps]

    @property
    def least(self) -> int:
        """Smallest number of trials."""
        return self.schedule.least if self.plan.search is None else self.plan.search.trials

    @property
    def most(self) -> int:
        """Largest number of trials."""
        return self.schedule.most if self.plan.search is None else SearchSchedule(self.plan).most


def made_ready(plan: Plan, sources: Sources | None = None, screened: Mapping[str, Any] | None = None) -> CheckedPlan:
    """Check all cells. Raises Usage, KnobUsage, `_core.ConfigError`: one line."""
    if sources is None:
        is_file = plan.source.endswith(".toml")
        sources = Sources(Path(plan.source).absolute().parent if is_file else None)
    return CheckedPlan(plan=plan, sources=sources, prepared=prepare(plan, cells_of(plan), sources), screened=screened)


def search_of(plan: Plan, sources: Sources, screened: Mapping[str, Any] | None) -> SearchSchedule:
    """The schedule of a search, with its model. Raises Usage."""
    schedule = SearchSchedule(plan)
    return replace(schedule, prior=prior_of(plan, schedule.space, sources, screened))


# --- begin and resume ------------------------------------------------------------------------------------------


def begin(ready: CheckedPlan, store: Store, name: str | None = None) -> Campaign:
    """Store the campaign with the known trials. Raises StoreUsage if the given name is taken."""
    plan = ready.plan
    first = _planned(ready.first) if plan.search is None else _steps(ready.search.next([]))
    detail = {
        "plan": plan.name,
        "source": plan.source,
        "assignments": list(plan.assignments),
        "sources": ready.sources.texts,
        **described(plan),
        "screened": stored_of(ready.search.prior) if plan.search is not None else None,
    }
    return store.campaigns.create(
        name or _free_name(store, plan.name), plan=plan.text, seed=plan.seed, trials=first, detail=detail
    )


def _free_name(store: Store, wanted: str) -> str:
    """`NAME`, or `NAME-2` ...; an unfinished one must be resumed instead."""
    name, number = wanted, 1
    while (there := store.campaigns.find(name)) is not None:
        if there.state != "done":
            raise StoreUsage(
                f"campaign {name}: is not done yet; `spindle campaign resume {name}` goes on, `name=` begins another"
            )
        number += 1
        name = f"{wanted}-{number}"
    return name


def reopened(campaign: Campaign, store: Store) -> CheckedPlan:
    """As it was begun: with the plan and the files of then. What the plan says is carried out, commands too:
    UntrustedFile is raised where somebody else could have written it."""
    if store.place.file is not None:
        check_chosen(store.place.file)
    detail = campaign.detail
    try:
        plan = read_plan(campaign.plan, detail["source"], detail["plan"], detail["assignments"])
        plan = on_hosts(plan, stored_hosts(detail))
        sources = Sources(texts=dict(detail["sources"]))
        screened = detail.get("screened")
    except (KeyError, TypeError):
        raise Usage(f"campaign {campaign.name}: was not made by `spindle campaign run`, so it cannot go on") from None
    return made_ready(plan, sources, screened)


def latest(store: Store) -> Campaign:
    """The last unfinished campaign."""
    for campaign in reversed(store.campaigns.all()):
        if campaign.state != "done":
            return campaign
    raise StoreUsage("no campaign is unfinished; `spindle campaign ls` lists them")


def carry_out(
    campaign: Campaign, ready: CheckedPlan, store: Store, watch: Watch, means: RunOptions | None = None
) -> None:
    """Run it from its current state to its end, or until every host is lost that has trials left. Raises StoreRefused
    if another process runs it; Stopped."""
    means = means or RunOptions()
    crew = means.crew
    with store.campaigns.hold(campaign.name, given_up=crew.given_up if crew is not None else None) as held:
        _tidy(campaign, watch)
        means = replace(means, consent=checked(ready, means.consent))
        _check_where(ready, means.where)
        held.set_state("running")
        finished = False
        try:
            _Run(ready, store, held, watch, means).to_the_end()
            finished = crew is None or not any(trial.state == "planned" for trial in held.trials())
        finally:
            detail = {**campaign.detail, LOST: dict(crew.lost)} if crew is not None else None
            held.set_state("done" if finished else "stopped", detail)


def check_crew(ready: CheckedPlan, means: RunOptions) -> None:
    """Raises Usage if a plan with hosts has no crew, one without consent to what it writes over, or options of trials
    on this machine."""
    if not ready.plan.hosts:
        return
    if means.crew is None:
        raise Usage("the trials of this campaign are carried out on hosts; give `hosts=`, the file of them")
    here: list[tuple[object, object]] = [
        (means, RunOptions(crew=means.crew, where=means.where, consent=means.consent)),
        (means.preflight_options, AS_IT_IS),
        (means.engine_options, AS_USUAL),
    ]
    for given, usual in here:
        for one in fields(given):  # type: ignore[arg-type]
            if getattr(given, one.name) != getattr(usual, one.name) and not one.name.endswith("_options"):
                name = {"wait_idle_s": "wait_idle", "sync_machine": "sync"}.get(one.name, one.name)
                raise Usage(f"`{name}=`: is for trials on this machine; leave it out with `hosts=`")
    means.crew.check([one.on.host for one in ready.prepared if isinstance(one.on, OnHost) and _destroys(one)])


def _destroys(one: ReadyCell) -> bool:
    """True if a trial on a host writes over data."""
    assert isinstance(one.on, OnHost)
    return one.writes and one.create_bytes is None and not one.on.keeps_nothing


def _check_where(ready: CheckedPlan, where: Choice) -> None:
    """Raises Usage if workers were asked for that have nothing to do."""
    if where.is_here or any(isinstance(one.on, MachineTarget) for one in ready.prepared):
        return
    given = "cluster=" if where.cluster is not None else "workers="
    raise Usage(f"`{given}`: {ready.plan.source}: none of its targets is computed by the simulator; leave it out")


def _tidy(campaign: Campaign, watch: Watch) -> None:
    """Clean up after a killed run of it."""
    for line in leftovers.take_down(campaign.id):
        watch.say(f"spindle: {line}")
    report = restore(persisted=persisted(), kinds=(CAMPAIGN, QUIET))
    for item in report.having(State.RESTORED):
        watch.say(f"spindle: restored after a campaign was killed: {item}")
    for item in report.having(State.CONFLICT, State.FAILED, State.UNKNOWN):
        watch.say(f"spindle: {item}; a killed campaign changed it, see `spindle restore`")
    for line in report.refused:
        watch.say(f"spindle: {line}")


def checked(ready: CheckedPlan, consent: Consent) -> Consent:
    """Every real target can be had with what was agreed to, or Refusal or TargetError: what is left to ask."""
    _check_names_a_target(ready, consent)
    for target, filesystem, writes in dict.fromkeys(
        (one.target, one.filesystem is not None, one.writes)
        for one in ready.prepared
        if one.on.place is not None
        and one.create_bytes is None
        and one.load is None
        and (not one.makes_files or one.filesystem is not None)
    ):
        allowed = consent if writes else NO_CONSENT
        with allowed.opened(target, [StreamAccess(write=writes, direct=not filesystem)]):
            consent = replace(consent, confirm=None) if writes else consent
    for kind in {one.filesystem.type for one in ready.prepared if one.filesystem is not None}:
        check_tools(kind)
    return consent


def _check_names_a_target(ready: CheckedPlan, consent: Consent) -> None:
    """Raises Refusal."""
    if consent.erase is not None:
        targets = {one.target for one in ready.prepared if one.on.place is not None}
        if not any(same_device(consent.erase, target) for target in targets):
            raise Refusal(f"`erase=` names {consent.erase}, which is not a target of this campaign")


# --- trial by trial --------------------------------------------------------------------------------------------------


def _planned(trials: Sequence[order.Trial]) -> list[PlannedTrial]:
    return [PlannedTrial(block=one.block, cell=dict(one.cell.levels)) for one in trials]


def _steps(steps: Sequence[Step]) -> list[PlannedTrial]:
    return [PlannedTrial(block=one.block, cell=one.levels, detail={STAGE: str(one.stage)}) for one in steps]


def step_of(plan: Plan, trial: Trial, record: Record | None) -> Step:
    """A trial of a search, with what its record says; that of a trial which broke a bound ends early. Raises Usage if
    the record lacks the metric.
    """
    assert plan.search is not None
    assert plan.trials.metric is not None
    stage, levels = Stage(trial.detail[STAGE]), trial.cell
    if record is None:
        return Step(
            stage, trial.block, levels, None, (None,) * len(plan.search.limits), (None,) * len(plan.search.also)
        )
    found = values(record)
    if (name := lacking(plan, found)) is not None:
        raise Usage(f"goal or bound: {absent(name, found)}")
    bounded = tuple(found[one.metric] for one in plan.search.limits)
    also = tuple(found[one.metric] for one in plan.search.also)
    return Step(stage, trial.block, levels, found[plan.trials.metric], bounded, also)


def lacking(plan: Plan, found: Mapping[str, float]) -> str | None:
    """A metric that the search needs and that was not measured, as where no request completed."""
    return next((name for name in plan.searched if name not in found), None)


def failed_step(plan: Plan, trial: Trial, record: Record | None) -> Step:
    """A trial of a search that was given up; `record`: of one that broke a bound. It may have no figures."""
    return step_of(plan, trial, None if record is None or lacking(plan, values(record)) is not None else record)


def ended_step(plan: Plan, trial: Trial, store: Store) -> Step:
    """A trial of a search that has ended. One that failed and has a record broke a bound."""
    has_figures = trial.run_id is not None and trial.state in ("done", "failed")
    record = store.record(trial.run_id) if has_figures and trial.run_id is not None else None
    return step_of(plan, trial, record) if trial.state == "done" else failed_step(plan, trial, record)


@dataclass
class _Run:
    ready: CheckedPlan
    store: Store
    held: CampaignHold
    watch: Watch
    means: RunOptions
    _cells: dict[str, ReadyCell] = field(init=False)
    _found: dict[str, dict[int, float]] = field(init=False)
    """Cell -> block -> value of the metric."""
    _start: str | None = field(init=False)
    """The cell of a search's start."""
    _metric: str | None = field(init=False)
    _clock: _Clock = field(init=False)
    _planned: list[order.Trial] = field(init=False, default_factory=list)
    """The stored trials, in order."""
    _steps: dict[int, Step] = field(init=False, default_factory=dict)
    """Trials of a search that have ended, by number."""

    def __post_init__(self) -> None:
        self._cells = {one.cell.key: one for one in self.ready.prepared}
        self._found = {}
        plan = self.ready.plan
        self._start = cell_of(plan, start_of(plan)).key if plan.search is not None else None
        self._metric = self.ready.plan.trials.metric
        self._clock = _Clock(self.ready)
        for trial in self.held.trials():
            if trial.state == "done" and trial.run_id is not None and self._counts:
                self._note(trial, self.store.record(trial.run_id))
            elif trial.state in ("failed", "invalid") and self.ready.plan.search is not None:
                self._steps[trial.number] = ended_step(plan, trial, self.store)

    @property
    def _counts(self) -> bool:
        """True if later trials depend on results."""
        return self.ready.plan.trials.within is not None or self.ready.plan.search is not None

    def to_the_end(self) -> None:
        """Carry out every trial that is left; of a host that is lost, trials stay planned."""
        if self.means.crew is not None:
            self._on_hosts(self.means.crew)
        else:
            self._here()
        self.watch.end()

    def _on_hosts(self, crew: Crew) -> None:
        rules = self.ready.plan.trials
        self._plan_harmless_again(crew.given_up)
        for _ in self._batches():
            while step := self._next_step(crew.lost):
                begin = time.monotonic()
                trials = [self._host_trial(one) for one in step]
                for trial, record in crew.carry_out(trials, rules, self.held, self.watch, self._label(step[0])):
                    if self._counts:
                        self._note(trial, record)
                self._clock.took(time.monotonic() - begin)
            if any(trial.state == "planned" for trial in self.held.trials()):
                return  # further batches depend on results that are missing

    def _plan_harmless_again(self, reason: str) -> None:
        """Trials that a killed process had begun, unless they may have written over data."""
        repeats = self.ready.plan.trials.repeats
        self.held.plan_again(
            [
                trial.number
                for trial in self.held.trials()
                if trial.state == "failed" and trial.reason == reason and trial.attempts <= repeats
                if not self._host_trial(trial).destroys
            ]
        )

    def _next_step(self, lost: Mapping[str, object]) -> list[Trial]:
        """The trials to begin now: the next one, and the same one of other hosts."""
        left = [one for one in self.held.trials() if one.state == "planned" and one.cell[HOST] not in lost]
        if not left:
            return []
        key = self._prepared(left[0]).cell.without_host
        alike = [one for one in left if one.block == left[0].block and self._prepared(one).cell.without_host == key]
        return [one for one in alike if one.attempts == left[0].attempts]  # a repetition has another seed

    def _host_trial(self, trial: Trial) -> HostTrial:
        prepared = self._prepared(trial)
        assert isinstance(prepared.on, OnHost)
        return HostTrial(
            trial=trial,
            host=prepared.on.host,
            workload=seeded(prepared, order.seed_of(self.ready.plan, trial.block, trial.attempts + 1)),
            create_bytes=prepared.create_bytes,
            destroys=_destroys(prepared),
            knobs=knobs_of(prepared.settings, prepared.on.target, self.ready.plan.source),
        )

    def _here(self) -> None:
        plan, means = self.ready.plan, self.means
        with (
            workshop(
                self.held.campaign.id, means.consent, means.engine_options, means.preflight_options, self.watch
            ) as shop,
            ahead(means.jobs, means.where, means.engine_options, self.watch) as computed,
        ):
            for _ in self._batches():
                while (trial := self.held.next()) is not None:
                    prepared = self._prepared(trial)
                    seed = order.seed_of(plan, trial.block, trial.attempts)
                    label, limits = self._label(trial), self._limits(trial)
                    self._look_ahead(computed, trial, prepared, seed)
                    begin = time.monotonic()
                    self._one(
                        trial,
                        lambda prepared=prepared, seed=seed, label=label, limits=limits: (  # type: ignore[misc]
                            computed.result(prepared, seed, self.watch, label)
                            or shop.carry_out(prepared, seed, label, limits)
                        ),
                    )
                    self._clock.took(time.monotonic() - begin)

    def _limits(self, trial: Trial) -> Sequence[Limit]:
        """Bounds that end a trial: only while the search looks around, and never one of the start."""
        search = self.ready.plan.search
        if search is None or trial.detail[STAGE] not in LOOKING or key_of(trial.cell) == self._start:
            return ()
        return search.limits

    def _batches(self) -> Iterator[None]:
        """Store the trials of each batch when it is their turn."""
        if self.ready.plan.search is not None:
            yield from self._asked(self.ready.search)
            return
        there = len(self.held.trials())
        for batch in self.ready.schedule.batches(self._values):
            self._planned += batch
            if len(self._planned) > there:
                self.held.extend(_planned(batch))
            yield

    def _asked(self, schedule: SearchSchedule) -> Iterator[None]:
        """Trials that a search asks for; those that were stored before a stop come first."""
        self._planned = [self._order_trial(one) for one in self.held.trials()]
        yield
        self._check_any_worked()
        while batch := schedule.next([self._steps[number] for number in sorted(self._steps)]):
            self.held.extend(_steps(batch))
            self._planned = [self._order_trial(one) for one in self.held.trials()]
            yield

    def _check_any_worked(self) -> None:
        """A search whose first trials were all given up has nothing to go by. Raises RunFailed."""
        if self._steps and all(one.value is None for one in self._steps.values()):
            first = self.held.trials()[0]
            raise RunFailed(f"the first {len(self._steps)} trials were given up; trial {first.number}: {first.reason}")

    def _order_trial(self, trial: Trial) -> order.Trial:
        return order.Trial(self._prepared(trial).cell, trial.block)

    def _values(self, cell: Cell, blocks: int) -> list[float]:
        return [number for block, number in sorted(self._found.get(cell.key, {}).items()) if block <= blocks]

    def _prepared(self, trial: Trial) -> ReadyCell:
        key = key_of(trial.cell)
        if key not in self._cells:  # one that a search asks for
            ready = self.ready
            self._cells[key] = prepare(ready.plan, [cell_of(ready.plan, trial.cell)], ready.sources)[0]
        return self._cells[key]

    def _one(self, trial: Trial, work: Callable[[], TrialResult]) -> None:
        again = trial.attempts <= self.ready.plan.trials.repeats
        try:
            done = work()
        except HeldByOthers as error:
            self._reject(trial, "failed", str(error), None, again=again)
        except (KnobRefusal, _core.ConfigError) as error:  # nothing is left changed
            if not self._is_explored(trial):
                raise
            self._reject(trial, "failed", str(error), None, again=False)
        except (RemovalFailed, Refusal, KnobUsage, WrongTarget, Usage):
            raise  # continuing would repeat it, or do harm
        except SettingNotInForce as error:
            self._reject(trial, "failed", str(error), None, again=False)
        except (RunFailed, _core.RunError, TargetError) as error:
            self._reject(trial, "failed", str(error), None, again=again)
        else:
            reason = self._invalid(done.record) or self._lacking(trial, done.record)
            if done.broken:
                self._reject(trial, "failed", done.broken, done, again=False)
            elif reason is not None:
                self._reject(trial, "invalid", reason, done, again=again)
            else:
                self.held.finish(trial, done.record, done.recording)
                if self._counts:
                    self._note(trial, done.record)

    def _is_explored(self, trial: Trial) -> bool:
        """True if a search chose its settings, so that others may still do; the start's own can take the load."""
        return self.ready.plan.search is not None and key_of(trial.cell) != self._start

    def _reject(self, trial: Trial, state: str, reason: str, done: TrialResult | None, *, again: bool) -> None:
        self.held.reject(
            trial,
            state,
            reason,
            record=done.record if done is not None else None,
            recording=done.recording if done is not None else None,
            again=again,
        )
        if not again and self.ready.plan.search is not None:
            known = done.record if done is not None and done.broken else None
            self._steps[trial.number] = failed_step(self.ready.plan, trial, known)
        then = "again" if again else "given up"
        cell = ", ".join(self._prepared(trial).cell.levels.values())
        self.watch.say(f"spindle: trial {trial.number} ({cell}) {state}: {reason}; {then}")

    def _invalid(self, record: Record) -> str | None:
        tolerated = self.ready.plan.trials.tolerate
        runs = [] if isinstance(record, RunRecord) else record.runs
        found = [*record.verdicts, *(one for run in runs for one in run.verdicts)]
        bad = [one for one in found if one.level is Level.INVALID and one.check not in tolerated]
        return f"{bad[0].check}: {bad[0].evidence}" if bad else None

    def _lacking(self, trial: Trial, record: Record) -> str | None:
        """Settings that a search chose may leave nothing to measure; the start's own must have every metric."""
        name = lacking(self.ready.plan, values(record)) if self._is_explored(trial) else None
        return None if name is None else f"its result has no `{name}`"

    def _note(self, trial: Trial, record: Any) -> None:
        if self.ready.plan.search is not None:
            self._steps[trial.number] = step_of(self.ready.plan, trial, record)
            return
        if self._metric is None:
            found = values(record)
            self._metric = main_metrics(list(found), found)[0]
        number = value(record, self._metric)
        if number is None:
            raise Usage(f"trials.metric: {absent(self._metric, values(record))}")
        self._found.setdefault(key_of(trial.cell), {})[trial.block] = number

    def _look_ahead(self, computed: Lookahead, trial: Trial, prepared: ReadyCell, seed: int) -> None:
        reach = computed.reach
        if reach:
            computed.begin(prepared, seed)
            for one in self._planned[trial.number : trial.number + reach - 1]:
                computed.begin(self._cells[one.cell.key], order.seed_of(self.ready.plan, one.block, 1))

    def _label(self, trial: Trial) -> str:
        at_once = max(1, len(self.ready.plan.hosts))
        self._clock.left = -(-(len(self._planned) - trial.number + 1) // at_once)
        levels = self._prepared(trial).cell.levels
        cell = (
            ", ".join(label for name, label in levels.items() if at_once == 1 or name != HOST) or self.ready.plan.name
        )
        attempt = f", attempt {trial.attempts}" if trial.attempts > 1 else ""
        return f"trial {trial.number} of {len(self._planned)} ({cell}{attempt}; {self._clock})"


class _Clock:
    """Time left, from the last trials."""

    def __init__(self, ready: CheckedPlan) -> None:
        self._nominal = trial_seconds(ready)
        self._took: deque[float] = deque(maxlen=20)
        self.left = 0

    def took(self, seconds: float) -> None:
        """Note the time of one trial."""
        self._took.append(seconds)

    def __str__(self) -> str:
        each = sum(self._took) / len(self._took) if self._took else self._nominal
        return f"campaign: {units.seconds(each * self.left)} left" if each is not None else f"{self.left} left"


def trial_seconds(ready: CheckedPlan) -> float | None:
    """Mean time of a trial on a real target; None: unknown in advance, as on modelled machines."""
    each = [one.seconds for one in ready.prepared]
    if any(one is None for one in each) or any(one.on.is_modelled for one in ready.prepared):
        return None
    return sum(one for one in each if one is not None) / len(each) + OVERHEAD_S


__all__ = ["CheckedPlan", "RunOptions", "Stopped", "begin", "carry_out", "latest", "made_ready", "reopened"]
