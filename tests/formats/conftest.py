"""The command line, run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))  # program.py

from program import Ended


@pytest.fixture
def invoke(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run a command line."""
    from spindle.cli.main import invoke as run

    monkeypatch.delenv("SPINDLE_TRACEBACK", raising=False)

    def call(*arguments: str) -> Ended:
        capfd.readouterr()
        status = run(list(arguments))
        sys.stdout.flush()
        captured = capfd.readouterr()
        return Ended(int(status), captured.out, captured.err)

    return call
