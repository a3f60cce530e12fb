"""How a load is made, and which of several it is."""

from __future__ import annotations

from dataclasses import dataclass

from spindle.host.outputs import Output
from spindle.run.status import StatusReports


@dataclass(frozen=True)
class Making:
    """How the load is made."""

    engine: str = "auto"
    sqpoll: bool = False
    iopoll: bool = False
    timestamps: str = "request"
    tolerate_errors: bool = False
    cpus: tuple[int, ...] | None = None
    """Workers are pinned to these one after another."""
    cpus_shared: bool = False
    """Each worker may run on all of them instead."""
    interval_ns: int = 1_000_000_000
    """Length of an interval of the series."""
    log: Output | None = None
    """Every completion is written to this file."""
    status: StatusReports | None = None
    """Hears of the run while it goes on."""


@dataclass(frozen=True)
class Part:
    """Which of the loads that a target was opened for is run."""

    first_stream: int = 0
    """Streams of the loads before it: the target has a file for each stream of all."""
    drop_caches: bool = True
    """The target's own pages are dropped from the page cache before it."""
    name: str | None = None
    """Of a phase."""
    read_back: bool = True
    """What was written is read back after it, where it is verified."""

    def file_of(self, output: Output | None) -> Output | None:
        """A file of this load's own: `log.csv` becomes `log-NAME.csv` where there are several."""
        if output is None or self.name is None:
            return output
        return output.named(f"{output.path.stem}-{self.name}{output.path.suffix}")


WHOLE = Part()
AS_USUAL = Making()
