"""The answer to the question if storage is good enough: its types."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from spindle.result.record import RunRecord
from spindle.result.search import TargetSearch
from spindle.result.target import Target

Answer = Literal["yes", "no", "cannot say"]


class Number(Struct, frozen=True, kw_only=True):
    """One number of a need."""

    key: str
    value: float
    """Bytes a second, bits a second, ns, or a plain number."""
    kind: Literal["number", "bytes", "bits", "time"]
    whole: bool
    """True if it counts things."""
    words: str
    source: str | None
    """Where the default comes from; None: the user gave it."""


class Margin(Struct, frozen=True, kw_only=True):
    """The largest multiple of the need that the target takes."""

    value: float | None
    """Best estimate; None: one end is unknown."""
    least: float | None
    """The largest multiple that was shown to be within all bounds; None: not even the smallest that was tried."""
    most: float | None
    """The smallest multiple above it that was shown to be too much; None: none was."""


class Bottleneck(Struct, frozen=True, kw_only=True):
    """The limit of the load, seen at the smallest multiple that was too much."""

    kind: Literal["drives", "sharing", "latency", "group-limit", "generator"]
    """`drives`: they have no time left; `sharing`: the stream alone is within its bounds; `latency`: it is not, though
    the drives are idle part of the time; `group-limit`: a limit of a control group; `generator`: the load's own CPUs.
    """
    stream: str | None
    """The stream that is farthest from its bound."""
    words: str
    evidence: list[str]


class Drives(Struct, frozen=True, kw_only=True):
    """The number of drives with which a modelled machine would do."""

    now: int
    enough: int | None
    """None: not even the most that was tried."""
    most: int
    """The largest number that was tried."""
    level: str
    """RAID level of the array with them."""


class Assessment(Struct, frozen=True, kw_only=True):
    """Is this storage good enough for a purpose?"""

    purpose: str
    workload: str
    """Name of the preset."""
    target: Target
    need: list[Number]
    answer: Answer
    reason: str
    headline: str
    """The number of the need that grows with its multiples: `tps`."""
    margin: Margin
    bottleneck: Bottleneck | None
    drives: Drives | None
    next_steps: list[str]
    caveats: list[str]
    """Warnings of the runs at the need."""
    search: TargetSearch
    """The multiples that were tried."""
    runs: list[RunRecord]
    """The runs of all multiples, and those of one stream alone."""
