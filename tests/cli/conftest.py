"""Shared by the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.program import Amid


@pytest.fixture
def amid(monkeypatch: pytest.MonkeyPatch) -> Amid:
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
