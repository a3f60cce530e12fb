"""Findings of each rule beyond the arrays of test_planted, cases without findings, and the numbers they show."""

from __future__ import annotations

import pytest

from spindle.doctor import Severity
from spindle.doctor.arithmetic import crossing_share, link_bytes_per_s, pcie_bytes_per_s, unreadable_probability
from tests.doctor.shapes import Planted, Shape, add, diagnosis, finding, found_on, healthy
from tests.inspect.trees import Layout, load

KIB = 1 << 10
MEGARAID = "sys/devices/pci0000:16/0000:16:02.0/0000:18:00.0"
UNIT = f"{MEGARAID}/host0/target0:2:0/0:2:0:0/block/sda"
THREE_WARE = "sys/devices/pci0000:00/0000:00:05.0/0000:04:00.0/host2/target2:0:0/2:0:0:0/block/sdb"


def swapped(layout: Layout, path: str, old: str, new: str) -> Layout:
    before = layout.files[path].decode()
    assert old in before
    layout.files[path] = before.replace(old, new).encode()
    return layout


# --- formulas ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [16 * KIB, 64 * KIB, 1 << 20])
@pytest.mark.parametrize("shift", [0, 512, 32256, 8192])
@pytest.mark.parametrize("size", [512, 4096, 16 * KIB])
def test_the_share_of_crossing_requests_is_that_of_counting_them(chunk: int, shift: int, size: int) -> None:
    requests = range(0, 64 * chunk, size)
    crossing = sum((shift + at) // chunk != (shift + at + size - 1) // chunk for at in requests)
    assert crossing_share(chunk, shift, size) == crossing / len(requests)


def test_a_partition_at_sector_63_has_the_shares_that_are_known() -> None:
    assert crossing_share(64 * KIB, 63 * 512, 64 * KIB) == 1.0
    assert crossing_share(64 * KIB, 63 * 512, 16 * KIB) == 0.25
    assert crossing_share(64 * KIB, 2048 * 512, 64 * KIB) == 0.0


def test_the_probability_of_an_unreadable_sector() -> None:
    # Twelve terabytes at one in 1e14: 1 - exp(-0.96) = 61.7 %.
    assert unreadable_probability(12e12 * 8, 1e-14) == pytest.approx(0.6171, abs=1e-4)
    assert unreadable_probability(1e3, 1e-16) == pytest.approx(1e-13, rel=1e-9), "not rounded away"


def test_links_carry_what_their_coding_leaves() -> None:
    assert link_bytes_per_s(6.0) == 600e6
    assert link_bytes_per_s(22.5) == pytest.approx(2.4e9)
    assert pcie_bytes_per_s(5.0, 8) == 4e9
    assert pcie_bytes_per_s(8.0, 4) == pytest.approx(3.94e9, rel=1e-3)


# --- alignment -----------------------------------------------------------------------------------------------------


def test_a_partition_of_a_hardware_raid5_at_sector_63() -> None:
    layout = load("raid-megaraid")
    swapped(layout, "tools/storcli/all", '"RAID6"', '"RAID5"')
    add(layout, f"[{UNIT}/sda2]\nstart=63")
    found = finding(layout, "partition-alignment")
    assert found.object == "sda2"
    assert found.numbers["chunk_bytes"] == 256 * KIB
    assert found.numbers["crossing_share_65536"] == 0.25
    assert "No write covers a whole stripe" in found.effect
    assert any("start=2048, size=31251748927" in command for step in found.steps for command in step.commands)


def test_sector_63_on_drives_of_512_bytes_is_a_note_and_on_flash_a_warning() -> None:
    for drive, level in (("sas", Severity.NOTE), ("nvme", Severity.WARN)):
        shape = Shape(drive=drive)
        layout = healthy(shape)
        place = shape.folder(0)
        add(layout, f"[{place}]\nqueue/physical_block_size=512\nqueue/minimum_io_size=512")
        add(layout, f"[{place}/{shape.members[0]}]\nstart=63")
        found = finding(layout, "partition-alignment")
        assert (found.object, found.severity) == (shape.members[0], level)


def test_a_jumpered_drive_is_aligned_at_sector_63() -> None:
    shape = Shape()
    layout = healthy(shape)
    add(layout, f"[{shape.folder(0)}]\nalignment_offset=3584")
    add(layout, f"[{shape.folder(0)}/{shape.members[0]}]\nstart=63")
    assert found_on(layout) == set()
    add(layout, f"[{shape.folder(0)}/{shape.members[0]}]\nstart=2048")
    assert found_on(layout) == {("partition-alignment", "sda1")}


def test_a_boot_loaders_partition_may_begin_anywhere() -> None:
    layout = load("nvme-ext4")
    part = next(path for path in layout.files if path.endswith("nvme0n1p1/start")).removesuffix("/start")
    add(layout, f"[{part}]\nstart=34\nsize=2014")
    assert found_on(layout) == set()
    add(layout, f"[{part}]\nsize=1048576")
    assert found_on(layout) == {("partition-alignment", "nvme0n1p1")}


def test_a_volume_on_a_partition_of_an_array_is_compared_with_its_chunk() -> None:
    shape = Shape(table=True, volume=True, chunk=512 * KIB)
    layout = add(healthy(shape), "[]\ntools/dmsetup-table/dm-0=0 1000000000 linear 259:200 384")
    found = finding(layout, "partition-alignment")
    assert (found.object, found.numbers["chunk_bytes"]) == ("dm-0", 512 * KIB)


def test_data_of_an_array_that_begins_within_a_sector() -> None:
    shape = Shape(partitions=False)
    layout = add(healthy(shape), f"[{shape.array}]\nmd/dev-sdb/offset=262147")
    assert found_on(layout) == {("partition-alignment", "sdb")}


# --- geometry ------------------------------------------------------------------------------------------------------


def test_a_unit_eight_times_too_small_is_reported_as_mixed_up_units() -> None:
    layout = load("md-raid10-n2-xfs")
    swapped(layout, "tools/xfs_info/%2Fdata", "sunit=128    swidth=896", "sunit=16     swidth=112")
    found = finding(layout, "stripe-geometry")
    assert "a factor of 8" in found.evidence
    assert "su 64 KiB, swidth 448 KiB" in found.evidence
    assert any("sunit=1024,swidth=7168" in command for step in found.steps for command in step.commands)


@pytest.mark.parametrize("width", [7, 14])
def test_far_copies_may_count_their_copies_or_not(width: int) -> None:
    layout = load("md-raid10-f2-xfs")
    swapped(layout, "proc/self/mountinfo", "swidth=14336", f"swidth={1024 * width}")
    assert ("stripe-geometry", "fs:/data") not in found_on(layout)


def test_near_copies_over_an_odd_number_of_drives_may_have_the_kernels_width() -> None:
    shape = Shape(level="raid10", disks=5, near=2, chunk=64 * KIB)
    layout = healthy(shape)
    assert found_on(layout) == set()
    path = "tools/xfs_info/%2Fdata"
    swapped(layout, path, "swidth=32", "swidth=80")
    assert found_on(layout) == set()


def test_a_unit_of_several_chunks_that_makes_up_the_stripe_is_a_choice() -> None:
    shape = Shape(level="raid6", disks=6, chunk=64 * KIB)
    layout = swapped(healthy(shape), "tools/xfs_info/%2Fdata", "sunit=16 ", "sunit=64 ")
    assert found_on(layout) == set()


def test_a_mount_option_overrides_the_width_that_ext4_keeps() -> None:
    layout = load("raid-megaraid")
    swapped(layout, "proc/self/mountinfo", "stripe=256", "stripe=192")
    assert found_on(layout) == {("stripe-geometry", "fs:/")}


def test_a_width_that_is_not_a_multiple_of_its_unit_is_found_without_an_array() -> None:
    layout = load("nvme-ext4")
    swapped(layout, "proc/self/mountinfo", "rw,stripe=32", "rw")
    swapped(layout, "tools/dumpe2fs/nvme0n1p2", "RAID stripe width:        32", "RAID stripe width:        40")
    assert found_on(layout) == {("stripe-geometry", "fs:/")}


def test_the_geometry_of_a_raid_unit_follows_from_its_limits_without_a_tool() -> None:
    layout = load("raid-megaraid")
    layout.remove("tools/storcli/all")
    assert found_on(layout) == set()
    swapped(layout, "tools/dumpe2fs/sda2", "RAID stride:              64", "RAID stride:              16")
    assert found_on(layout) == {("stripe-geometry", "fs:/")}


def test_a_geometry_that_is_not_known_is_not_judged() -> None:
    shape = Shape(fs="ext4")
    layout = healthy(shape)
    layout.remove("tools/dumpe2fs/md0")
    found = diagnosis(layout)
    assert found.findings == []
    assert [(one.rule, one.object) for one in found.unjudged if one.rule == "stripe-geometry"] == [
        ("stripe-geometry", "fs:/data")
    ]


# --- queues --------------------------------------------------------------------------------------------------------


def test_read_ahead_is_judged_by_the_given_workload() -> None:
    layout = load("md-raid10-f2-xfs")
    assert finding(layout, "read-ahead").numbers["drives_busy"] == 1
    assert ("read-ahead", "md0") not in found_on(layout, workload="random"), "small is right there"
    add(layout, "[sys/devices/virtual/block/md0]\nqueue/read_ahead_kb=65536")
    assert ("read-ahead", "md0") not in found_on(layout, workload="sequential"), "large is no fault there"
    assert finding(layout, "read-ahead", workload="random").severity is Severity.WARN


@pytest.mark.parametrize(("kib", "expected"), [(8192, False), (16384, False), (65536, True)])
def test_read_ahead_beyond_all_measure_is_noted_whatever_the_load(kib: int, expected: bool) -> None:
    layout = load("raid-megaraid")
    add(layout, f"[{UNIT}]\nqueue/read_ahead_kb={kib}")
    assert found_on(layout) == ({("read-ahead", "sda")} if expected else set())


def test_a_data_folder_of_a_database_counts_as_a_random_load() -> None:
    layout = load("sata-ssd")
    swapped(layout, "proc/self/mountinfo", " / / rw", " / /srv/postgresql/15 rw")
    assert found_on(layout) == set()
    sda = next(path for path in layout.files if path.endswith("sda/queue/read_ahead_kb"))
    layout.files[sda] = b"4096\n"
    assert found_on(layout) == {("read-ahead", "sda")}
    assert finding(layout, "read-ahead").severity is Severity.NOTE, "a guess"
    assert found_on(layout, workload="sequential") == set()
    swapped(layout, "proc/self/mountinfo", "/srv/postgresql/15", "/srv/media")
    assert found_on(layout) == set()


@pytest.mark.parametrize(
    ("scheduler", "idle", "expected"),
    [
        ("noop anticipatory deadline [cfq]", "8", True),
        ("noop anticipatory deadline [cfq]", "0", False),
        ("noop [deadline] cfq", None, False),
        ("[noop] deadline cfq", None, False),
    ],
)
def test_a_raid_unit_must_not_be_kept_idle(scheduler: str, idle: str | None, expected: bool) -> None:
    layout = add(load("raid-3ware"), f"[{THREE_WARE}]\nqueue/scheduler={scheduler}")
    layout.remove(f"{THREE_WARE}/queue/iosched")
    if idle is not None:
        add(layout, f"[{THREE_WARE}]\nqueue/iosched/slice_idle={idle}")
    assert (("scheduler", "sdb") in found_on(layout)) is expected


def test_bfq_over_the_paths_of_a_storage_array() -> None:
    layout = load("dm-multipath")
    path = next(path for path in layout.files if path.endswith("block/sdb/queue/scheduler"))
    layout.files[path] = b"none mq-deadline [bfq]\n"
    assert found_on(layout) == {("multipath", "dm-0"), ("scheduler", "sdb")}


@pytest.mark.parametrize(("kernel", "expected"), [("5.15.0", True), ("6.12.1", False)])
def test_zones_need_mq_deadline_up_to_linux_6_9(kernel: str, expected: bool) -> None:
    shape = Shape(level="raid1", disks=2, kernel=kernel)
    place = f"[{shape.folder(0)}]\nqueue/zoned=host-managed\nqueue/scheduler=[bfq] none mq-deadline"
    layout = add(healthy(shape), place)
    assert found_on(layout) == {("shingled", "sda")} | ({("scheduler", "sda")} if expected else set())


def test_requests_are_compared_with_the_limit_of_the_controller() -> None:
    shape = Shape(drive="sas")
    layout = add(healthy(shape), f"[{shape.folder(1)}]\nqueue/nr_requests=200")
    assert found_on(layout) == {("queue-requests", "sdb")}
    host = "sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0/host0/scsi_host/host0"
    add(layout, f"[{host}]\ncan_queue=128\nproc_name=mpt3sas")
    assert found_on(layout) == set()


def test_requests_of_nvme_are_as_many_as_its_queue_or_the_kernels_own_number() -> None:
    for scheduler, requests, expected in (
        ("[none] mq-deadline", 1023, False),
        ("[none] mq-deadline", 256, True),
        ("none [mq-deadline]", 256, False),
        ("none [mq-deadline]", 64, True),
    ):
        layout = load("nvme-ext4")
        place = next(path for path in layout.files if path.endswith("nvme0n1/queue/nr_requests")).rpartition("/")[0]
        add(layout, f"[{place}]\nnr_requests={requests}\nscheduler={scheduler}")
        assert found_on(layout) == ({("queue-requests", "nvme0n1")} if expected else set())


def test_a_drive_without_ncq_and_one_that_does_not_report_it() -> None:
    shape = Shape()
    place = f"{shape.folder(0)}/../.."
    layout = add(healthy(shape), f"[{place}]\nqueue_depth=1")
    words = "sys/devices/pci0000:00/0000:00:1f.2/ata1/link1/dev1.0/ata_device/dev1.0/id"
    swapped(layout, words, "001f 850e", "0000 0406")
    assert found_on(layout) == set()
    layout.remove(words)
    found = diagnosis(layout)
    assert found.findings == []
    assert ("ncq", "sda") in {(one.rule, one.object) for one in found.unjudged}


def test_requests_of_a_member_are_too_small_only_below_its_chunk() -> None:
    shape = Shape(chunk=1024 * KIB)
    for largest, expected in ((512, True), (1024, False), (1280, False)):
        layout = add(healthy(shape), f"[{shape.folder(2)}]\nqueue/max_sectors_kb={largest}")
        assert found_on(layout) == ({("max-sectors", "sdc")} if expected else set())
    layout = add(healthy(shape), f"[{shape.folder(2)}]\nqueue/max_sectors_kb=120\nqueue/max_hw_sectors_kb=120")
    assert found_on(layout) == set(), "the hardware takes no more"
    add(layout, f"[{shape.folder(2)}]\nqueue/max_hw_sectors_kb=32767")
    assert found_on(layout) == {("max-sectors", "sdc")}
    add(layout, f"[{shape.folder(2)}]\nqueue/optimal_io_size={120 * KIB}")
    assert found_on(layout) == set(), "the device's own wish"


# --- caches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cache", "battery", "expected"),
    [
        ("RWBD", "Optimal", set()),
        ("RWTD", "Optimal", {("write-cache", "0000:18:00.0/0/239")}),
        ("RWBD", "Failed", {("write-cache", "0000:18:00.0/0/239")}),
        ("RAWBD", "Failed", {("write-cache", "0000:18:00.0/0/239")}),
        ("RWTD", "Failed", set()),
    ],
)
def test_a_cache_and_its_battery(cache: str, battery: str, expected: Planted) -> None:
    layout = load("raid-megaraid")
    swapped(layout, "tools/storcli/all", '"RWBD"', f'"{cache}"')
    swapped(layout, "tools/storcli/all", '"State":"Optimal"', f'"State":"{battery}"')
    assert found_on(layout) == expected
    if expected:
        critical = "AWB" in cache
        assert (finding(layout, "write-cache").severity is Severity.CRITICAL) is critical


def test_without_barriers_a_good_battery_is_enough() -> None:
    layout = load("raid-megaraid")
    swapped(layout, "proc/self/mountinfo", "rw,stripe=256", "rw,nobarrier,stripe=256")
    assert found_on(layout) == set()
    swapped(layout, "tools/storcli/all", '"State":"Optimal"', '"State":"Failed"')
    assert ("barriers", "fs:/") in found_on(layout)
    layout.remove("tools/storcli/all")
    found = diagnosis(layout)
    assert found.findings == []
    assert ("barriers", "fs:/") in {(one.rule, one.object) for one in found.unjudged}


@pytest.mark.parametrize("options", ["rw,lazytime", "ro", "rw,noatime"])
def test_access_times_that_are_not_written(options: str) -> None:
    layout = swapped(load("raid5-ext4-sector63"), "proc/self/mountinfo", "/srv rw -", f"/srv {options} -")
    assert ("atime", "fs:/srv") not in found_on(layout)


# --- arrays --------------------------------------------------------------------------------------------------------


def test_the_probability_of_an_unreadable_sector_is_shown() -> None:
    shape = Shape(disks=5)
    component = 4 * 10**12 // 1024
    layout = add(healthy(shape), f"[{shape.array}]\nmd/component_size={component}")
    found = finding(layout, "ure")
    assert found.numbers["bits_read"] == pytest.approx(4 * 4e12 * 8, rel=1e-6)
    assert found.numbers["probability"] == pytest.approx(1 - 2.718281828**-(1.28), abs=1e-3)
    assert "72 %" in found.effect
    layout = add(healthy(Shape(disks=5, level="raid6")), f"[{shape.array}]\nmd/component_size={component}")
    assert found_on(layout) == set()


def test_drives_of_10_000_rpm_have_a_better_bound() -> None:
    shape = Shape(disks=8, drive="sas")
    assert found_on(healthy(shape)) == set()


def test_a_hardware_raid5_of_large_drives() -> None:
    layout = load("raid-megaraid")
    swapped(layout, "tools/storcli/all", '"RAID6"', '"RAID5"')
    swapped(layout, "tools/storcli/all", '"14.552 TB"', '"58.208 TB"')
    text = layout.files["tools/storcli/all"].decode().replace('"3.637 TB"', '"14.552 TB"')
    layout.files["tools/storcli/all"] = text.replace('"SAS"', '"SATA"').replace("ST4000NM0023", "WD160EDGZ").encode()
    found = finding(layout, "ure")
    assert found.object == "0000:18:00.0/0/239"
    assert found.numbers["drives"] == 5


def test_flash_beside_platters_and_a_mirror_that_intends_it() -> None:
    shape = Shape(level="raid1", disks=2)
    layout = healthy(shape)
    words = "sys/devices/pci0000:00/0000:00:1f.2/ata2/link2/dev2.0/ata_device/dev2.0/id"
    swapped(layout, words, "0000 1c20 ", "0000 0001 ")
    swapped(layout, f"{shape.folder(1)}/queue/rotational", "1", "0")
    assert found_on(layout) == {("unequal-members", "md0")}
    add(layout, f"[{shape.array}]\nmd/dev-sda1/state=in_sync,write_mostly")
    assert found_on(layout) == set()


def test_a_member_on_a_link_of_another_generation() -> None:
    shape = Shape(drive="nvme", level="raid0")
    layout = add(healthy(shape), "[sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0]\ncurrent_link_width=1")
    assert found_on(layout) == {("unequal-members", "md0"), ("drive-link", "0000:02:00.0")}
    assert finding(layout, "unequal-members").numbers["slowest_share"] == 0.25


def test_members_behind_an_expander_with_one_lane() -> None:
    layout = load("raid6-degraded-resync")
    before = found_on(layout)
    layout.remove("sys/devices/pci0000:00/0000:00:03.0/0000:05:00.0/host6/port-6:0/phy-6:1")
    assert found_on(layout) == before | {("shared-link", "md2")}
    assert finding(layout, "shared-link").numbers["link_bytes_per_s"] == 600e6


def test_members_behind_a_port_multiplier() -> None:
    shape = Shape(level="raid1", disks=2, partitions=False)
    layout = healthy(shape)
    place = "sys/devices/pci0000:00/0000:00:1f.2/"
    own, shared = place + "ata2/host1/target1:0:0/1:0:0:0", place + "ata1/host0/target0:1:0/0:1:0:0"
    layout.files = {path.replace(own, shared): content for path, content in layout.files.items()}
    layout.links = {path.replace(own, shared): target for path, target in layout.links.items()}
    layout.links[f"{shared}/block/sdb/device"] = "../../../0:1:0:0"
    layout.links["sys/class/block/sdb"] = f"/{shared}/block/sdb"
    layout.links["sys/block/sdb"] = f"/{shared}/block/sdb"
    assert found_on(layout) == {("shared-link", "md0")}


def test_members_behind_a_narrow_slot() -> None:
    shape = Shape(drive="sas", disks=8, level="raid6")
    slot = "[sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0]\n"
    layout = add(healthy(shape), slot + "current_link_speed=2.5 GT/s PCIe\ncurrent_link_width=1")
    assert found_on(layout) == {("shared-link", "md0")}


def test_two_members_on_one_drive() -> None:
    shape = Shape(level="raid1", disks=2)
    layout = healthy(shape)
    layout.remove(shape.folder(1))
    layout.remove("sys/class/block/sdb1")
    layout.remove("sys/class/block/sdb")
    layout.remove("sys/block/sdb")
    layout.remove(f"{shape.array}/md/dev-sdb1")
    layout.remove(f"{shape.array}/slaves/sdb1")
    add(
        layout,
        f"device {shape.folder(0)}/sda2\ndev=259:150\npartition=2\nstart=1000001536\n"
        f"size={shape.drive_sectors - 4096}\nalignment_offset=0\nro=0\nholder sda2 md0\n"
        f"[{shape.array}]\nslaves/sda2 -> /sys/class/block/sda2\nmd/dev-sda2/slot=1\nmd/dev-sda2/state=in_sync\n"
        "md/dev-sda2/errors=0\nmd/dev-sda2/offset=264192",
    )
    assert found_on(layout) == {("shared-link", "md0")}
    assert finding(layout, "shared-link").severity is Severity.CRITICAL


def test_a_bad_block_list_of_a_member() -> None:
    shape = Shape(level="raid6", disks=5)
    layout = add(healthy(shape), f"[{shape.array}]\nmd/dev-sdb1/bad_blocks <<END\n1000 8\nEND")
    assert found_on(layout) == {("md-member", "sdb1")}


def test_the_stripe_cache_that_is_advised_fits_in_memory() -> None:
    shape = Shape(disks=5)
    layout = add(healthy(shape), f"[{shape.array}]\nmd/stripe_cache_size=256")
    assert finding(layout, "stripe-cache").numbers["memory_bytes"] == 4096 * 4096 * 5
    add(layout, "[]\nproc/meminfo=MemTotal:       1048576 kB")
    assert finding(layout, "stripe-cache").numbers["memory_bytes"] == 2048 * 4096 * 5


def test_a_rebuild_at_its_limit_is_found() -> None:
    layout = load("raid6-degraded-resync")
    assert ("md-sync-speed", "md2") not in found_on(layout)
    add(layout, "[sys/devices/virtual/block/md2]\nmd/sync_speed_max=110000 (system)")
    found = finding(layout, "md-sync-speed")
    assert "is slowed down" in found.summary
    assert found.steps[0].commands == ["spindle knobs set md2 sync_speed_max=220000"]
    assert not found.steps[0].waits, "it helps while the rebuild runs"


# --- drives --------------------------------------------------------------------------------------------------------


def test_a_single_path_left_is_critical() -> None:
    layout = load("dm-multipath")
    status = "0 2147483648 multipath 2 0 0 0 1 1 A 0 1 2 8:16 A 0 0 1"
    layout.files["tools/dmsetup-status/dm-0"] = status.encode()
    assert finding(layout, "multipath").severity is Severity.CRITICAL


def test_working_paths_are_not_a_finding() -> None:
    layout = load("dm-multipath")
    swapped(layout, "tools/dmsetup-status/dm-0", "8:64 F 3", "8:64 A 0")
    path = next(path for path in layout.files if path.endswith("8:0:1:1/state"))
    layout.files[path] = b"running\n"
    assert found_on(layout) == set()
    layout = load("nvme-multipath")
    for path in [path for path in layout.files if path.endswith("nvme1/state")]:
        layout.files[path] = b"live\n"
    for path in [path for path in layout.files if path.endswith("nvme0c1n1/ana_state")]:
        layout.files[path] = b"non-optimized\n"
    assert found_on(layout) == set()


@pytest.mark.parametrize(("state", "level"), [("Dgrd", "critical"), ("Rbld", "warn"), ("Optl", None)])
def test_the_state_of_a_unit(state: str, level: str | None) -> None:
    layout = swapped(load("raid-megaraid"), "tools/storcli/all", '"Optl"', f'"{state}"')
    assert {(found.rule, str(found.severity)) for found in diagnosis(layout).findings} == (
        {("raid-unit", level)} if level else set()
    )


def test_flash_known_only_by_its_name() -> None:
    layout = load("sata-ssd")
    words = next(path for path in layout.files if path.endswith("ata_device/dev1.0/id"))
    layout.remove(words)
    layout.remove("tools/smartctl/sda")
    assert found_on(layout) == set()
    flag = next(path for path in layout.files if path.endswith("sda/queue/rotational"))
    layout.files[flag] = b"1\n"
    assert found_on(layout) == {("rotational", "sda")}


def test_a_unit_of_flash_that_the_kernel_treats_as_rotating() -> None:
    layout = load("raid-megaraid")
    text = layout.files["tools/storcli/all"].decode().replace('"HDD"', '"SSD"')
    layout.files["tools/storcli/all"] = text.encode()
    assert found_on(layout) == {("rotational", "sda")}


def test_a_cable_is_distinguished_from_a_medium() -> None:
    layout = load("sata-ssd")
    row = '{"id":5,"name":"Reallocated_Sector_Ct","when_failed":"","raw":{"value":0}}'
    swapped(layout, "tools/smartctl/sda", row, row.replace('"id":5', '"id":199').replace('"value":0', '"value":250'))
    found = finding(layout, "smart")
    assert found.severity is Severity.NOTE
    assert "cable" in found.summary


def test_encryption_that_keeps_discards_from_flash() -> None:
    layout = load("sata-ssd")
    swapped(
        layout,
        "proc/self/mountinfo",
        "8:1 / / rw,noatime shared:1 - ext4 /dev/sda1",
        "253:0 / / rw,noatime - ext4 /dev/x",
    )
    add(
        layout,
        "holder sda1 dm-0\ndevice sys/devices/virtual/block/dm-0\ndev=253:0\nsize=1953517568\ndm/name=root\n"
        "dm/uuid=CRYPT-LUKS2-1\nslaves/sda1 -> /sys/class/block/sda1\nalignment_offset=0\nro=0\n"
        "queue/read_ahead_kb=128\nqueue/discard_max_bytes=0\nqueue/logical_block_size=512\n[]\n"
        "tools/dmsetup-table/dm-0=0 1953517568 crypt aes-xts-plain64 :64:logon:x 0 8:1 32768 "
        "2 no_read_workqueue no_write_workqueue",
    )
    assert found_on(layout) == {("discard", "dm-0")}
    add(layout, "[sys/devices/virtual/block/dm-0]\nqueue/discard_max_bytes=2147450880")
    assert found_on(layout) == set()
