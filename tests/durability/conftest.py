"""Shared by the tests of durability."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.durability import crash
from tests.durability.crash import Crash, Outcome
from tests.workbench import PATH


@pytest.fixture
def power_cut(tmp_path: Path) -> Callable[[Crash], Outcome]:
    """Runs a case on a disk whose power can be cut."""
    if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
        pytest.skip("needs root and loop devices")
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("needs FUSE (/dev/fuse)")
    numbers = iter(range(1000))

    def run(case: Crash) -> Outcome:
        if case.file_system is not None and shutil.which(f"mkfs.{case.file_system}", path=PATH) is None:
            pytest.skip(f"mkfs.{case.file_system} is not installed")
        return crash.crash(tmp_path / f"case{next(numbers)}", case)

    return run
