"""The lab for the command line: machines by name, and signals that end it cleanly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spindle import _core
from spindle.host.signals import unwinding
from spindle.lab import initramfs, kernel, load, session
from spindle.lab import source as kernel_source
from spindle.run.simulate import machine_text


def build(
    source: Path | None, hz: int, jobs: int, say: Callable[[str], None], version: str | None = None
) -> dict[str, Any]:
    """Build the kernel of a version (`6.12`) and collect the programs, unless they are there: their version, HZ and
    paths. `say` receives the progress. Raises `spindle.Error`.
    """
    found = kernel_source.find(source, version)
    programs = initramfs.build()
    agent = load.build_agent()
    built = kernel.build(found, hz, jobs, say)
    return {
        "version": built.version,
        "hz": built.hz,
        "kernel": str(built.program),
        "programs": str(programs),
        "agent": str(agent),
    }


def execute(
    machine: str,
    command: Sequence[str],
    write: Callable[[bool, bytes], None],
    memory_mib: int,
    programs: Sequence[str],
    is_traced: bool,
    is_assembled: bool = False,
    faults: Sequence[str] = (),
    time_limit_s: float | None = None,
    disks: Path | None = None,
    version: str | None = None,
) -> session.Outcome:
    """Boot a machine, a file or a name of the catalogue, and run a command in it (`lab.session.execute`). Raises
    `spindle.Error`.
    """
    with unwinding():
        return session.execute(
            _machine(machine),
            command,
            write,
            memory_mib,
            programs,
            is_traced,
            is_assembled,
            faults,
            time_limit_s,
            disks,
            version,
        )


def shell(machine: str, memory_mib: int, is_assembled: bool = False, version: str | None = None) -> int:
    """Boot a machine and give a prompt in it at this terminal; its exit status. Raises `spindle.Error`."""
    with unwinding():
        return session.shell(_machine(machine), memory_mib, is_assembled, version)


def _machine(name: str) -> _core.Machine:
    return _core.Machine.parse(machine_text(name), name)
