"""Shared by the tests of the doctor: captured trees and stacks of any shape, and what is found on them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "inspect")]  # shapes.py beside this, trees.py with the trees


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Status, stdout and stderr of a command line, run in this process."""
    from spindle.cli.main import invoke

    monkeypatch.delenv("SPINDLE_TRACEBACK", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        status = invoke(list(arguments))
        sys.stdout.flush()
        captured = capfd.readouterr()
        return int(status), captured.out, captured.err

    return call
