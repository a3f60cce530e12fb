"""Stacks that this machine does not have, from captured trees: their parts and values are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spindle.inspect import Inventory
from spindle.inspect.model import Device, Drive, FileSystem, Md, Pool
from tests.inspect.trees import FIXTURES, NAMES

Stack = Callable[..., Inventory]


def device(inventory: Inventory, name: str) -> Device:
    found = inventory.device(name)
    assert found is not None, f"{name} was not found"
    return found


def drive(inventory: Inventory, name: str) -> Drive:
    found = device(inventory, name).drive
    assert found is not None
    return found


def md(inventory: Inventory, name: str) -> Md:
    found = device(inventory, name).md
    assert found is not None
    return found


def has(part: Any, **expected: object) -> None:
    assert {name: getattr(part, name) for name in expected} == expected


def test_there_are_stacks_of_every_kind_and_each_is_a_small_text() -> None:
    assert len(NAMES) >= 8
    for path in FIXTURES.glob("*.tree"):
        assert path.stat().st_size < 60_000
        path.read_text(encoding="ascii")


@pytest.mark.parametrize("name", NAMES)
def test_every_named_part_exists(stack: Stack, name: str) -> None:
    inventory = stack(name)
    assert inventory.tops
    parts: list[FileSystem | Pool | Device] = [*inventory.file_systems, *inventory.pools, *inventory.devices]
    names = {part.id for part in parts}
    for part in parts:
        assert set(part.below) <= names
    assert all(device.below or device.drive is not None for device in inventory.devices)
    controllers = {controller.id for controller in inventory.controllers}
    for found in inventory.devices:
        if found.drive is not None and found.drive.controller is not None:
            assert found.drive.controller in controllers


def test_raid10_near_over_two_host_bus_adapters(stack: Stack) -> None:
    inventory = stack("md-raid10-n2-xfs", "/data/some/file")
    file_system = inventory.file_systems[0]
    has(
        file_system,
        type="xfs",
        mount_point="/data",
        atime="noatime",
        stripe_unit_bytes=512 << 10,
        stripe_width_bytes=7 * 512 << 10,
        sunit_blocks=128,
        swidth_blocks=896,
        block_bytes=4096,
        allocation_groups=32,
        log_stripe_unit_bytes=32 << 10,
        size_bytes=4197896716288,
        below=["md0"],
    )
    has(
        md(inventory, "md0"),
        level="raid10",
        layout="near=2",
        chunk_bytes=512 << 10,
        raid_disks=14,
        data_disks=7,
        stripe_bytes=7 * 512 << 10,
        degraded=0,
        sync_action="idle",
        bitmap="internal",
        bitmap_chunk_bytes=64 << 20,
        name="store1:data",
        sync_speed_max_kb=200000,
    )
    assert [member.device for member in md(inventory, "md0").members] == [f"sd{letter}" for letter in "abcdefghijklmn"]
    assert {member.data_offset_sectors for member in md(inventory, "md0").members} == {262144}
    has(
        drive(inventory, "sdh"),
        transport="sas",
        vendor="SEAGATE",
        model="ST3600057SS",
        rotation_rpm=15000,
        link_gbps=6.0,
        port="port-1:0",
        slot=0,
        controller="0000:82:00.0",
        numa_node=1,
        queue_depth=254,
        write_cache_enabled=False,
        io_errors=2,
    )
    assert len(inventory.controllers) == 2
    first, second = inventory.controllers
    has(first, driver="mpt3sas", name="SAS9207-8i", firmware="20.00.07.00", numa_node=0, irq_cpus=2, link_width=8)
    has(second, numa_node=1, local_cpus="16-31", drives=[f"sd{letter}" for letter in "hijklmn"])
    assert [(irq.number, irq.cpus, irq.count, irq.busiest_cpu) for irq in second.irqs] == [
        (80, "16", 1334567, 16),
        (81, "17", 2334567, 17),
    ]
    smart = drive(inventory, "sda").smart
    has(smart, healthy=True, temperature_celsius=34, power_on_hours=41234, grown_defects=0, uncorrectable=0)


def test_raid10_far_takes_geometry_from_the_mount_when_xfs_info_is_missing(stack: Stack) -> None:
    inventory = stack("md-raid10-f2-xfs")
    file_system = inventory.file_systems[0]
    has(
        file_system,
        stripe_unit_bytes=512 << 10,
        stripe_width_bytes=14 * 512 << 10,
        geometry_source="the mount options",
        allocation_groups=None,
        atime="relatime",
    )
    assert "xfs_info" in file_system.unknown["allocation_groups"]
    has(md(inventory, "md0"), layout="far=2", data_disks=14, stripe_bytes=14 * 512 << 10, name=None)
    assert "name" in md(inventory, "md0").unknown
    queue = device(inventory, "md0").queue
    assert queue is not None
    assert queue.read_ahead_kb == 128
    assert [member.errors for member in md(inventory, "md0").members if member.errors] == [3]


def test_raid5_of_partitions_at_sector_63(stack: Stack) -> None:
    inventory = stack("raid5-ext4-sector63")
    part = device(inventory, "sda1").partition
    has(part, start_sector=63, start_bytes=32256, aligned_to_bytes=512, table="dos", number=1)
    has(device(inventory, "sda1"), alignment_offset_bytes=3584, content="linux_raid_member")
    has(device(inventory, "md127"), alignment_offset_bytes=-1)
    has(
        md(inventory, "md127"),
        level="raid5",
        layout="left-symmetric",
        chunk_bytes=64 << 10,
        data_disks=3,
        stripe_cache_size=256,
        metadata="0.90",
        bitmap="none",
    )
    has(
        inventory.file_systems[0],
        type="ext4",
        stride_blocks=0,
        stripe_width_blocks=0,
        stripe_unit_bytes=0,
        block_bytes=4096,
        atime="strictatime",
        journal="ordered",
        barriers=True,
    )
    has(drive(inventory, "sda"), ncq_supported=True, ncq_depth=32, queue_depth=31, port="ata1", link_gbps=3.0)
    has(drive(inventory, "sdc"), ncq_supported=True, ncq_depth=32, queue_depth=1)
    has(drive(inventory, "sda"), rotation_rpm=5400, write_cache_enabled=True, firmware="80.00A80")
    queue = device(inventory, "sda").queue
    assert queue is not None
    has(queue, physical_block_size=4096, logical_block_size=512)


def test_raid6_degraded_and_rebuilding(stack: Stack) -> None:
    inventory = stack("raid6-degraded-resync")
    found = md(inventory, "md2")
    has(
        found,
        level="raid6",
        degraded=1,
        sync_action="recover",
        sync_done_sectors=85999616,
        sync_total_sectors=1171860480,
        sync_speed_kb=107372,
        data_disks=6,
        stripe_cache_size=8192,
        group_thread_count=4,
    )
    states = {member.device: (member.slot, member.state, member.errors) for member in found.members}
    assert states["sdf"] == (None, ["faulty"], 64)
    assert states["sdi"] == (5, ["spare"], 0)
    has(drive(inventory, "sdf"), io_errors=0x1F3, expander="expander-6:0", port="port-6:0:5")
    has(drive(inventory, "sdf").smart, healthy=False, grown_defects=1211, uncorrectable=19, temperature_celsius=48)


def test_volumes_on_raid1_by_their_names(stack: Stack) -> None:
    inventory = stack("lvm-on-md", "/var/lib/my sql/ibdata1")
    assert [found.mount_point for found in inventory.file_systems] == ["/var/lib/my sql"]
    dm = device(inventory, "dm-1").dm
    has(dm, volume_group="vg0", logical_volume="my-sql", owner="LVM")
    assert dm is not None
    assert [(segment.target, segment.areas[0].device, segment.areas[0].offset_sectors) for segment in dm.segments] == [
        ("linear", "md1", 104859648),
        ("linear", "md1", 1048576000),
    ]
    has(md(inventory, "md1"), level="raid1", chunk_bytes=None, data_disks=1)
    assert "chunk_bytes" not in md(inventory, "md1").unknown
    has(device(inventory, "sda1").partition, aligned_to_bytes=1 << 20, table="gpt")


@pytest.mark.parametrize("target", ["/dev/mapper/vg0-root", "/dev/vg0/root", "/dev/dm-0", "dm-0"])
def test_a_device_is_found_by_any_of_its_names(stack: Stack, target: str) -> None:
    assert stack("lvm-on-md", target).tops == ["dm-0"]


def test_nvme_with_a_queue_for_each_cpu(stack: Stack) -> None:
    inventory = stack("nvme-ext4", "/")
    has(
        drive(inventory, "nvme0n1"),
        transport="nvme",
        model="Samsung SSD 970 PRO 1TB",
        firmware="1B2QEXP7",
        rotation_rpm=0,
        numa_node=0,
        controller="0000:01:00.0",
    )
    queue = device(inventory, "nvme0n1").queue
    assert queue is not None
    has(queue, scheduler="none", schedulers=["none", "mq-deadline", "kyber"], hardware_queues=4, tags=1023, fua=1)
    has(inventory.controllers[0], driver="nvme", irq_cpus=4, link_width=4)
    has(drive(inventory, "nvme0n1").smart, used_percent=3, spare_percent=100, media_errors=0, critical_warning=0)
    has(inventory.file_systems[0], stride_blocks=32, mount_stripe_blocks=32, stripe_width_bytes=128 << 10)


def test_nvme_multipath_shows_each_path_and_its_state(stack: Stack) -> None:
    found = drive(stack("nvme-multipath"), "nvme0n1")
    has(found, multipath_policy="numa", serial="S6EXNE0R123456")
    ways = [(path.name, path.controller, path.pci, path.state, path.ana_state) for path in found.paths]
    assert ways == [
        ("nvme0c0n1", "nvme0", "0000:41:00.0", "live", "optimized"),
        ("nvme0c1n1", "nvme1", "0000:42:00.0", "connecting", "inaccessible"),
    ]
    assert [controller.id for controller in stack("nvme-multipath").controllers] == ["0000:41:00.0", "0000:42:00.0"]


def test_sata_ssd(stack: Stack) -> None:
    inventory = stack("sata-ssd")
    queue = device(inventory, "sda").queue
    assert queue is not None
    has(queue, rotational=0, discard_granularity=512, zoned="none")
    has(drive(inventory, "sda"), rotation_rpm=0, transport="sata", error_recovery_deciseconds=0, link_max_gbps=6.0)
    has(drive(inventory, "sda").smart, self_test_running=True, reallocated=0)


def test_3ware_shows_units_drives_and_a_bad_battery(stack: Stack) -> None:
    inventory = stack("raid-3ware")
    has(drive(inventory, "sdb"), transport="raid", smart=None, write_cache_type="write back")
    assert "smart" not in drive(inventory, "sdb").unknown, "a unit of a RAID controller has no health of its own"
    has(inventory.file_systems[0], barriers=False, stripe_unit_bytes=64 << 10, stripe_width_bytes=384 << 10)
    raid = inventory.controllers[0].raid
    assert raid is not None
    has(raid, tool="tw_cli", battery="WeakBat", battery_ok=False)
    has(raid.units[0], name="u0", level="RAID-10", state="OK", chunk_bytes=64 << 10, write_back=True)
    assert [drive.state for drive in raid.drives] == ["OK", "OK", "ECC-ERROR", "NOT-PRESENT"]
    has(raid.drives[2].smart, reallocated=37, pending=2)
    assert inventory.controllers[0].irqs[0].cpus == "0-1"
    queue = device(inventory, "sdb").queue
    assert queue is not None
    has(queue, scheduler="cfq", schedulers=["noop", "anticipatory", "deadline", "cfq"])


def test_megaraid_distinguishes_its_unit_from_a_drive_passed_through(stack: Stack) -> None:
    inventory = stack("raid-megaraid")
    has(drive(inventory, "sda"), transport="raid", scsi_address="0:2:0:0")
    has(drive(inventory, "sdb"), transport="sata", model="ST16000NM001G-2K")
    assert "smart" in drive(inventory, "sdb").unknown
    raid = inventory.controllers[0].raid
    assert raid is not None
    has(raid, tool="storcli", battery="Optimal", battery_ok=True)
    has(raid.units[0], level="RAID6", write_back=True, chunk_bytes=None)
    assert "chunk_bytes" in raid.units[0].unknown
    has(raid.drives[0], model="ST4000NM0023", serial="Z1Z0ABCD", medium="HDD")
    assert raid.drives[1].smart is None
    assert "not in the capture" in raid.drives[1].unknown["smart"]


def test_dm_multipath_shows_the_failed_path(stack: Stack) -> None:
    inventory = stack("dm-multipath")
    dm = device(inventory, "dm-0").dm
    assert dm is not None
    has(dm, owner="mpath", name="mpatha")
    ways = [(path.device, path.active, path.failures, path.group, path.group_state) for path in dm.paths]
    assert ways == [
        ("sdb", True, 0, 1, "active"),
        ("sdd", True, 0, 1, "active"),
        ("sdc", True, 0, 2, "enabled"),
        ("sde", False, 3, 2, "enabled"),
    ]
    assert {drive(inventory, name).wwid for name in ("sdb", "sdc", "sdd", "sde")} == {
        "naa.600a098038304437415d4b6a59684a52"
    }
    has(drive(inventory, "sde"), transport="fc", state="transport-offline", controller="0000:af:00.0")


def test_bcache_and_the_errors_btrfs_counted(stack: Stack) -> None:
    inventory = stack("bcache", "/home")
    has(device(inventory, "bcache0").bcache, cache_mode="writeback", state="dirty", writeback_percent=10)
    has(inventory.file_systems[0], profiles={"data": "single", "metadata": "dup", "system": "dup"}, errors=2)
    assert device(inventory, "bcache0").below == ["sdb"]
