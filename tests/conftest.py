"""What tests of the real machine share: loop devices, mounts, helper processes; each is taken down again.

A test that needs root, a tool or a kernel feature that is not there skips and says so.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # documents.py and program.py, for all tests

from program import Ended
from promises import PROMISES, Review, numbers

# A runner in the background may ignore signals, and that is passed on to the programs under test, which are to be ended
# by signals. (A program that finds one ignored leaves it so, as nohup asks.)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--review", action="store_true", help="only the tests that try to break a promise (promises.toml)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(number, ...): tries to break a promise of tests/promises.toml")
    if config.getoption("--review"):
        config.pluginmanager.register(Review(), "review")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if unknown := set(numbers(item)) - PROMISES.keys():
            raise pytest.UsageError(f"{item.nodeid}: promises.toml has no promise {min(unknown)}")


MIB = 1 << 20


class Bench:
    """A workbench of loop devices, mounts and processes in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.undo = ExitStack()
        self._count = 0

    def new_path(self, stem: str) -> Path:
        self._count += 1
        return self.folder / f"{stem}{self._count}"

    def run(self, *command: str | Path, check: bool = True, text: str | None = None) -> str:
        """Run a tool; a missing one skips the test."""
        name = str(command[0])
        if shutil.which(name, path=PATH) is None:
            pytest.skip(f"{name} is not installed")
        done = subprocess.run(
            [str(part) for part in command],
            input=text,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": PATH, "LC_ALL": "C"},
            check=False,
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
        return done.stdout

    def image(self, size: int = 32 * MIB) -> Path:
        path = self.new_path("image")
        with path.open("xb") as file:
            file.truncate(size)
        return path

    def loop(self, backing: Path | str | None = None, *options: str, size: int = 32 * MIB) -> str:
        """A free loop device over a file (a new sparse one by default) or a device."""
        backing = backing or self.image(size)
        device = self.run("losetup", "--find", "--show", *options, str(backing)).strip()
        self.undo.callback(self.run, "losetup", "--detach", device, check=False)
        return device

    def mount(self, device: str | Path, *options: str) -> Path:
        point = self.new_path("mnt")
        point.mkdir()
        self.run("mount", *options, device, point)
        self.undo.callback(self.run, "umount", "--lazy", point, check=False)
        return point

    def partition(self, device: str, number: int, start_sector: int, sectors: int) -> str:
        """Tell the kernel of a partition: it does so itself only for tables it was built to read."""
        node = f"{device}p{number}"
        if not os.path.exists(node):
            self.run("addpart", device, str(number), str(start_sector), str(sectors))
        self.undo.callback(self.run, "delpart", device, str(number), check=False)
        return node

    def partitioned(self, device: str) -> list[str]:
        """Two partitions of 12 MiB each in a DOS table."""
        self.run("sfdisk", "--quiet", "--no-reread", device, text="label: dos\n2048,24576,83\n26624,24576,83\n")
        return [self.partition(device, 1, 2048, 24576), self.partition(device, 2, 26624, 24576)]

    def python(self, code: str, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """A helper process that has printed its first line when this returns; it ends when its input closes."""
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.undo.callback(_end, process)
        assert process.stdout is not None
        process.stdout.readline()
        return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def checksum(path: str | Path) -> str:
    """Of a device's or a file's whole content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.fixture
def invoke(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run a command line in this process."""
    from spindle.cli.main import invoke as run

    monkeypatch.delenv("SPINDLE_TRACEBACK", raising=False)

    def call(*arguments: str) -> Ended:
        capfd.readouterr()
        status = run(list(arguments))
        sys.stdout.flush()
        captured = capfd.readouterr()
        return Ended(int(status), captured.out, captured.err)

    return call


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


def _loop_devices_work() -> bool:
    return (
        os.geteuid() == 0 and os.path.exists("/dev/loop-control") and os.access("/dev/loop-control", os.R_OK | os.W_OK)
    )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    if not _loop_devices_work():
        pytest.skip("needs root and loop devices")
    made = Bench(tmp_path)
    with made.undo:
        yield made


@pytest.fixture(scope="module")
def shared_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The same, for devices that several tests only look at."""
    if not _loop_devices_work():
        pytest.skip("needs root and loop devices")
    made = Bench(tmp_path_factory.mktemp("bench"))
    with made.undo:
        yield made


@pytest.fixture
def content() -> Callable[[str | Path], str]:
    return checksum


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the register of the user who runs it."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "spindle"
