"""Captured trees of real kinds of stacks: exactly the planted faults are found, and nothing on healthy ones."""

from __future__ import annotations

import pytest

from tests.doctor.shapes import Planted, add, found_on
from tests.inspect.trees import NAMES, Layout, load

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
        ("md-no-bitmap", "md127"),
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
    "bcache-writeback": {("file-system-errors", "fs:/home"), ("cache-redundancy", "bcache0")},
    "home-nas": {
        ("usb-member", "sdb"),
        ("shingled", "sda"),
        ("error-recovery", "sda"),
        ("sector-sizes", "md0"),
        ("md-no-bitmap", "md0"),
        ("md-sync-speed", "md0"),
        ("sata-power", "sda"),
        ("spin-down", "sda"),
        ("swap-place", "sda1"),
        ("dirty-memory", "machine"),
        ("ext4-journal", "fs:/srv"),
    },
    "luks-nvme": {
        ("firmware", "nvme0n1"),
        ("wear", "nvme0n1"),
        ("discard", "dm-0"),
        ("luks-queues", "dm-0"),
        ("pcie-power", "0000:01:00.0"),
        ("cpu-latency", "machine"),
    },
    "fc-policy": {("multipath-policy", "dm-0"), ("drive-link", "0000:af:00.0")},
    "zfs-raidz": {("zfs-pool", "zpool:tank"), ("zfs-ashift", "zpool:tank")},
}
"""Fixture -> exactly these; the heads of the trees say so too."""


def test_every_tree_is_in_the_table() -> None:
    assert set(EXPECTED) == set(NAMES)
    assert sum(not planted for planted in EXPECTED.values()) >= 5, "healthy ones"


@pytest.mark.parametrize("name", NAMES)
def test_exactly_the_planted_faults_are_found(name: str) -> None:
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
    array = "[sys/devices/virtual/block/md127]\nmd/stripe_cache_size=4096"
    add(layout, f"{array}\nmd/bitmap/location=+8\nmd/bitmap/chunksize=67108864")
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


def fixed_nas(layout: Layout) -> None:
    """Replace each drive, and correct the settings."""
    files, text = layout.files, layout.files["tools/smartctl/sda"].decode()
    for path in [path for path in files if "0:0:0:0" in path and path.endswith("/model")]:
        files[path] = b"ST4000VN006-3CW1\n" if b"EFAX" in files[path] else files[path]
    text = text.replace('"read":{"enabled":false}', '"read":{"enabled":true,"deciseconds":70}')
    text = text.replace('"level":96', '"level":254').replace("250000", "25000")
    files["tools/smartctl/sda"] = text.encode()
    old = "sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6"
    new = "sys/devices/pci0000:00/0000:00:14.0/0000:05:00.0/host6/port-6:0/end_device-6:0"
    files = layout.files = {path.replace(old, new): content for path, content in files.items()}
    layout.links = {path.replace(old, new): target.replace(old[4:], new[4:]) for path, target in layout.links.items()}
    sdb = next(path for path in files if path.endswith("sdb/queue/physical_block_size"))
    files[sdb] = files[sdb.replace("physical_block_size", "minimum_io_size")] = b"4096\n"
    add(layout, "[sys/devices/virtual/block/md0]\nmd/bitmap/location=+8\nmd/bitmap/chunksize=67108864")
    add(layout, "[sys/devices/virtual/block/md0]\nmd/sync_speed_max=200000 (system)\nmd/consistency_policy=bitmap")
    policy = next(path for path in files if path.endswith("link_power_management_policy"))
    files[policy] = b"max_performance\n"
    add(layout, "[]\nproc/swaps=Filename Type Size Used Priority\nproc/sys/vm/dirty_ratio=2")
    files["proc/self/mountinfo"] = files["proc/self/mountinfo"].replace(b"rw,data=journal", b"rw")


def mended_nvme(layout: Layout) -> None:
    add(layout, "[sys/devices/pci0000:00/0000:00:06.0/0000:01:00.0]\nlink/l1_aspm=0\nlink/l1_1_aspm=0")
    add(layout, "[sys/devices/pci0000:00/0000:00:06.0/0000:01:00.0/nvme/nvme0]\nfirmware_rev=5B2QGXA7")
    text = layout.files["tools/smartctl/nvme0n1"].decode().replace("3B2QGXA7", "5B2QGXA7")
    layout.files["tools/smartctl/nvme0n1"] = text.replace('"percentage_used":87', '"percentage_used":79').encode()
    add(layout, "[]\nsys/module/pcie_aspm/parameters/policy=[default] performance powersave")
    add(layout, "[sys/devices/system/cpu/cpu0]\ncpufreq/scaling_driver=intel_pstate\ncpuidle/state3/disable=1")
    table = layout.files["tools/dmsetup-table/dm-0"].strip()
    options = b" 3 allow_discards no_read_workqueue no_write_workqueue\n"
    layout.files["tools/dmsetup-table/dm-0"] = table + options
    add(layout, "[sys/devices/virtual/block/dm-0]\nqueue/discard_max_bytes=2199023255040")


def mended_fc(layout: Layout) -> None:
    for path in [path for path in layout.files if path.endswith("/speed") and "fc_host" in path]:
        layout.files[path] = b"16 Gbit\n"
    table = "0 2147483648 multipath 1 queue_if_no_path 1 alua 2 1 service-time 0 2 2 8:16 1 1 8:48 1 1 "
    layout.files["tools/dmsetup-table/dm-0"] = f"{table}service-time 0 2 2 8:32 1 1 8:64 1 1\n".encode()
    text = layout.files["tools/multipathd/maps"].replace(b'"queueing":"on"', b'"queueing":"12 chk"')
    layout.files["tools/multipathd/maps"] = text


def mended_zfs(layout: Layout) -> None:
    text = layout.files["tools/zpool-status/all"].decode().replace("DEGRADED", "ONLINE  ")
    text = text.replace("FAULTED      3   104     0  too many errors", "ONLINE       0     0     0")
    layout.files["tools/zpool-status/all"] = text.replace("    12\n", "     0\n").encode()
    layout.files["tools/zpool-list/all"] = b"tank\t15989343240192\t8639573729607\t6\n"
    layout.files["tools/zdb/tank"] = layout.files["tools/zdb/tank"].replace(b"ashift: 9", b"ashift: 12")


def mended_bcache(layout: Layout) -> None:
    mode = next(path for path in layout.files if path.endswith("bcache/cache_mode"))
    layout.files[mode] = b"[writethrough] writeback writearound none\n"
    errors = next(path for path in layout.files if path.endswith("error_stats"))
    layout.files[errors] = layout.files[errors].replace(b"corruption_errs 2", b"corruption_errs 0")


MENDED = {
    "home-nas": fixed_nas,
    "luks-nvme": mended_nvme,
    "fc-policy": mended_fc,
    "zfs-raidz": mended_zfs,
    "bcache-writeback": mended_bcache,
    "raid-3ware": mended_3ware,
    "raid5-ext4-sector63": mended_raid5,
    "raid6-degraded-resync": mended_raid6,
    "md-raid10-f2-xfs": mended_raid10,
}


@pytest.mark.parametrize("name", MENDED)
def test_a_fixed_fault_is_not_found_any_more(name: str) -> None:
    layout = load(name)
    MENDED[name](layout)
    assert found_on(layout) == set()
