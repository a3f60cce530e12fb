"""The lab for tests that boot it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle.lab import initramfs, kernel, load
from spindle.lab.errors import LabMissing

FOUR_DRIVES = """
[array]
level = "raid5"
[[drive]]
service = "100us"
transfer_rate = "200 MB/s"
flush = "100us"
queue_depth = 256
capacity = "512MiB"
count = 4
"""


@pytest.fixture
def lab() -> None:
    """Skips where the lab is not built."""
    try:
        kernel.current()
        initramfs.current()
    except LabMissing as error:
        pytest.skip(str(error))


@pytest.fixture
def agent(lab: None) -> None:
    """Skips where spindle-agent is not built either."""
    try:
        load.find_agent()
    except LabMissing as error:
        pytest.skip(str(error))


@pytest.fixture
def four(tmp_path: Path, lab: None) -> Path:
    """A machine of four drives of 100 us + 5 ns a byte."""
    path = tmp_path / "four.toml"
    path.write_text(FOUR_DRIVES)
    return path
