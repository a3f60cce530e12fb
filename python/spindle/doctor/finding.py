"""The results of the doctor: findings with evidence and remedy, and parts that it could not judge."""

from __future__ import annotations

import shlex
from enum import StrEnum

import msgspec

from spindle.base.commands import given, shell

FORMAT = 1


class Severity(StrEnum):
    """Severity of a finding. From `warn` on the exit status is 1."""

    NOTE = "note"
    """Good to know; harmless today, or a matter of taste."""
    WARN = "warn"
    """Costs performance now or later."""
    CRITICAL = "critical"
    """Data is at risk."""

    @property
    def rank(self) -> int:
        """Larger is worse."""
        return list(Severity).index(self)


class Phase(StrEnum):
    """Order of the steps: data is made safe before anything is tuned, destructive steps come last."""

    LOOK = "look"
    """Reads only."""
    PROTECT = "protect"
    """Restores redundancy, or prevents the loss of writes."""
    TUNE = "tune"
    """Changes a setting while the machine runs; can be undone."""
    KEEP = "keep"
    """Makes a setting survive a reboot."""
    REBUILD = "rebuild"
    """Destroys data, or makes it unavailable for a while."""


class Needs(StrEnum):
    """Preconditions of a step."""

    BACKUP = "backup"
    """Data on the part is lost."""
    OFFLINE = "offline"
    """Unmounted, stopped, or the machine powered down."""
    HARDWARE = "hardware"
    """A part must be replaced or moved by hand."""
    EDIT = "edit"
    """A file must be edited first."""


class StepEffect(StrEnum):
    """The effect of a step on a part. `states.FORBIDS` lists the states of the part in which it does harm."""

    LOOK = "look"
    """Only queries: no state forbids it."""
    READ_ALL = "read-all"
    """Reads every block: check, scrub, long self-test."""
    SAFEGUARD = "safeguard"
    """Prevents the loss of writes: flushes, write-through."""
    PACE = "pace"
    """Changes the speed of an array's own activity."""
    SETTING = "setting"
    """Changes a setting of a device or a mount."""
    METADATA = "metadata"
    """Writes metadata of an array or a file system."""
    DROP = "drop"
    """Removes a faulty member from an array."""
    ADD = "add"
    """Fills a missing place of an array: starts a rebuild."""
    REPLACE = "replace"
    """Copies a member that still works to a new drive."""
    MEND = "mend"
    """Repairs by hand a part that is already broken: no state forbids it."""
    REWORK = "rework"
    """Unplugs, moves, reshapes or recreates."""


_USUAL_ACT = {
    Phase.LOOK: StepEffect.LOOK,
    Phase.PROTECT: StepEffect.SAFEGUARD,
    Phase.TUNE: StepEffect.SETTING,
    Phase.KEEP: StepEffect.SETTING,
    Phase.REBUILD: StepEffect.REWORK,
}


class Step(msgspec.Struct, kw_only=True, frozen=True):
    """One step of the remedy."""

    phase: Phase
    about: str
    """Description in one line."""
    commands: list[str] = []
    """Commands for a shell, as root."""
    needs: list[Needs] = []
    act: StepEffect | None = None
    """The effect on the part; None: the usual effect of its phase."""
    on: list[str] = []
    """The parts it changes, if not the finding's part."""
    waits: list[str] = []
    """Current states in which it would do harm: wait until they have passed."""

    @property
    def does(self) -> StepEffect:
        """The effect on the part."""
        return self.act or _USUAL_ACT[self.phase]


class Finding(msgspec.Struct, kw_only=True):
    """A problem with one part of the stack."""

    rule: str
    object: str
    """The part, as `spindle inspect` names it: sda1, md0, fs:/srv, 0000:04:00.0/p2."""
    severity: Severity
    summary: str
    evidence: str
    """The observed values."""
    why: str
    effect: str
    """The cost of the problem, or the gain of fixing it."""
    numbers: dict[str, float] = {}
    """The evidence for programs; the names include the units."""
    steps: list[Step] = []

    def __post_init__(self) -> None:
        # As in JSON: a count beyond 2^53 is garbage anyway.
        self.numbers = {name: float(number) for name, number in self.numbers.items()}


class UnjudgedPart(msgspec.Struct, kw_only=True):
    """A part that a rule could not judge, as values it needs are unknown."""

    rule: str
    object: str
    why: str


class Diagnosis(msgspec.Struct, kw_only=True):
    """The result of the doctor for a stack."""

    format: int = FORMAT
    kind: str = "diagnosis"
    origin: str
    """live, or capture."""
    target: str | None = None
    workload: str | None = None
    rules: list[str] = []
    """Names of the rules applied."""
    findings: list[Finding] = []
    unjudged: list[UnjudgedPart] = []

    @property
    def worst(self) -> Severity | None:
        """The worst severity of all findings."""
        return max((found.severity for found in self.findings), key=lambda level: level.rank, default=None)


def machine_knob(**values: object) -> list[Step]:
    """Steps that set values of the machine (`vm__dirty_bytes` is vm.dirty_bytes): now, and at every boot."""
    words = " ".join(shlex.quote(f"{name.replace('__', '.')}={value}") for name, value in values.items())
    return [
        Step(
            phase=Phase.TUNE,
            about="set it now; `spindle restore` undoes it",
            commands=[f"spindle knobs set {words}"],
            on=["machine"],
        ),
        Step(
            phase=Phase.KEEP,
            about="set it at every boot, by sysctl.d",
            commands=[f"spindle knobs persist {shell(*given(yes=True))} {words}"],
            on=["machine"],
        ),
    ]


def knob(device: str, act: StepEffect = StepEffect.SETTING, **values: object) -> list[Step]:
    """Steps that set values of a device: now, and at every boot."""
    words = " ".join(shlex.quote(f"{name.replace('__', '/')}={value}") for name, value in values.items())
    name = shlex.quote(device)
    return [
        Step(
            phase=Phase.TUNE,
            about=f"set it now; `spindle restore` undoes it ({device})",
            commands=[f"spindle knobs set {name} {words}"],
            act=act,
            on=[device],
        ),
        Step(
            phase=Phase.KEEP,
            about=f"set it at every boot, by a udev rule ({device})",
            commands=[f"spindle knobs persist {shell(*given(yes=True))} {name} {words}"],
            act=act,
            on=[device],
        ),
    ]
