"""What a plan says: what holds for every trial, what is varied, which combinations, how often and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """Which combinations of the factors' levels are tried."""

    FULL = "full"
    """All of them."""
    PAIRWISE = "pairwise"
    """Few of them, among which every two levels of two factors meet."""
    ONE_AT_A_TIME = "one-at-a-time"
    """A baseline, and each other level by itself."""
    LIST = "list"
    """Those that are listed."""


class Order(StrEnum):
    """In which order trials are made."""

    BLOCKS = "blocks"
    """Every cell once, at random; then again: what drifts hits all alike."""
    RANDOM = "random"
    """All at random."""
    SEQUENTIAL = "sequential"
    """Cell by cell."""


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """Made anew on the scratch device for each trial."""

    type: str
    mkfs: tuple[str, ...] = ()
    """Further arguments of mkfs."""
    mount: str = ""
    """Options of mount, with commas."""
    size: str = "50%"
    """Of the test file in it: bytes, or a share of the device."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A command of the user's instead of a workload of ours."""

    command: tuple[str, ...]
    """Started again whenever it has ended; alternatives are switched while it runs."""
    interval_ns: int = 30_000_000_000
    """How long one alternative is in force."""
    settle_ns: int = 2_000_000_000
    """After a switch, not counted."""
    sample_ns: int = 1_000_000_000
    """Between two looks at the devices' counters."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a trial is made with. Values are text as on the command line."""

    target: str | None = None
    workload: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Workload keys."""
    knobs: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, object] = field(default_factory=dict)
    """Fields of the machine file by dotted path: `array.chunk`, `drive.0.model`."""
    filesystem: Mapping[str, object] = field(default_factory=dict)
    """Fields of `FileSystem` that are set."""
    create: str | None = None
    """Make the target, a test file of this size."""
    setup: tuple[tuple[str, ...], ...] = ()
    teardown: tuple[tuple[str, ...], ...] = ()
    load: Mapping[str, object] = field(default_factory=dict)
    """Fields of `Load` that are set."""

    def under(self, other: Settings) -> Settings:
        """These, with `other` going before them; commands of both, in order."""
        return Settings(
            target=other.target if other.target is not None else self.target,
            workload=other.workload if other.workload is not None else self.workload,
            options={**self.options, **other.options},
            knobs={**self.knobs, **other.knobs},
            machine={**self.machine, **other.machine},
            filesystem={**self.filesystem, **other.filesystem},
            create=other.create if other.create is not None else self.create,
            setup=self.setup + other.setup,
            teardown=other.teardown + self.teardown,
            load={**self.load, **other.load},
        )


@dataclass(frozen=True, kw_only=True)
class LevelOf:
    """One level of a factor."""

    label: str
    settings: Settings
    ignores: frozenset[str] = frozenset()
    """Factors that make no difference at this level."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """Something that is varied."""

    name: str
    levels: tuple[LevelOf, ...]

    @property
    def labels(self) -> list[str]:
        """Of its levels, in order."""
        return [level.label for level in self.levels]


@dataclass(frozen=True, kw_only=True)
class Design:
    """Which combinations."""

    kind: Kind = Kind.FULL
    baseline: Mapping[str, str] = field(default_factory=dict)
    """Factor -> label; the first level of those that are not named."""
    cells: tuple[Mapping[str, str], ...] = ()
    exclude: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """Factor -> labels; a combination is left out if it has one of them in each factor named."""


@dataclass(frozen=True, kw_only=True)
class Trials:
    """How often, in which order, and what counts as one."""

    count: int = 3
    """Of each cell; with `within` the least."""
    within: float | None = None
    """More, until the confidence interval of the mean is no further from it than this share of it."""
    at_most: int = 20
    metric: str | None = None
    """None: what tells most of the first result."""
    confidence: float = 0.95
    order: Order = Order.BLOCKS
    repeats: int = 2
    """How often a trial that failed or is invalid is made again."""
    tolerate: tuple[str, ...] = ()
    """Verdicts that may be invalid: `cache-share` ..."""
    relative_to: Mapping[str, str] = field(default_factory=dict)
    """The levels that results are told as multiples of."""

    @property
    def most(self) -> int:
        """Of each cell."""
        return self.count if self.within is None else max(self.count, self.at_most)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All of it."""

    name: str
    source: str
    """The file, for messages."""
    text: str
    """The file's."""
    assignments: tuple[str, ...] = ()
    """What was changed of it by `--set`."""
    about: str = ""
    seed: int = 1
    always: Settings = field(default_factory=Settings)
    factors: tuple[Factor, ...] = ()
    design: Design = field(default_factory=Design)
    trials: Trials = field(default_factory=Trials)

    def factor(self, name: str) -> Factor:
        """Of that name."""
        return next(one for one in self.factors if one.name == name)
