"""Where the measured drives are, and the program as its tests use it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from spindle.cli.exits import Exit
from spindle.cli.main import invoke

BESIDE = Path(__file__).resolve().parents[2].parent / "shared"


@dataclass(frozen=True)
class Said:
    """What came of a call."""

    status: Exit
    out: str
    err: str


@pytest.fixture
def spindle(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Call the program in this process."""

    def call(*arguments: str) -> Said:
        status = invoke(list(arguments))
        captured = capsys.readouterr()
        return Said(status, captured.out, captured.err)

    return call


@pytest.fixture
def measured_drives() -> Path:
    """Traces of real drives; they are not part of the project."""
    folder = Path(os.environ.get("SPINDLE_SHARED", BESIDE)) / "data/drives"
    if not (folder / "drives.json").exists():
        pytest.skip("no measured drives: set SPINDLE_SHARED to a folder with data/drives")
    return folder
