"""Options of the load engine, and the part of a load sequence."""

from __future__ import annotations

from dataclasses import dataclass

from spindle.host.outputs import Output
from spindle.run.status import StatusReports


@dataclass(frozen=True)
class EngineOptions:
    """Options of the load engine."""

    engine: str = "auto"
    sqpoll: bool = False
    iopoll: bool = False
    timestamps: str = "request"
    tolerate_errors: bool = False
    cpus: tuple[int, ...] | None = None
    """Workers are pinned to these CPUs in turn."""
    cpus_shared: bool = False
    """True if each worker may run on all of them instead."""
    interval_ns: int = 1_000_000_000
    """Length of an interval of the series."""
    log: Output | None = None
    """File for every completion."""
    status: StatusReports | None = None
    """Receives status reports during the run."""


@dataclass(frozen=True)
class LoadPart:
    """One of the loads that a target was opened for."""

    first_stream: int = 0
    """Number of streams in the loads before it: the target has a file for each stream of all."""
    drop_caches: bool = True
    """True if the target's own pages are dropped from the page cache first."""
    name: str | None = None
    """Name of a phase."""
    read_back: bool = True
    """True if written blocks are read back after it, if it verifies."""

    def file_of(self, output: Output | None) -> Output | None:
        """The file of this load: `log.csv` becomes `log-NAME.csv` if there are several."""
        if output is None or self.name is None:
            return output
        return output.named(f"{output.path.stem}-{self.name}{output.path.suffix}")


WHOLE = LoadPart()
AS_USUAL = EngineOptions()
