"""A durability test from its first write over a power cut to the verdict, on a disk whose power can be cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.workbench import DETACH_LOOP, NEW_LOOP, PATH

COMMAND = [sys.executable, "-m", "spindle.cli"]
POWERFS = Path(__file__).with_name("powerfs.py")
PATIENCE_S = 120.0
MIB = 1 << 20
ENTRY = 29
"""Length of an acknowledgement in the journal, bytes."""
WRITE_BACK = "write back"
"""How the kernel takes a loop device's cache by itself."""


def wait_for(what: str, happens: Callable[[], bool]) -> None:
    """Poll; a generous deadline."""
    until = time.monotonic() + PATIENCE_S
    while not happens():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not happen")
        time.sleep(0.002)


def tool(*command: str | Path, check: bool = True) -> str:
    """Run a tool of the system."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env={**os.environ, "PATH": PATH}, check=False
    )
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


class PoweredDisk:
    """A loop device over the one file of `powerfs.py`."""

    def __init__(self, folder: Path, seed: int, size: int, write_cache: str = WRITE_BACK) -> None:
        self.folder = folder
        self.image = folder / "image"
        self.image.touch()
        os.truncate(self.image, size)
        self._undo = ExitStack()
        point = folder / "power"
        point.mkdir()
        self._server = subprocess.Popen(
            [sys.executable, str(POWERFS), str(self.image), str(point), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._undo.callback(self._end)
        assert self._answer() == "mounted"
        self._undo.callback(tool, "umount", "--lazy", point, check=False)
        self.device = tool(*NEW_LOOP, point / "disk").strip()
        self._undo.callback(tool, *DETACH_LOOP, self.device)
        # What an earlier user of the same loop device has said stays: taken for write-through, it gets no flushes.
        attribute = Path("/sys/block", Path(self.device).name, "queue/write_cache")
        attribute.write_text(write_cache)
        self._undo.callback(attribute.write_text, WRITE_BACK)
        self._mounts = ExitStack()

    def order(self, command: str) -> str:
        """A mode, `syncs` or `cut`."""
        assert self._server.stdin is not None
        self._server.stdin.write(command + "\n")
        self._server.stdin.flush()
        return self._answer()

    def mount(self, device: str) -> Path:
        """The file system on it."""
        point = self.folder / "mnt"
        point.mkdir(exist_ok=True)
        tool("mount", device, point)
        self._mounts.callback(tool, "umount", point, check=False)
        return point

    def unmount(self) -> None:
        """The mounted file system."""
        self._mounts.close()

    @contextmanager
    def after(self) -> Iterator[str]:
        """Power is back: another loop device, over what is on the medium."""
        self.unmount()
        self._undo.close()
        device = tool(*NEW_LOOP, self.image).strip()
        try:
            yield device
        finally:
            self.unmount()
            tool(*DETACH_LOOP, device)

    def close(self) -> None:
        """Take all of it down."""
        self.unmount()
        self._undo.close()

    def _answer(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def _end(self) -> None:
        self._server.kill()
        self._server.communicate()


@dataclass(frozen=True)
class Crash:
    """One test and how it is cut off."""

    mode: str = "honest"
    """Turn the disk, once the journal has grown by `turn_bytes` beyond its beginning; honest before."""
    sync: str = "fsync"
    pattern: str = "mixed"
    file_system: str | None = None
    """None: on the device itself."""
    buffered: bool = False
    receiver: bool = False
    """The journal goes through TCP."""
    turn_bytes: int = 1500
    cut_syncs: int = 100
    """Power is cut after so many syncs in that mode; without syncs, after as many entries of the journal."""
    seed: int = 1
    size: int = 16 * MIB
    written: int = 4 * MIB
    write_cache: str = WRITE_BACK
    """The kernel's view of the disk's cache."""
    options: tuple[str, ...] = ()


@dataclass
class Outcome:
    """The result of the check."""

    status: int
    out: str
    err: str
    journal: Path
    writer: str
    findings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        return str(self.findings.get("verdict", ""))


def crash(folder: Path, case: Crash) -> Outcome:
    """Write, cut, check. The folder is the case's own; the journal must not be on the disk that is cut."""
    folder.mkdir(exist_ok=True)
    disk = PoweredDisk(folder, case.seed, case.size, case.write_cache)
    with ExitStack() as stack:
        stack.callback(disk.close)
        journal = folder / "journal"
        target, consent = disk.device, ["--erase", disk.device, "--yes", "--size", str(case.written)]
        if case.file_system is not None:
            tool(f"mkfs.{case.file_system}", "-q", disk.device)
            target = str(disk.mount(disk.device) / "test.bin")
            consent = ["--create", str(case.written)]
        where = str(journal)
        if case.receiver:
            where, receiver = stack.enter_context(receiving(journal))
        writer = started(
            "durability", target, *consent, "--journal", where, "--sync", case.sync, "--pattern", case.pattern,
            "--seed", str(case.seed), *(["--buffered"] if case.buffered else []), *case.options,
        )  # fmt: skip
        stack.callback(kill, writer)
        begin = beginning(journal, case, writer)
        wait_until_grown(journal, begin + case.turn_bytes, writer)
        disk.order(case.mode)
        if case.sync == "none" or case.write_cache != WRITE_BACK:
            wait_until_grown(journal, journal.stat().st_size + case.cut_syncs * ENTRY, writer)
        else:
            # What the disk has answered, its writer notes, even after the cut.
            wait_for("so many syncs", lambda: alive(writer) and int(disk.order("syncs")) >= case.cut_syncs)
        disk.order("cut")
        _, complaint = writer.communicate(timeout=PATIENCE_S)
        assert writer.returncode == 1, complaint
        if case.receiver:
            _, output = receiver.communicate(timeout=PATIENCE_S)
            assert receiver.returncode == 0, output
        with disk.after() as device:
            there = device if case.file_system is None else str(disk.mount(device) / "test.bin")
            return checked(journal, there, complaint)


def beginning(journal: Path, case: Crash, writer: subprocess.Popen[str]) -> int:
    """Length of the text before the first acknowledgement: a sum for each block."""
    blocks = case.written // 4096
    least = 4 * blocks
    wait_until_grown(journal, least, writer)
    return least + 1000


def alive(writer: subprocess.Popen[str]) -> bool:
    """Nothing is to be waited for if it is not. Raises RuntimeError with its last words."""
    if writer.poll() is not None:
        raise RuntimeError(f"the writer has ended: {writer.communicate()[1]}")
    return True


def wait_until_grown(journal: Path, size: int, writer: subprocess.Popen[str]) -> None:
    """Until the journal has so many bytes."""

    def grown() -> bool:
        return alive(writer) and journal.exists() and journal.stat().st_size >= size

    wait_for("the next part of the journal", grown)


def checked(journal: Path, target: str | None, writer: str = "") -> Outcome:
    """`spindle verify --after-crash`."""
    more = [] if target is None else [target]
    done = spindle("verify", "--after-crash", str(journal), *more, "--json")
    outcome = Outcome(done.returncode, done.stdout, done.stderr, journal, writer)
    assert "Traceback" not in done.stderr, done.stderr
    if done.stdout:
        said = json.loads(done.stdout)
        outcome.findings, outcome.notes = said["findings"], said["notes"]
    return outcome


@contextmanager
def receiving(journal: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A receiver on a free port."""
    receiver = started("verify", "--listen", "127.0.0.1:0", "--journal", str(journal))
    try:
        assert receiver.stderr is not None
        line = receiver.stderr.readline()
        yield line.split()[-1], receiver
    finally:
        kill(receiver)


def spindle(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def started(*arguments: str) -> subprocess.Popen[str]:
    """Start one."""
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill(process: subprocess.Popen[str]) -> None:
    """As a power cut ends it."""
    process.kill()
    process.communicate()
