"""Where the measured drives are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[2].parent / "shared"


@pytest.fixture
def measured_drives() -> Path:
    """Traces of real drives; they are not part of the project."""
    folder = Path(os.environ.get("SPINDLE_SHARED", BESIDE)) / "data/drives"
    if not (folder / "drives.json").exists():
        pytest.skip("no measured drives: set SPINDLE_SHARED to a folder with data/drives")
    return folder
