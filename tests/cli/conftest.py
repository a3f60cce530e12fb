"""Shared by the tests of the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # program.py and records.py, for the tests beside them

from program import Ended


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
def amid(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something done once a load is being measured, however long it took to get there."""
    from spindle.report.progress import SparseLines
    from spindle.run.watch import Moment

    def arrange(what: Callable[[], object]) -> None:
        done: list[object] = []

        def moment(_self: SparseLines, at: Moment) -> None:
            if at.phase == "measure" and at.iops > 0 and not done:
                done.append(None)
                what()

        monkeypatch.setattr(SparseLines, "moment", moment)

    return arrange
