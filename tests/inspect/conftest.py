"""Shared by the tests of the inspection."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # trees.py, for the tests beside it

from trees import load

from spindle.host.inspect import Inventory, inspect_stack


@pytest.fixture
def stack() -> Callable[..., Inventory]:
    """The inventory of a fixture."""

    def inspect(name: str, target: str | None = None) -> Inventory:
        return inspect_stack(target, load(name).held())

    return inspect


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
