"""Detection of rotating disks."""

from __future__ import annotations

from typing import Any

import pytest

from spindle.host.devices import DevNumber, by_number
from spindle.run.classes import is_rotating


@pytest.mark.parametrize(
    ("name", "turns", "expected"),
    [("sda", 1, True), ("sdb", 0, False), ("vda", 1, False)],
    ids=["disk", "flash", "virtual"],
)
def test_a_disk_is_rotating_where_it_says_so_and_can_know(name: str, turns: int, expected: bool, fake_sys: Any) -> None:
    path = fake_sys.device(name, "8:0", size=8)
    fake_sys.file(path / "queue/rotational", str(turns))
    device = by_number(DevNumber(8, 0), fake_sys.machine)
    assert device is not None
    assert is_rotating(device, fake_sys.machine) is expected
