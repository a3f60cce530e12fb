"""One boot of the lab: the drives' sockets, the kernel's process, and its end in all cases.

The kernel and the models take turns, so both stay on one CPU. Everything in the kernel's view is equal in all runs: its
command line, environment and addresses.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from spindle import _core
from spindle.base.errors import RunError
from spindle.lab.report import BootReport, boot_report_from_json

from . import disks, initramfs, kernel
from .errors import LabError
from .files import place
from .janitor import passing_folder
from .programs import FOR_A_BOOT, require

TERMINAL, ERRORS, CONTROL = 0, 1, 2
"""Numbers of the consoles (`crates/lab/src/lab.rs`)."""

CLOCK_READING_NS = 1
"""Time passes with each reading of the kernel's clock, so that none is equal to the one before. An unchanged User Mode
Linux has 256."""

_SILENCE = 30
"""Half seconds of real time that a kernel may take to end after its command has: its power-off can wait for ever for a
request of its own."""
_LOG_LINES = 3
"""Lines of the kernel's log in an error."""


@dataclass(frozen=True)
class Boot:
    """Everything that a boot is made from."""

    machine: _core.Machine
    todo: bytes
    """The archive that says what to do (`initramfs`)."""
    memory_mib: int = 1024
    hz: int = kernel.DEFAULT_HZ
    version: str | None = None
    """The kernel's version, `6.1` or `6.1.192` (`kernel.current`)."""
    clock_reading_ns: int = CLOCK_READING_NS
    """Time that a reading of the kernel's clock takes, and the clock's resolution."""
    is_interactive: bool = False
    is_traced: bool = False
    faults: tuple[str, ...] = ()
    """Faults and their times (`crates/lab/src/fault.rs`)."""
    time_limit_s: float | None = None
    """Virtual time at which a lab that still runs is an error."""
    disks: Path | None = None
    """Folder with the contents of the drives, a sparse file each: read at the start if they are there, written at the
    end."""


@dataclass
class Running:
    """A kernel that runs."""

    lab: _core.Lab
    process: subprocess.Popen[bytes]
    folder: Path
    log: IO[bytes]
    status: int | None = None
    """Exit status of the command, once it is known."""
    disks: Path | None = None
    _reported: bytearray = field(default_factory=bytearray)

    def output(self) -> Iterator[tuple[int, bytes]]:
        """Yield output of the consoles until the end: (console, bytes)."""
        silent = 0
        while (piece := self.lab.output(0.5)) is not None:
            port, data = piece
            silent = 0 if data else silent + 1
            if port == CONTROL:
                self._note(data)
            elif data:
                yield port, data
            elif self.process.poll() is not None:
                self._release()
            elif self.status is not None and silent > _SILENCE:
                self.process.kill()

    def end(self) -> BootReport:
        """The report, after the last output. Raises RunError or LabError."""
        try:
            report = self.lab.report()
        except RunError as error:
            raise LabError(str(error)) from None
        decoded = boot_report_from_json(report)
        if self.disks is not None:
            disks.write(self.lab, self.disks, [drive.bytes for drive in decoded.drives])
        if decoded.lost_power:
            return decoded
        self.process.wait()
        if self.status is None:
            raise LabError(f"the lab's kernel ended before the command did: {self._last_lines()}")
        return decoded

    def _note(self, data: bytes) -> None:
        self._reported += data
        for line in self._reported.splitlines():
            word, _, value = line.decode(errors="replace").partition(" ")
            if word == "status" and value.isdecimal():
                self.status = int(value)

    def _release(self) -> None:
        """The kernel has ended before it connected: the lab must not wait for it."""
        folder = os.open(self.folder, os.O_PATH)
        try:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as end:
                end.connect(f"/proc/self/fd/{folder}/time")  # a socket's address has room for 107 bytes
        finally:
            os.close(folder)

    def _last_lines(self) -> str:
        self.log.seek(0)
        return last_words(self.log.read().decode(errors="replace")) or f"exit status {self.process.returncode}"


def last_words(log: str) -> str:
    """The lines of a kernel's log from which one sees why it ended: those up to a panic, else the last ones."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    end = next((at + 1 for at, line in enumerate(lines) if line.startswith("Kernel panic")), len(lines))
    return " / ".join(lines[max(end - _LOG_LINES, 0) : end])


@contextmanager
def running(boot: Boot) -> Iterator[Running]:
    """Boot, and end the kernel in all cases. Raises LabMissing or LabError."""
    require(FOR_A_BOOT)
    program, archive = kernel.current(boot.hz, boot.version).program, initramfs.current()
    cpu = _cpu()
    with passing_folder() as janitor, tempfile.TemporaryFile() as log:
        folder = janitor.folder
        place(folder / "initrd", archive.read_bytes() + boot.todo)
        lab = _core.Lab(
            boot.machine,
            folder,
            interactive=boot.is_interactive,
            trace=boot.is_traced,
            cpu=cpu,
            faults=list(boot.faults),
            time_limit_ns=None if boot.time_limit_s is None else round(boot.time_limit_s * 1e9),
        )
        if boot.disks is not None:
            disks.read(lab, boot.disks)
        lab.start()
        process = subprocess.Popen(
            ["setarch", "-R", "taskset", "-c", str(cpu), str(program), *_arguments(boot, lab)],
            cwd=folder,
            env={"TMPDIR": "/dev/shm" if os.access("/dev/shm", os.W_OK) else ".", "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            process_group=0,
        )
        with janitor.watching(process.pid):
            try:
                yield Running(lab, process, folder, log, disks=boot.disks)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
                process.wait()


def _arguments(boot: Boot, lab: _core.Lab) -> list[str]:
    return [
        f"mem={boot.memory_mib}M",
        "norandmaps",
        "initrd=initrd",
        "rdinit=/init",
        "con=null",
        "con0=null,fd:1",
        "uml_dir=uml/",
        "panic=-1",
        "quiet",
        f"lab-clock={boot.clock_reading_ns}",
        *lab.kernel_arguments,
    ]


_turns = itertools.count(os.getpid())


def _cpu() -> int:
    """One of the CPUs that Spindle may use, in turn; several processes begin at different ones."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[next(_turns) % len(allowed)]
