"""What tests of the real machine share: loop devices, mounts, helper processes; each is taken down again.

A test that needs root, a tool or a kernel feature that is not there skips and says so.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # documents.py and program.py, for all tests

from program import Ended
from promises import PROMISES, Review, numbers
from workbench import Bench

# A runner in the background may ignore signals, and that is passed on to the programs under test, which are to be ended
# by signals. (A program that finds one ignored leaves it so, as nohup asks.)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--review", action="store_true", help="only the tests that try to break a promise (promises.toml)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(number, ...): tries to break a promise of tests/promises.toml")
    if config.getoption("--review"):
        config.pluginmanager.register(Review(), "review")


MACHINE_WIDE = {"docs", "doctor", "host", "inspect", "knobs"}
"""Folders whose tests change settings of the whole machine, or look at all of it: one after another."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a folder run one after another, folders side by side (`pytest -n`)."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        item.add_marker(pytest.mark.xdist_group("machine" if folder in MACHINE_WIDE else folder))
        if unknown := set(numbers(item)) - PROMISES.keys():
            raise pytest.UsageError(f"{item.nodeid}: promises.toml has no promise {min(unknown)}")


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
