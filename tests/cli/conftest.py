"""Shared by the tests of the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # records.py, for the tests in this folder


@pytest.fixture
def amid(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something done once a load is being measured, however long it took to get there."""
    from spindle.report.terminal.progress import SparseLines
    from spindle.run.watch import Moment

    def arrange(what: Callable[[], object]) -> None:
        done: list[object] = []

        def moment(_self: SparseLines, at: Moment) -> None:
            if at.phase == "measure" and at.iops > 0 and not done:
                done.append(None)
                what()

        monkeypatch.setattr(SparseLines, "moment", moment)

    return arrange
