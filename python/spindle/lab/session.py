"""`exec` and `shell`: a command, or a person, in the lab."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spindle import _core

from . import initramfs
from .assembly import setup_of
from .errors import LabError
from .load import cpu_of_children_s
from .machine import CLOCK_READING_NS, ERRORS, Boot, running
from .report import BootReport

LEAVE = 0x1D
"""Ctrl-]: ends the lab at once, as in telnet."""


@dataclass(frozen=True)
class Outcome:
    """A command that has ended."""

    status: int | None
    """Its exit status; none if the power was cut before."""
    boot: BootReport
    cpu_s: float
    """CPU time of the kernel and all that ran in it."""
    trace: str | None
    """Each request at the drives as CSV, if asked for."""


def execute(
    machine: _core.Machine,
    command: Sequence[str],
    write: Callable[[bool, bytes], None],
    memory_mib: int = 1024,
    programs: Sequence[str] = (),
    is_traced: bool = False,
    is_assembled: bool = False,
    faults: Sequence[str] = (),
    time_limit_s: float | None = None,
    disks: Path | None = None,
    version: str | None = None,
    clock_reading_ns: int = CLOCK_READING_NS,
) -> Outcome:
    """Run a command in the lab, which `programs` of this system are brought into; `is_assembled`: after the machine's
    array and settings are made. `write` receives its output as it comes: (true for standard error, bytes). `faults`,
    `time_limit_s`, `disks`, `version` and `clock_reading_ns`: see `machine.Boot`. Raises LabMissing or LabError.
    """
    todo = initramfs.for_command(command, programs, _first(machine, is_assembled))
    boot = Boot(
        machine,
        todo,
        memory_mib,
        is_traced=is_traced,
        faults=tuple(faults),
        time_limit_s=time_limit_s,
        disks=disks,
        version=version,
        clock_reading_ns=clock_reading_ns,
    )
    before = cpu_of_children_s()
    with running(boot) as lab:
        for port, data in lab.output():
            write(port == ERRORS, data)
        report = lab.end()
        trace = lab.lab.trace() if is_traced else None
    return Outcome(lab.status, report, cpu_of_children_s() - before, trace)


def _first(machine: _core.Machine, is_assembled: bool) -> str:
    return setup_of(machine).text() if is_assembled else ""


def shell(
    machine: _core.Machine, memory_mib: int = 1024, is_assembled: bool = False, version: str | None = None
) -> int:
    """Give a prompt in the lab at this terminal; its exit status. Raises LabMissing or LabError."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise LabError("a prompt needs a terminal; `spindle lab exec MACHINE -- COMMAND` runs a command without one")
    columns, rows = os.get_terminal_size(sys.stdin.fileno())
    boot = Boot(
        machine,
        initramfs.for_shell(columns, rows, _first(machine, is_assembled)),
        memory_mib,
        version=version,
        is_interactive=True,
    )
    with running(boot) as lab, _raw_terminal(sys.stdin.fileno()), _keyboard(lab.lab, lab.process.kill):
        for _, data in lab.output():
            os.write(sys.stdout.fileno(), data)
        lab.end()
    assert lab.status is not None
    return lab.status


@contextmanager
def _raw_terminal(fd: int) -> Iterator[None]:
    before = termios.tcgetattr(fd)
    tty.setraw(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


@contextmanager
def _keyboard(lab: _core.Lab, leave: Callable[[], None]) -> Iterator[None]:
    """Hand over what is typed, on a thread of its own."""
    end, stop = os.pipe()

    def hand_over() -> None:
        while True:
            ready, _, _ = select.select([sys.stdin, end], [], [])
            if end in ready:
                return
            typed = os.read(sys.stdin.fileno(), 4096)
            if not typed:
                return
            if LEAVE in typed:
                leave()
                return
            lab.write(typed)

    thread = threading.Thread(target=hand_over, daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(stop)
        thread.join()
        os.close(end)
