"""One simulation as plain data, which can be carried out on any computer with the same build of Spindle."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from spindle import _core

USUAL_INTERVAL_NS = 1_000_000_000
ONE_INTERVAL_NS = 3_600_000_000_000
"""The series of a run has a single interval: nobody reads it."""

Change = tuple[str, str, str]
"""Part of the machine, key, value."""


class Simulation(Struct, frozen=True):
    """A machine under a workload."""

    machine: str
    """A machine file."""
    workload: str
    """JSON of `_core.Workload`."""
    interval_ns: int = USUAL_INTERVAL_NS
    changes: tuple[Change, ...] = ()
    kind: str = ""
    """Simulations of one kind take about the same time."""

    @property
    def key(self) -> str:
        """Equal for simulations that have the same figures, with this build of Spindle."""
        parts = (build(), self.machine, self.workload, str(self.interval_ns), repr(self.changes))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Simulated(Struct, frozen=True):
    """Figures, or the reason why there are none."""

    figures: str = ""
    """JSON of `run.simulate.SimulatedRun`."""
    error: str = ""
    is_config: bool = False
    """True if machine or workload were refused."""

    def read(self) -> str:
        """The figures. Raises `_core.ConfigError` or `_core.RunError`."""
        if self.error:
            raise (_core.ConfigError if self.is_config else _core.RunError)(self.error)
        return self.figures


def simulate(one: Simulation) -> Simulated:
    """Carry out a simulation on this thread."""
    try:
        return Simulated(_core.simulate_many([parsed(one)], threads=1, interval_ns=one.interval_ns)[0])
    except _core.ConfigError as error:
        return Simulated(error=str(error), is_config=True)
    except _core.RunError as error:
        return Simulated(error=str(error))


def parsed(one: Simulation) -> tuple[_core.Machine, _core.Workload]:
    """Machine and workload as the core has them. Raises `_core.ConfigError`."""
    machine = _core.Machine.parse(one.machine, "machine", list(one.changes))
    return machine, _core.Workload.from_json(one.workload)


def simulate_here(pieces: Sequence[Simulation]) -> list[str]:
    """Figures of each, on all cores; all have one interval. Raises the first error."""
    machines: dict[tuple[str, tuple[Change, ...]], _core.Machine] = {}
    runs: list[tuple[_core.Machine, _core.Workload]] = []
    for one in pieces:
        asked = one.machine, one.changes
        if asked not in machines:
            machines[asked] = _core.Machine.parse(one.machine, "machine", list(one.changes))
        runs.append((machines[asked], _core.Workload.from_json(one.workload)))
    if not runs:
        return []
    (interval_ns,) = {one.interval_ns for one in pieces}
    return _core.simulate_many(runs, interval_ns=interval_ns)


@cache
def build() -> str:
    """Version of Spindle and content of its core: builds that differ may give other figures."""
    content = hashlib.sha256(Path(str(_core.__file__)).read_bytes()).hexdigest()
    return f"{_core.__version__} ({content[:12]})"
