"""Every array that can be built: one row a candidate, one column a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spindle.design.drives import Candidate
from spindle.design.requirement import Limits, Requirement, Space
from spindle.design.schemes import SCHEMES, Scheme

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ArrayDesign:
    """One array."""

    drive: str
    scheme: Scheme
    drives: int
    """Without spares."""
    spares: int
    chunk: int | None
    scheduler: str
    region: float
    is_flash: bool
    sync_speed_min: int | None = None
    """md's least speed of a rebuild beside a load, bytes/s; None: the kernel's 1000 KiB/s."""

    @property
    def sort_key(self) -> tuple[str, str, int, int, int, str, float]:
        """An order that does not depend on how it was found."""
        return (
            self.drive, self.scheme.name, self.drives, self.spares, self.chunk or 0, self.scheduler, -self.region,
        )  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """Candidates as columns of indices into `drives`, `schemes` and the lists of `space`."""

    drives: Sequence[Candidate]
    schemes: Sequence[Scheme]
    space: Space
    drive: Ints
    scheme: Ints
    count: Ints
    spare: Ints
    chunk: Ints
    scheduler: Ints
    region: Ints

    def __len__(self) -> int:
        return len(self.drive)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Grid:
        """Some of the rows."""
        columns = ("drive", "scheme", "count", "spare", "chunk", "scheduler", "region")
        picked = {name: getattr(self, name)[rows] for name in columns}
        return Grid(self.drives, self.schemes, self.space, **picked)

    def of_drive(self, name: str) -> Floats:
        """A figure of each candidate's drive: `capacity`, `price`, `outer_rate`."""
        return np.array([getattr(drive, name) for drive in self.drives], dtype=float)[self.drive]

    def of_facts(self, name: str) -> Floats:
        """The same of its facts: `watts`."""
        return np.array([getattr(drive.facts, name) for drive in self.drives], dtype=float)[self.drive]

    def of_scheme(self, name: str) -> Floats:
        """A number of each candidate's scheme."""
        return np.array([getattr(scheme, name) for scheme in self.schemes], dtype=float)[self.scheme]

    @property
    def bays(self) -> Floats:
        """Drives with their spares."""
        return (self.count + self.spare).astype(float)

    @property
    def cost(self) -> Floats:
        """Price of all drives."""
        return self.bays * self.of_drive("price")

    @property
    def watts(self) -> Floats:
        """Power of all drives; spares spin."""
        return self.bays * self.of_facts("watts")

    @property
    def usable(self) -> Floats:
        """Usable bytes."""
        copies, parity, groups = (self.of_scheme(name) for name in ("copies", "parity", "groups"))
        is_one = np.array([scheme.level in (None, "raid1") for scheme in self.schemes])[self.scheme]
        data = np.where(is_one, 1.0, self.count / copies - parity * groups)
        region = np.array(self.space.regions)[self.region]
        return np.asarray(data * self.of_drive("capacity") * region)

    def design(self, row: int) -> ArrayDesign:
        """One candidate."""
        scheme = self.schemes[self.scheme[row]]
        return ArrayDesign(
            drive=self.drives[self.drive[row]].name,
            scheme=scheme,
            drives=int(self.count[row]),
            spares=int(self.spare[row]),
            chunk=self.space.chunks[self.chunk[row]] if scheme.has_chunk else None,
            scheduler=self.space.schedulers[self.scheduler[row]],
            region=self.space.regions[self.region[row]],
            is_flash=not self.drives[self.drive[row]].is_disk,
        )


def grid(requirement: Requirement, drives: Sequence[Candidate]) -> Grid:
    """All candidates within the bays, in a fixed order."""
    space, limits = requirement.space, requirement.limits
    schemes = [of for of in SCHEMES if not space.levels or of.name in space.levels or of.level in space.levels]
    parts = [
        _part(at, drive, number, scheme, space, limits)
        for at, drive in enumerate(drives)
        for number, scheme in enumerate(schemes)
    ]
    joined = np.concatenate([part for part in parts if part is not None] or [np.empty((7, 0), dtype=np.int32)], axis=1)
    names = ("drive", "scheme", "count", "spare", "chunk", "scheduler", "region")
    return Grid(drives, schemes, space, **dict(zip(names, joined, strict=True)))


def _part(at: int, drive: Candidate, number: int, scheme: Scheme, space: Space, limits: Limits) -> Ints | None:
    """The candidates of one drive and level. Flash has no fast region, and no elevator if `none` is a choice."""
    counts = [count for count in range(scheme.least, limits.bays + 1) if scheme.allows(count)]
    spares = [spare for spare in space.spares if scheme.tolerance or not spare] or [0]
    if not counts:
        return None
    chunks = range(len(space.chunks)) if scheme.has_chunk else range(1)
    schedulers = list(range(len(space.schedulers)))
    regions = list(range(len(space.regions)))
    if not drive.is_disk:
        schedulers = [space.schedulers.index("none")] if "none" in space.schedulers else schedulers[:1]
        regions = [int(np.argmax(space.regions))]
    axes = np.meshgrid([at], [number], counts, spares, chunks, schedulers, regions, indexing="ij")
    found = np.stack([axis.reshape(-1) for axis in axes]).astype(np.int32)
    return found[:, found[2] + found[3] <= limits.bays]
