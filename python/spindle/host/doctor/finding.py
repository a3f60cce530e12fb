"""What the doctor tells: findings with their evidence and remedy, and what it could not judge."""

from __future__ import annotations

import shlex
from enum import StrEnum

import msgspec

FORMAT = 1


class Severity(StrEnum):
    """How bad it is. From `warn` on the exit status is 1."""

    NOTE = "note"
    """Worth knowing; harmless today, or a matter of taste."""
    WARN = "warn"
    """Costs performance, or will."""
    CRITICAL = "critical"
    """Data is at risk."""

    @property
    def rank(self) -> int:
        """Larger is worse."""
        return list(Severity).index(self)


class Phase(StrEnum):
    """When a step may be done: data is made safe before anything is tuned, what destroys comes last."""

    LOOK = "look"
    """Reads only."""
    PROTECT = "protect"
    """Restores redundancy, or keeps writes from being lost."""
    TUNE = "tune"
    """Changes a setting while the machine runs; can be put back."""
    KEEP = "keep"
    """Makes it last over a reboot."""
    REBUILD = "rebuild"
    """Destroys what is there, or takes it away for a while."""


class Needs(StrEnum):
    """What a step must not be done without."""

    BACKUP = "backup"
    """What is on it is lost."""
    OFFLINE = "offline"
    """Unmounted, stopped, or the machine powered down."""
    HARDWARE = "hardware"
    """A part must be replaced or moved by hand."""
    EDIT = "edit"
    """A file must be edited first."""


class Act(StrEnum):
    """What a step does to a part. `states.FORBIDS` says in which states of the part that hurts."""

    LOOK = "look"
    """Asks for what is known: no state forbids it."""
    READ_ALL = "read-all"
    """Reads every block: check, scrub, long self-test."""
    SAFEGUARD = "safeguard"
    """Keeps writes from being lost: flushes, write-through."""
    PACE = "pace"
    """Changes how fast an array works on itself."""
    SETTING = "setting"
    """Changes a setting of a device or a mount."""
    METADATA = "metadata"
    """Writes what an array or a file system keeps of itself."""
    DROP = "drop"
    """Takes a faulty member out of an array."""
    ADD = "add"
    """Fills a missing place of an array: a rebuild begins."""
    REPLACE = "replace"
    """Copies a member that still works to a new one."""
    MEND = "mend"
    """Repairs by hand what is broken already: no state forbids it."""
    REWORK = "rework"
    """Unplugs, moves, reshapes or makes anew."""


_USUAL_ACT = {
    Phase.LOOK: Act.LOOK,
    Phase.PROTECT: Act.SAFEGUARD,
    Phase.TUNE: Act.SETTING,
    Phase.KEEP: Act.SETTING,
    Phase.REBUILD: Act.REWORK,
}


class Step(msgspec.Struct, kw_only=True, frozen=True):
    """A part of the remedy."""

    phase: Phase
    about: str
    """What it does, in a line."""
    commands: list[str] = []
    """For a shell, as root."""
    needs: list[Needs] = []
    act: Act | None = None
    """What it does to the part; None: what is usual for its phase."""
    on: list[str] = []
    """The parts it is done to, when that is not the finding's."""
    waits: list[str] = []
    """States in which it would hurt, as they are now: not to be done before they have passed."""

    @property
    def does(self) -> Act:
        """What it does to the part."""
        return self.act or _USUAL_ACT[self.phase]


class Finding(msgspec.Struct, kw_only=True):
    """Something that is wrong with one part of the stack."""

    rule: str
    object: str
    """The part, as `spindle inspect` names it: sda1, md0, fs:/srv, 0000:04:00.0/p2."""
    severity: Severity
    summary: str
    evidence: str
    """What was seen, in numbers."""
    why: str
    effect: str
    """What it costs, or what mending it brings."""
    numbers: dict[str, float] = {}
    """The evidence for programs; units are in the names."""
    steps: list[Step] = []

    def __post_init__(self) -> None:
        # As JSON has them: a count beyond 2^53 is garbage anyway.
        self.numbers = {name: float(number) for name, number in self.numbers.items()}


class Unjudged(msgspec.Struct, kw_only=True):
    """A rule that could not be applied to a part: what it needs is unknown."""

    rule: str
    object: str
    why: str


class Diagnosis(msgspec.Struct, kw_only=True):
    """Everything the doctor has to say of a stack."""

    format: int = FORMAT
    kind: str = "diagnosis"
    origin: str
    """live, or capture."""
    target: str | None = None
    workload: str | None = None
    rules: list[str] = []
    """Those applied."""
    findings: list[Finding] = []
    unjudged: list[Unjudged] = []

    @property
    def worst(self) -> Severity | None:
        """Of all findings."""
        return max((found.severity for found in self.findings), key=lambda level: level.rank, default=None)


def machine_knob(**values: object) -> list[Step]:
    """Settings of the machine (`vm__dirty_bytes` is vm.dirty_bytes): now, and at every boot."""
    words = " ".join(shlex.quote(f"{name.replace('__', '.')}={value}") for name, value in values.items())
    return [
        Step(
            phase=Phase.TUNE,
            about="set it now; `spindle restore` puts it back",
            commands=[f"spindle knobs set {words}"],
            on=["machine"],
        ),
        Step(
            phase=Phase.KEEP,
            about="set it at every boot, by sysctl.d",
            commands=[f"spindle knobs persist --yes {words}"],
            on=["machine"],
        ),
    ]


def shell(*words: object) -> str:
    """A command line of these words, whatever stands in them: a capture's names are anybody's."""
    return shlex.join(str(word) for word in words)


def knob(device: str, act: Act = Act.SETTING, **values: object) -> list[Step]:
    """Settings of a device: now, and at every boot."""
    words = " ".join(shlex.quote(f"{name.replace('__', '/')}={value}") for name, value in values.items())
    name = shlex.quote(device)
    return [
        Step(
            phase=Phase.TUNE,
            about=f"set it now; `spindle restore` puts it back ({device})",
            commands=[f"spindle knobs set {name} {words}"],
            act=act,
            on=[device],
        ),
        Step(
            phase=Phase.KEEP,
            about=f"set it at every boot, by a udev rule ({device})",
            commands=[f"spindle knobs persist --yes {name} {words}"],
            act=act,
            on=[device],
        ),
    ]
