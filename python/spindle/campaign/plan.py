"""The contents of a plan: settings of every trial, factors, combinations, number and order of trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """The combinations of the factors' levels."""

    FULL = "full"
    """All combinations."""
    PAIRWISE = "pairwise"
    """Few combinations, with every pair of levels of two factors."""
    ONE_AT_A_TIME = "one-at-a-time"
    """A baseline, and each other level by itself."""
    LIST = "list"
    """The listed ones."""
    SEARCH = "search"
    """The combinations that a search asks for, one after another."""


class Order(StrEnum):
    """The order of trials."""

    BLOCKS = "blocks"
    """Every cell once in random order, then again: a drift affects all alike."""
    RANDOM = "random"
    """All trials in random order."""
    SEQUENTIAL = "sequential"
    """Cell by cell."""


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """A file system that is made on the scratch device for each trial."""

    type: str
    mkfs: tuple[str, ...] = ()
    """Further arguments of mkfs."""
    mount: str = ""
    """Options of mount, with commas."""
    size: str = "50%"
    """Size of the test file in it: bytes, or a share of the device."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A user's command instead of a workload."""

    command: tuple[str, ...]
    """Restarted whenever it ends; alternatives are switched while it runs."""
    interval_ns: int = 30_000_000_000
    """Length of an interval of one alternative."""
    settle_ns: int = 2_000_000_000
    """Time after a switch that is not counted."""
    sample_ns: int = 1_000_000_000
    """Interval between readings of the devices' counters."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a trial. Values are text as on the command line."""

    target: str | None = None
    workload: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Workload keys."""
    knobs: Mapping[str, str] = field(default_factory=dict)
    kernel: bool | str | None = None
    """Run a modelled machine under the real kernel: true, or its version."""
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
        """These settings, overridden by `other`; commands of both, in order."""
        return Settings(
            target=other.target if other.target is not None else self.target,
            workload=other.workload if other.workload is not None else self.workload,
            options={**self.options, **other.options},
            knobs={**self.knobs, **other.knobs},
            kernel=other.kernel if other.kernel is not None else self.kernel,
            machine={**self.machine, **other.machine},
            filesystem={**self.filesystem, **other.filesystem},
            create=other.create if other.create is not None else self.create,
            setup=self.setup + other.setup,
            teardown=other.teardown + self.teardown,
            load={**self.load, **other.load},
        )


@dataclass(frozen=True, kw_only=True)
class FactorLevel:
    """One level of a factor."""

    label: str
    settings: Settings
    ignores: frozenset[str] = frozenset()
    """Factors that have no effect at this level."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """A factor with its levels."""

    name: str
    levels: tuple[FactorLevel, ...]

    @property
    def labels(self) -> list[str]:
        """Labels of its levels, in order."""
        return [level.label for level in self.levels]


@dataclass(frozen=True, kw_only=True)
class Design:
    """The design: combinations and exclusions."""

    kind: Kind = Kind.FULL
    baseline: Mapping[str, str] = field(default_factory=dict)
    """Factor -> label; the first level for other factors."""
    cells: tuple[Mapping[str, str], ...] = ()
    exclude: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """Factor -> labels; a combination is left out if it has one of them in each factor named."""


@dataclass(frozen=True, kw_only=True)
class Trials:
    """Number, order and validity of trials."""

    count: int = 3
    """Trials of each cell; with `within` the minimum."""
    within: float | None = None
    """Repeat until the confidence interval is within this share of the mean."""
    at_most: int = 20
    metric: str | None = None
    """None: the most informative metric of the first result."""
    confidence: float = 0.95
    order: Order = Order.BLOCKS
    repeats: int = 2
    """Repetitions of a failed or invalid trial."""
    tolerate: tuple[str, ...] = ()
    """Verdicts that may be invalid: `cache-share` ..."""
    relative_to: Mapping[str, str] = field(default_factory=dict)
    """Levels of the reference for multiples."""

    @property
    def most(self) -> int:
        """Most trials of each cell."""
        return self.count if self.within is None else max(self.count, self.at_most)


class Method(StrEnum):
    """The way to search."""

    GUIDED = "guided"
    """A Gaussian process over all trials so far."""
    RANDOM = "random"
    GRID = "grid"
    """Every combination in order."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A bound on a metric."""

    metric: str
    upper: bool
    """True if the metric must be below the limit."""
    limit: float
    """In the metric's unit."""
    text: str
    """As it was written."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A further objective of a search."""

    metric: str
    higher: bool


HOST = "host"
"""The factor of a plan whose trials are carried out on several hosts."""


@dataclass(frozen=True, kw_only=True)
class PlanHost:
    """A host that carries out every trial of a plan, on storage of its own."""

    name: str
    target: str
    create: str | None = None
    """Size of the test file that is made in the folder `target`."""


CONFIRM_FACTOR = 3
"""Most trials that confirm, as a multiple of the least."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for the best combination. The baseline of the design is the start."""

    higher: bool = True
    """True if more of `trials.metric` is better."""
    also: tuple[Objective, ...] = ()
    """Further objectives beside `trials.metric`: the search finds a front."""
    limits: tuple[Limit, ...] = ()
    method: Method = Method.GUIDED
    trials: int = 48
    """Trials of the search, those of the start among them."""
    screen: int = 12
    """The first of them are spread evenly over the space."""
    block: int = 8
    """Trials of a block; one of them is of the start."""
    finalists: int = 5
    """Combinations that are run side by side after the search."""
    race: int = 4
    """Trials of each finalist."""
    confirm: int = 12
    """Least trials of the winner and of the start that decide."""
    confirm_most: int = CONFIRM_FACTOR * confirm
    """Most of them, where the gain that is expected is small."""
    worth: float = 0.01
    """Smallest relative gain that is worth a change."""
    prior: str | None = None
    """A modelled machine: the target as a model, which screens settings beforehand."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan."""

    name: str
    source: str
    """The file, for messages."""
    text: str
    """The text of the file."""
    assignments: tuple[str, ...] = ()
    """Changes that `set=` gave."""
    about: str = ""
    seed: int = 1
    always: Settings = field(default_factory=Settings)
    factors: tuple[Factor, ...] = ()
    design: Design = field(default_factory=Design)
    trials: Trials = field(default_factory=Trials)
    search: Search | None = None
    """Given if the design is a search."""
    hosts: tuple[PlanHost, ...] = ()
    """Empty: trials are carried out here."""

    @property
    def all_factors(self) -> tuple[Factor, ...]:
        """The factors of its cells: those of the plan, and the host."""
        if not self.hosts:
            return self.factors
        levels = tuple(FactorLevel(label=one.name, settings=Settings()) for one in self.hosts)
        return (*self.factors, Factor(name=HOST, levels=levels))

    @property
    def searched(self) -> list[str]:
        """Metrics that a search reads: of the goal, of the bounds, of further objectives."""
        assert self.search is not None
        assert self.trials.metric is not None
        return [
            self.trials.metric,
            *(one.metric for one in self.search.limits),
            *(one.metric for one in self.search.also),
        ]

    def factor(self, name: str) -> Factor:
        """The factor of that name."""
        return next(one for one in self.factors if one.name == name)
