"""One trial, carried out: on a modelled machine, on a real target, or under a command of the user's."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from spindle.campaign import commands, scratch
from spindle.campaign.loads import RunningLoad, loads, observe
from spindle.campaign.plan import Load
from spindle.campaign.prepare import Prepared
from spindle.host.knobs.session import IN_FORCE, Session
from spindle.host.knobs.undo import State
from spindle.host.signals import Stopped
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles
from spindle.result.record import PhasesRecord, Record, RunRecord
from spindle.run import phases
from spindle.run.bench import Bench
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.errors import RunFailed
from spindle.run.files import OF_A_RUN, Sized, own_file, own_files
from spindle.run.making import Making
from spindle.run.preparation import Care, calm_machine
from spindle.run.resolve import Resolved
from spindle.run.targets import Opening
from spindle.run.watch import Watch
from spindle.store import Recording

_Made = tuple[TestFile | TestFiles | None, Sized | None]


@dataclass(frozen=True)
class Done:
    """What a trial gave."""

    record: Record
    recording: Recording | None = None


class NotInForce(RunFailed):
    """The kernel made another value of a setting: to try again would give the same."""


@dataclass
class Workshop:
    """What lives from trial to trial: consent that was given, test files, a load that runs on."""

    campaign: str
    """Its identity."""
    consent: Consent
    making: Making
    care: Care
    watch: Watch
    _stack: ExitStack
    _load: Callable[[Load, str, Mapping[str, str]], RunningLoad]
    _files: dict[tuple[str, int], TestFile]

    def carry_out(self, prepared: Prepared, seed: int, label: str) -> Done:
        """Raises RunFailed, `_core.RunError`, TargetError; Stopped if somebody asked it to end."""
        if prepared.on.is_modelled:
            return Done(simulated(prepared, seed, self.making, self.watch, label))
        with ExitStack() as stack:
            made = self._made(prepared, seed, stack)
            stack.enter_context(self._knobs(prepared))
            environment = {"SPINDLE_TARGET": prepared.target, "SPINDLE_CELL": prepared.cell.key}
            settings = prepared.settings
            stack.enter_context(
                commands.around(self.campaign, settings.setup, settings.teardown, prepared.target, environment)
            )
            if prepared.load is not None:
                running = self._load(prepared.load, prepared.target, environment)
                with calm_machine(Path(prepared.target), self.care, self.watch) as calm:
                    observed = observe(
                        running, prepared.load, prepared.target, prepared.cell.label, seed, self.watch, label, calm
                    )
                return Done(calm.outcome_in(observed.record), observed.recording)
            return Done(self._measured(prepared, seeded(prepared, seed), made, label))

    def _measured(self, prepared: Prepared, workload: Resolved, made: _Made, label: str) -> Record:
        file, sized = made
        consent = self.consent if file is None and prepared.writes else NO_CONSENT
        with (
            calm_machine(prepared.on.place, self.care, self.watch) as calm,
            prepared.on.open(workload, self.watch, Opening(consent, self.making, calm, file, sized)) as opened,
        ):
            if file is None and prepared.writes:
                self._consented()
            record = _whole(opened, workload, label)
        return calm.outcome_in(record)

    def _consented(self) -> None:
        self.consent = self.consent.after_writing()

    def _made(self, prepared: Prepared, seed: int, stack: ExitStack) -> _Made:
        """What the trial writes to beside the target, and how its size was chosen."""
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

    def _kept_file(self, prepared: Prepared) -> TestFile | None:
        """From trial to trial."""
        if prepared.create_bytes is None:
            return None
        asked = prepared.target, prepared.create_bytes
        if asked not in self._files:
            for other in [one for one in self._files if one[0] == prepared.target]:
                self._files.pop(other).remove()
            self._files[asked] = self._stack.enter_context(own_file(Path(asked[0]), asked[1], self.watch))
        return self._files[asked]

    @contextmanager
    def _knobs(self, prepared: Prepared) -> Iterator[None]:
        wanted = prepared.knobs()
        if not wanted:
            yield
            return
        session = Session("campaign")
        try:
            with session:
                for made in session.change(wanted):
                    if made.outcome not in IN_FORCE:
                        raise NotInForce(str(made))
                    for line in made.surprises():
                        self.watch.say(f"spindle: {line}")
                yield
        finally:
            for item in session.undone:
                if item.state is State.FAILED:
                    self.watch.say(f"spindle: {item}; `spindle restore` tries again")


@contextmanager
def workshop(campaign: str, consent: Consent, making: Making, care: Care, watch: Watch) -> Iterator[Workshop]:
    """Everything it made is taken down at the end."""
    with ExitStack() as stack:
        load = stack.enter_context(loads(campaign))
        stack.callback(_clear, campaign)
        yield Workshop(campaign, consent, making, care, watch, stack, load, {})


def _clear(campaign: str) -> None:
    try:
        scratch.clear(campaign)
    except RunFailed as error:
        raise RunFailed(f"{error}; all trials are kept, `spindle campaign resume` takes it away") from None


def simulated(prepared: Prepared, seed: int, making: Making, watch: Watch, label: str) -> Record:
    """A trial on a modelled machine."""
    workload = seeded(prepared, seed)
    with prepared.on.open(workload, watch, Opening(making=making)) as opened:
        return _whole(opened, workload, label)


def seeded(prepared: Prepared, seed: int) -> Resolved:
    """The workload with the trial's seed, unless the plan sets one."""
    assert prepared.workload is not None
    if "seed" in prepared.settings.options:
        return prepared.workload
    return prepared.workload.with_overrides([("seed", str(seed))])


def _whole(opened: Bench, workload: Resolved, label: str) -> RunRecord | PhasesRecord:
    """A trial that was cut short is none."""
    done = phases.whole(opened, workload, label)
    if done.stopped:
        raise Stopped(signal.SIGINT)
    return done.record
