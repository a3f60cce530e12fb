"""Captured trees of real kinds of stacks: exactly what was planted is found, on healthy ones nothing."""

from __future__ import annotations

import pytest
from shapes import Planted, add, found_on
from trees import NAMES, Layout, load

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


def mended_3ware(layout: Layout) -> None:
    disk = "sys/devices/pci0000:00/0000:00:05.0/0000:04:00.0/host2/target2:0:0/2:0:0:0/block/sdb"
    add(layout, f"[{disk}]\nqueue/read_ahead_kb=768\nqueue/nr_requests=508\nqueue/scheduler=noop [deadline] cfq")
    layout.remove("tools/smartctl/twa0-3ware,2")
    for old, new in (("No        WeakBat", "Yes       OK     "), ("ECC-ERROR", "OK       ")):
        layout.files["tools/tw_cli/c0"] = layout.files["tools/tw_cli/c0"].replace(old.encode(), new.encode())
    # With a good battery it may stay mounted without barriers.


def mended_raid5(layout: Layout) -> None:
    for path in [path for path in layout.files if path.endswith("1/start")]:
        layout.files[path] = b"2048\n"
    mounts = layout.files["proc/self/mountinfo"].replace(b"/srv rw", b"/srv rw,relatime")
    layout.files["proc/self/mountinfo"] = mounts
    layout.files["tools/dumpe2fs/md127"] += b"RAID stride:              16\nRAID stripe width:        48\n"
    add(layout, "[sys/devices/virtual/block/md127]\nmd/stripe_cache_size=4096")
    depth = next(path for path in layout.files if path.endswith("2:0:0:0/queue_depth") and "ata3" in path)
    layout.files[depth] = b"31\n"


def mended_raid6(layout: Layout) -> None:
    array = "sys/devices/virtual/block/md2"
    add(layout, f"[{array}]\nmd/degraded=0\nmd/sync_action=idle\nmd/sync_completed=none\nmd/sync_speed=none")
    add(layout, f"[{array}]\nmd/dev-sdi/state=in_sync")
    layout.remove(f"{array}/md/dev-sdf")
    layout.remove(f"{array}/slaves/sdf")
    layout.remove("sys/class/block/sdf")
    layout.remove("sys/block/sdf")


def mended_raid10(layout: Layout) -> None:
    add(layout, "[sys/devices/virtual/block/md0]\nqueue/read_ahead_kb=14336\nmd/dev-sdc/errors=0")


MENDED = {
    "raid-3ware": mended_3ware,
    "raid5-ext4-sector63": mended_raid5,
    "raid6-degraded-resync": mended_raid6,
    "md-raid10-f2-xfs": mended_raid10,
}


@pytest.mark.parametrize("name", MENDED)
def test_what_was_mended_is_found_no_more(name: str) -> None:
    layout = load(name)
    MENDED[name](layout)
    assert found_on(layout) == set()
