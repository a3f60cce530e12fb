"""The answer of a design: the front, the recommendation, what decides, what would break it. Times ns, sizes bytes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class LoadFigure(Struct, frozen=True, kw_only=True):
    """Figures of one operation of a load in one state of the array: the worst of all seeds."""

    array: str
    period: str | None
    state: str
    """`whole`, `degraded` or `rebuilding`."""
    load: str
    operation: str
    iops: float
    bytes_per_s: float
    mean_ns: float
    p99_ns: float
    p999_ns: float
    requests: int
    """Counted in the run with the fewest."""


class ArrayAnswer(Struct, frozen=True, kw_only=True):
    """One array of a machine."""

    name: str
    """`data`, or the load that it is for."""
    drive: str
    level: str
    """Level with layout and groups."""
    drives: int
    """Without spares."""
    spares: int
    chunk: int | None
    scheduler: str
    region: float
    """Share of each drive that is used."""
    sync_speed_min: int | None
    """md's least speed of a rebuild beside a load, bytes/s; None: the kernel's."""
    needed_bytes: int
    usable_bytes: int
    rebuild_hours: float | None
    """Simulated, under the load; None: not redundant."""
    yearly_loss: float

    @property
    def words(self) -> str:
        """`8+1 x ST18000NM000J, raid6, 50 %`."""
        count = f"{self.drives}+{self.spares}" if self.spares else str(self.drives)
        used = f", first {100 * self.region:g} % of each" if self.region < 1 else ""
        return f"{count} x {self.drive}, {self.level}{used}"


class MachineAnswer(Struct, frozen=True, kw_only=True):
    """A machine that meets the need in its confirming runs."""

    arrays: list[ArrayAnswer]
    cost: float
    """Price of all drives, in the currency of the prices."""
    bays: int
    watts: float
    """Power of all drives."""
    yearly_loss: float
    """Probability of losing data of any of its arrays in a year."""
    bound_share: float | None
    """Largest ratio of a latency to its bound; None: no bound."""
    p99_ns: float
    """Largest p99 of an operation of a load, whole arrays."""
    p99_spread: float
    """Difference of two seeds in it, as a share."""

    @property
    def words(self) -> str:
        """Its arrays."""
        if len(self.arrays) == 1:
            return self.arrays[0].words
        return "; ".join(f"{array.name}: {array.words}" for array in self.arrays)


class Net(Struct, frozen=True, kw_only=True):
    """Candidates that are left after a net, all arrays together."""

    name: str
    left: int


class NeedEffect(Struct, frozen=True, kw_only=True):
    """The cheapest machine if one need is another one."""

    need: str
    change: str
    """`10 % less` ..."""
    asked: str
    cost: float | None
    """None: nothing within the limits."""
    machine: str
    """In words; empty if there is none."""
    decides: bool
    """True if the cost is another one."""


class Break(Struct, frozen=True, kw_only=True):
    """The recommendation under another condition."""

    condition: str
    broken: list[str]
    """The bounds that break, in words; empty: it still meets the need."""


class MissedNeed(Struct, frozen=True, kw_only=True):
    """A need that nothing meets."""

    array: str
    need: str
    asked: str
    best: str
    excess: float | None
    """Least miss as a share; None: unknown."""
    machine: str
    """The design that comes nearest."""


class DesignAnswer(Struct, frozen=True, kw_only=True):
    """The whole answer."""

    about: str
    need: list[str]
    """The requirement in words, a line each."""
    currency: str
    prices: str
    """File of the prices."""
    drives: list[str]
    """Drives with a price."""
    nets: list[Net]
    simulations: int
    """Simulated runs for everything below."""
    front: list[MachineAnswer]
    recommendation: MachineAnswer | None
    figures: list[LoadFigure]
    """The recommendation's confirming runs."""
    needs: list[NeedEffect]
    breaks: list[Break]
    headroom: float | None
    """Factor on the rates up to which the recommendation meets the bounds, to 5 %; None: not known."""
    missed: list[MissedNeed]
    commands: list[str]
    """Shell commands of the recommendation. Nothing was executed."""
    machines: dict[str, str]
    """Machine files of the recommendation, by array."""
    limits: list[str]
    """Parts that the model leaves out."""

    @property
    def distinct_front(self) -> list[MachineAnswer]:
        """The front without the designs that are better than a cheaper one by less than is known: see `distinct`."""
        return [
            one for one, is_kept in zip(self.front, distinct(self.front, self.recommendation), strict=True) if is_kept
        ]


KNOWN_LATENCY = 0.10
"""Least share by which latencies must differ, also where seeds differ by less: as model and kernel do."""
KNOWN_LOSS = 2.0
"""Factor by which probabilities of a loss must differ: failure rates of a model differ as much from fleet to fleet."""
KNOWN_WATTS = 0.05
"""Share by which watts must differ: a sheet says them for one load."""


def distinct(front: Sequence[MachineAnswer], best: MachineAnswer | None) -> list[bool]:
    """True for each design, cheapest first, that beats every cheaper one of them by more than is known, in latency,
    loss or watts (the epsilon-approximate front of Laumanns and others, 2002). The recommendation is always kept."""
    kept: list[MachineAnswer] = []
    found = []
    for one in front:
        is_kept = one == best or not any(_is_as_good(other, one) for other in kept)
        found.append(is_kept)
        if is_kept:
            kept.append(one)
    return found


def _is_as_good(other: MachineAnswer, one: MachineAnswer) -> bool:
    known = 1 + max(KNOWN_LATENCY, other.p99_spread, one.p99_spread)
    latency = [each.bound_share or each.p99_ns for each in (other, one)]
    return (
        latency[0] <= latency[1] * known
        and other.yearly_loss <= one.yearly_loss * KNOWN_LOSS
        and other.watts <= one.watts * (1 + KNOWN_WATTS)
    )
