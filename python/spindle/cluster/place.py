"""A place where simulations are carried out, and the simplest one: this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spindle.cluster.simulation import Simulation, simulate_here
from spindle.run.watch import Watch


class Place(Protocol):
    """Carries out simulations. May be used by several threads at once."""

    @property
    def is_here(self) -> bool:
        """True if this process computes: simulations that may not be needed are a waste."""

    @property
    def threads(self) -> int:
        """Simulations that are carried out at the same time at the moment, at least 1."""

    def figures(self, pieces: Sequence[Simulation], watch: Watch, label: str) -> list[str]:
        """Figures of each (JSON of `run.simulate.SimulatedRun`), in order. The same bytes in every place. Raises the
        first error."""


class Here:
    """This process, on all cores."""

    is_here = True
    threads = 1

    def figures(self, pieces: Sequence[Simulation], watch: Watch, label: str) -> list[str]:
        """See `Place`."""
        return simulate_here(pieces)


HERE = Here()
