"""Runs one trial: on a modelled machine, on a real target, or with a user's command as the load."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from spindle.campaign import commands, scratch
from spindle.campaign.bounds import BoundWatch
from spindle.campaign.loads import RunningLoad, loads, observe
from spindle.campaign.plan import Limit, Load
from spindle.campaign.prepare import ReadyCell
from spindle.host.signals import Stopped
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles
from spindle.knobs.session import IN_FORCE, Session
from spindle.knobs.undo import State
from spindle.result.record import PhasesRecord, Record, RunRecord
from spindle.run import phases
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.engine import EngineOptions
from spindle.run.errors import RunFailed
from spindle.run.files import OF_A_RUN, ChosenSize, own_file, own_files
from spindle.run.preparation import PreflightOptions, calm_machine
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LoadRunner
from spindle.run.targets import Opening
from spindle.run.watch import Watch
from spindle.store import Recording

_Made = tuple[TestFile | TestFiles | None, ChosenSize | None]


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial."""

    record: Record
    recording: Recording | None = None
    broken: str = ""
    """The bound that it broke, so that it was ended; empty: it ran to its end."""


class SettingNotInForce(RunFailed):
    """The kernel changed a value of a setting: another attempt would give the same."""


@dataclass
class TrialContext:
    """State that lasts from trial to trial: consent, test files, a running load."""

    campaign: str
    """Its id."""
    consent: Consent
    engine_options: EngineOptions
    preflight_options: PreflightOptions
    watch: Watch
    _stack: ExitStack
    _load: Callable[[Load, str, Mapping[str, str]], RunningLoad]
    _files: dict[tuple[str, int], TestFile]

    def carry_out(self, prepared: ReadyCell, seed: int, label: str, limits: Sequence[Limit] = ()) -> TrialResult:
        """Run a trial; it is ended if it breaks one of `limits`. Raises RunFailed, `_core.RunError`, TargetError;
        Stopped.
        """
        if prepared.on.is_modelled:
            return TrialResult(simulated(prepared, seed, self.engine_options, self.watch, label))
        with ExitStack() as stack:
            made = self._made(prepared, seed, stack)
            stack.enter_context(self._knobs(prepared))
            environment = {"SPINDLE_TARGET": prepared.target, "SPINDLE_CELL": prepared.cell.key}
            settings = prepared.settings
            stack.enter_context(
                commands.around(self.campaign, settings.setup, settings.teardown, prepared.target, environment)
            )
            bounds = BoundWatch(limits)
            if prepared.load is not None:
                running = self._load(prepared.load, prepared.target, environment)
                with calm_machine(Path(prepared.target), self.preflight_options, self.watch) as calm:
                    observed = observe(
                        running, prepared.load, prepared.target, prepared.cell.label, seed, self.watch, label, calm,
                        bounds.look,
                    )  # fmt: skip
                return TrialResult(calm.outcome_in(observed.record), observed.recording, bounds.reason)
            record = self._measured(prepared, seeded(prepared, seed), made, label, bounds)
            return TrialResult(record, broken=bounds.reason)

    def _measured(
        self, prepared: ReadyCell, workload: ResolvedWorkload, made: _Made, label: str, bounds: BoundWatch
    ) -> Record:
        file, sized = made
        options = bounds.watching(self.engine_options, workload)
        consent = self.consent if file is None and prepared.writes else NO_CONSENT
        with (
            calm_machine(prepared.on.place, self.preflight_options, self.watch) as calm,
            prepared.on.open(workload, self.watch, Opening(consent, options, calm, file, sized)) as opened,
        ):
            if file is None and prepared.writes:
                self._consented()
            record = _whole(opened, workload, label, bounds)
        return calm.outcome_in(record)

    def _consented(self) -> None:
        self.consent = self.consent.after_writing()

    def _made(self, prepared: ReadyCell, seed: int, stack: ExitStack) -> _Made:
        """The trial's files, with the reason for their size."""
        folder = Path(prepared.target)
        if prepared.filesystem is not None:
            folder = stack.enter_context(
                scratch.made(self.campaign, prepared.target, prepared.filesystem, self.consent, self.watch)
            )
            self._consented()
        if prepared.makes_files:
            return stack.enter_context(own_files(folder, seeded(prepared, seed), OF_A_RUN, self.watch))
        if prepared.filesystem is not None:
            size = scratch.file_bytes(folder, prepared.filesystem.size)
            return stack.enter_context(own_file(folder, size, self.watch)), None
        return self._kept_file(prepared), None

    def _kept_file(self, prepared: ReadyCell) -> TestFile | None:
        """The test file, kept from trial to trial."""
        if prepared.create_bytes is None:
            return None
        asked = prepared.target, prepared.create_bytes
        if asked not in self._files:
            for other in [one for one in self._files if one[0] == prepared.target]:
                self._files.pop(other).remove()
            self._files[asked] = self._stack.enter_context(own_file(Path(asked[0]), asked[1], self.watch))
        return self._files[asked]

    @contextmanager
    def _knobs(self, prepared: ReadyCell) -> Iterator[None]:
        wanted = prepared.knobs()
        if not wanted:
            yield
            return
        session = Session("campaign")
        try:
            with session:
                for made in session.change(wanted):
                    if made.outcome not in IN_FORCE:
                        raise SettingNotInForce(str(made))
                    for line in made.surprises():
                        self.watch.say(f"spindle: {line}")
                yield
        finally:
            for item in session.undone:
                if item.state is State.FAILED:
                    self.watch.say(f"spindle: {item}; `spindle restore` tries again")


@contextmanager
def workshop(
    campaign: str, consent: Consent, engine_options: EngineOptions, preflight_options: PreflightOptions, watch: Watch
) -> Iterator[TrialContext]:
    """Everything it made is removed at the end."""
    with ExitStack() as stack:
        load = stack.enter_context(loads(campaign))
        stack.callback(_clear, campaign)
        yield TrialContext(campaign, consent, engine_options, preflight_options, watch, stack, load, {})


def _clear(campaign: str) -> None:
    try:
        scratch.clear(campaign)
    except RunFailed as error:
        raise RunFailed(f"{error}; all trials are stored, `spindle campaign resume` removes it") from None


def simulated(
    prepared: ReadyCell,
    seed: int,
    engine_options: EngineOptions,
    watch: Watch,
    label: str,
    known: Mapping[str, str] | None = None,
) -> Record:
    """A trial on a modelled machine. `known`: figures of its loads, as in `Opening`."""
    workload = seeded(prepared, seed)
    with prepared.on.open(workload, watch, Opening(engine_options=engine_options, known=known)) as opened:
        return _whole(opened, workload, label)


def seeded(prepared: ReadyCell, seed: int) -> ResolvedWorkload:
    """The workload with the trial's seed, unless the plan sets one."""
    assert prepared.workload is not None
    if "seed" in prepared.settings.options:
        return prepared.workload
    return prepared.workload.with_overrides([("seed", str(seed))])


def _whole(
    opened: LoadRunner, workload: ResolvedWorkload, label: str, bounds: BoundWatch | None = None
) -> RunRecord | PhasesRecord:
    """Run the whole trial; raises if it was cut short, but by a bound."""
    done = phases.whole(opened, workload, label)
    if done.stopped and not (bounds is not None and bounds.reason):
        raise Stopped(signal.SIGINT)
    return done.record
