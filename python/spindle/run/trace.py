"""The trace of a modelled run, written to a file while the run goes on."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from spindle import _core
from spindle.host.durably import part_of
from spindle.run.errors import Usage
from spindle.run.load import Forwarding

PIECE_S = 0.2
"""How long a piece is waited for."""


class TracedLoad(Forwarding):
    """A simulation whose trace goes to a file; the file takes its name when it is complete."""

    def __init__(self, load: _core.Simulation, path: Path) -> None:
        super().__init__(load)
        self._simulation = load
        self._path = path
        self._part = part_of(path)
        self._trouble: OSError | None = None
        try:
            self._file = self._part.open("xb")
        except OSError as error:
            load.stop()
            raise Usage(f"--trace {path}: {error.strerror}; name a file in a folder that can be written") from None
        self._writer = threading.Thread(target=self._write, name="trace")
        self._writer.start()

    def figures(self) -> str:
        """As `RunningLoad`; the trace is complete then."""
        self._writer.join()
        try:
            figures = self._load.figures()
            if self._trouble is not None:
                raise Usage(f"--trace {self._path}: {self._trouble.strerror}; the trace is lost, write it elsewhere")
            os.replace(self._part, self._path)
        finally:
            self._part.unlink(missing_ok=True)
        return figures

    def _write(self) -> None:
        with self._file as file:
            while (piece := self._simulation.trace_piece(PIECE_S)) is not None:
                try:
                    if self._trouble is None:
                        file.write(piece)
                except OSError as error:  # a full file system; the run itself is not to blame
                    self._trouble = error


def started(
    machine: _core.Machine, load: _core.Workload, trace: Path | None, interval_ns: int
) -> _core.Simulation | TracedLoad:
    """A simulation that has begun."""
    simulation = _core.Simulation(machine, load, trace=trace is not None, interval_ns=interval_ns)
    return simulation if trace is None else TracedLoad(simulation, trace)
