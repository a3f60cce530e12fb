"""The program as its tests use it: arguments in, status and lines out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from spindle.cli.exits import Exit
from spindle.cli.main import invoke


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
