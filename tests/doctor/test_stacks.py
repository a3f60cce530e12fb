"""Captured trees of real kinds of stacks: exactly what was planted is found, on healthy ones nothing."""

from __future__ import annotations

import pytest
from shapes import Planted, found_on
from trees import NAMES, load

CONTROLLER = "0000:04:00.0"
EXPECTED: dict[str, Planted] = {
    "md-raid10-n2-xfs": set(),
    "md-raid10-f2-xfs": {("read-ahead", "md0"), ("md-member", "sdc")},
    "raid5-ext4-sector63": {
        ("partition-alignment", "sda1"),
        ("partition-alignment", "sdb1"),
        ("partition-alignment", "sdc1"),
        ("partition-alignment", "sdd1"),
        ("stripe-geometry", "fs:/srv"),
        ("stripe-cache", "md127"),
        ("ncq", "sdc"),
        ("atime", "fs:/srv"),
    },
    "raid6-degraded-resync": {
        ("md-degraded", "md2"),
        ("md-sync", "md2"),
        ("md-member", "sdf"),
        ("smart", "sdf"),
    },
    "lvm-on-md": set(),
    "nvme-ext4": set(),
    "nvme-multipath": {("multipath", "nvme0n1")},
    "dm-multipath": {("multipath", "dm-0")},
    "sata-ssd": set(),
    "raid-megaraid": set(),
    "raid-3ware": {
        ("write-cache", f"{CONTROLLER}/u0"),
        ("barriers", "fs:/data"),
        ("raid-unit", f"{CONTROLLER}/p2"),
        ("smart", f"{CONTROLLER}/p2"),
        ("read-ahead", "sdb"),
        ("scheduler", "sdb"),
        ("queue-requests", "sdb"),
    },
    "bcache": {("file-system-errors", "fs:/home")},
}
"""Fixture -> exactly these; the heads of the trees say so too."""


def test_every_tree_is_in_the_table() -> None:
    assert set(EXPECTED) == set(NAMES)
    assert sum(not planted for planted in EXPECTED.values()) >= 5, "healthy ones"


@pytest.mark.parametrize("name", NAMES)
def test_exactly_what_was_planted_is_found(name: str) -> None:
    assert found_on(load(name)) == EXPECTED[name]
