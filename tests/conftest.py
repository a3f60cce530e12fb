"""Fixtures for tests on the real machine: loop devices, mounts, helper processes. Each is removed again.

A test is skipped, with the reason, if it needs root, a tool or a kernel feature that is missing.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.program import Ended
from tests.promises import PROMISES, Review, numbers
from tests.workbench import Workbench

# A test runner in the background may ignore signals. The programs under test inherit that, but must end by signals.
# (A program that inherits an ignored signal leaves it ignored, as nohup requires.)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# pytest-xdist gives its workers a size that their terminals do not have.
for variable in ("COLUMNS", "LINES"):
    os.environ.pop(variable, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--review", action="store_true", help="only the tests that try to break a promise (promises.toml)")
    parser.addoption("--update-pages", action="store_true", help="write the outputs of exact commands into the pages")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "alone: compares rates or times, or changes vm.*; `make test` runs it with no other test beside it"
    )
    config.addinivalue_line("markers", "promise(number, ...): tries to break a promise of tests/promises.toml")
    if config.getoption("--review"):
        config.pluginmanager.register(Review(), "review")


def pytest_sessionstart() -> None:
    """End at once where loop devices are limited: tests of rates and merges would fail much later, and not say why."""
    for file in Path("/sys/fs/cgroup/blkio").glob("blkio.throttle.*_device"):
        for number, limit in (line.split() for line in file.read_text().splitlines()):
            if number.startswith("7:"):
                pytest.exit(f"{file}: {limit} on loop device {number}; lift the limit: echo {number} 0 > {file}", 4)


MACHINE_WIDE = {"doctor", "host", "inspect", "knobs"}
"""Folders whose tests change settings of the whole machine, or look at all of it: one after another."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if unknown := set(numbers(item)) - PROMISES.keys():
            raise pytest.UsageError(f"{item.nodeid}: promises.toml has no promise {min(unknown)}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Tests of a folder run one after another, folders side by side (`pytest -n`)."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            folder = nodeid.removeprefix("tests/").split("/")[0]
            return "machine" if folder in MACHINE_WIDE else folder

    return ByFolder(config, log)


def checksum(path: str | Path) -> str:
    """SHA-256 of the whole content of a device or a file."""
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
    """A separate working directory for the test."""
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
def bench(tmp_path: Path) -> Iterator[Workbench]:
    if not _loop_devices_work():
        pytest.skip("needs root and loop devices")
    made = Workbench(tmp_path)
    with made.undo:
        yield made


@pytest.fixture(scope="module")
def shared_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """The same, for devices that several tests only read."""
    if not _loop_devices_work():
        pytest.skip("needs root and loop devices")
    made = Workbench(tmp_path_factory.mktemp("bench"))
    with made.undo:
        yield made


@pytest.fixture
def content() -> Callable[[str | Path], str]:
    return checksum


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep tests away from the register of the user who runs them."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "spindle"
