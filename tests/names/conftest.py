"""Shared by the tests of operations on names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.result.document import decode
from spindle.result.record import PhasesRecord, RunRecord
from tests.program import Ended


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of the user's, with a file in it that nobody may touch."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "mine.txt").write_text("keep")
    return place


@pytest.fixture
def run(invoke: Callable[..., Ended]) -> Callable[..., PhasesRecord | RunRecord]:
    """Run a workload and read its record."""

    def call(workload: str, target: Path, *options: str) -> PhasesRecord | RunRecord:
        done = invoke("run", workload, str(target), "--json", "--quiet", *options)
        found = decode(done.out.encode(), "stdout")
        assert isinstance(found, PhasesRecord | RunRecord)
        return found

    return call
