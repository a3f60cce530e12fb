"""The trace of a modelled run, written to a file during the run."""

from __future__ import annotations

import threading

from spindle import _core
from spindle.host.outputs import Kind, Output, begins
from spindle.run.load import LoadWrapper

KIND = Kind("a trace of Spindle", begins(b"finish_ns,drive,op,lbn,blocks,thread,arrive_ns,"))
PIECE_S = 0.2
"""Longest wait for a piece."""


class TracedLoad(LoadWrapper):
    """A simulation whose trace goes to a file; the file gets its name when it is complete."""

    def __init__(self, load: _core.Simulation, output: Output) -> None:
        super().__init__(load)
        self._simulation = load
        self._trouble: OSError | None = None
        try:
            self._draft = output.draft()
        except BaseException:
            load.stop()
            raise
        self._writer = threading.Thread(target=self._write, name="trace")
        self._writer.start()

    def figures(self) -> str:
        """See `RunningLoad`; the trace is complete then."""
        self._writer.join()
        with self._draft as draft:
            figures = self._load.figures()
            if self._trouble is not None:
                raise draft.output.failed(self._trouble)
            draft.commit()
        return figures

    def _write(self) -> None:
        while (piece := self._simulation.trace_piece(PIECE_S)) is not None:
            try:
                if self._trouble is None:
                    self._draft.file.write(piece)
            except OSError as error:  # a full file system; the run itself goes on
                self._trouble = error


def started(
    machine: _core.Machine, load: _core.Workload, trace: Output | None, interval_ns: int
) -> _core.Simulation | TracedLoad:
    """Start a simulation."""
    simulation = _core.Simulation(machine, load, trace=trace is not None, interval_ns=interval_ns)
    return simulation if trace is None else TracedLoad(simulation, trace)
