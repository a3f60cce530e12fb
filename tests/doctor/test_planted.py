"""Healthy stacks of many shapes have no finding; one fault planted in any of them is that finding and no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.doctor.shapes import Planted, Shape, add, found_on, geometry, healthy, replace
from tests.inspect.trees import Layout

KIB = 1 << 10
RAID10 = [(2, 1), (1, 2), (3, 1), (2, 2)]
"""(near, far) copies."""


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Arrays as people build them. Drives are small enough that RAID5 may be rebuilt."""
    level = draw(st.sampled_from(["raid0", "raid1", "raid5", "raid6", "raid10"]))
    drive = draw(st.sampled_from(["sata", "sas", "nvme"]))
    near, far = draw(st.sampled_from(RAID10)) if level == "raid10" else (1, 1)
    least = {"raid0": 2, "raid1": 2, "raid5": 3, "raid6": 4, "raid10": 2 * near * far}[level]
    disks = draw(st.integers(least, {"raid1": 3, "raid5": 5}.get(level, 10)))
    if level == "raid10":
        disks -= disks % (near * far)
    table = draw(st.booleans())
    return Shape(
        level=level,
        disks=disks,
        chunk=draw(st.sampled_from([16, 64, 128, 256, 512, 1024])) * KIB,
        near=near,
        far=far,
        drive=drive,
        partitions=draw(st.booleans()),
        table=table,
        volume=draw(st.booleans()),
        fs=draw(st.sampled_from(["xfs", "ext4"])),
        kernel=draw(st.sampled_from(["3.10.0-1160.el7", "4.19.0", "5.15.0-91-generic", "6.1.0-28-amd64", "6.18.5"])),
        drive_sectors=draw(st.sampled_from([1172123568, 1953525168])),
    )


EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@EXAMPLES
@given(shapes())
def test_nothing_is_found_on_a_healthy_stack(shape: Shape) -> None:
    assert found_on(healthy(shape)) == set()


Fault = Callable[[Shape, Layout, int], Planted | None]
"""Plants itself and says what is to be found; None where this shape cannot have it. The number chooses a member."""


def member_misaligned(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if not shape.partitions:
        return None
    add(layout, f"[{shape.folder(which)}/{shape.members[which]}]\nstart=63")
    return {("partition-alignment", shape.members[which])}


def partition_off_the_chunk(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if not shape.table:
        return None
    start = [63, 71, 4194304 + 8, 4194304 + 16][which % 4]
    if shape.striped and start * 512 % shape.chunk == 0:
        return None
    if not shape.striped and start * 512 % 4096 == 0:
        return None
    add(layout, f"[{shape.array}/md0p1]\nstart={start}")
    return {("partition-alignment", "md0p1")}


def volume_off_the_chunk(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if not shape.volume or shape.table or not shape.striped:
        return None
    add(layout, "[]\ntools/dmsetup-table/dm-0=0 1000000000 linear 9:0 384")
    return {("partition-alignment", "dm-0")} if 384 * 512 % shape.chunk else set()


def wrong_unit(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if not shape.striped:
        return None
    unit = [shape.chunk // 2, shape.chunk * 8, shape.chunk // 4][which % 3]
    if unit % 4096:
        return None
    width = unit * shape.data_disks
    if unit % shape.chunk == 0 and width == shape.stripe:
        return None
    add(layout, "[]\n" + "\n".join(geometry(shape, unit, width)))
    return {("stripe-geometry", "fs:/data")}


def wrong_width(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level not in ("raid5", "raid6"):
        return None
    add(layout, "[]\n" + "\n".join(geometry(shape, shape.chunk, shape.chunk * shape.disks)))
    return {("stripe-geometry", "fs:/data")}


def no_geometry(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if not shape.striped:
        return None
    add(layout, "[]\n" + "\n".join(geometry(shape, 0, 0)))
    return {("stripe-geometry", "fs:/data")}


def small_read_ahead(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if not shape.striped or shape.stripe <= 16 * KIB:
        return None
    top = "dm-0" if shape.volume else "md0"
    add(layout, f"[sys/devices/virtual/block/{top}]\nqueue/read_ahead_kb={shape.stripe // 1024 - 4}")
    return {("read-ahead", top)}


def nothing_sorts(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive == "nvme":
        return None
    add(layout, f"[{shape.folder(which)}]\nqueue/scheduler=mq-deadline kyber bfq [none]")
    return {("scheduler", shape.names[which])}


def bfq_on_nvme(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "nvme":
        return None
    add(layout, f"[{shape.folder(which)}]\nqueue/scheduler=none mq-deadline [bfq]\nqueue/iosched/slice_idle=8")
    add(layout, f"[{shape.folder(which)}]\nqueue/nr_requests=256")
    return {("scheduler", shape.names[which])}


def few_requests(shape: Shape, layout: Layout, which: int) -> Planted | None:
    add(layout, f"[{shape.folder(which)}]\nqueue/nr_requests=16")
    return {("queue-requests", shape.names[which])}


def ncq_off(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sata":
        return None
    add(layout, f"[{shape.folder(which)}/../..]\nqueue_depth=1")
    return {("ncq", shape.names[which])}


def wrong_flag(shape: Shape, layout: Layout, which: int) -> Planted | None:
    add(layout, f"[{shape.folder(which)}]\nqueue/rotational={int(shape.drive == 'nvme')}")
    return {("rotational", shape.names[which])}


def cut_requests(shape: Shape, layout: Layout, which: int) -> Planted | None:
    add(layout, f"[{shape.folder(which)}]\nqueue/max_sectors_kb={min(64, max(shape.chunk // 2048, 4))}")
    return {("max-sectors", shape.names[which])}


def degraded(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level == "raid0":
        return None
    add(layout, f"[{shape.array}]\nmd/degraded=1")
    layout.remove(f"{shape.array}/md/dev-{shape.members[which]}")
    return {("md-degraded", "md0")}


def busy(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level == "raid0":
        return None
    action = ["resync", "check", "repair", "reshape"][which % 4]
    text = f"[{shape.array}]\nmd/sync_action={action}\nmd/sync_completed=1000 / 9000\nmd/sync_speed=50000"
    add(layout, text)
    return {("md-sync", "md0")}


def read_errors(shape: Shape, layout: Layout, which: int) -> Planted | None:
    add(layout, f"[{shape.array}]\nmd/dev-{shape.members[which]}/errors=7")
    return {("md-member", shape.members[which])}


def parity_disagrees(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level == "raid0":
        return None
    add(layout, f"[{shape.array}]\nmd/mismatch_cnt=128")
    return {("md-mismatch", "md0")}


def tiny_bitmap(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level == "raid0":
        return None
    add(layout, f"[{shape.array}]\nmd/bitmap/chunksize={[4096, 65536, 1 << 20, 4 << 20][which % 4]}")
    return {("md-bitmap", "md0")}


def small_stripe_cache(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level not in ("raid5", "raid6"):
        return None
    add(layout, f"[{shape.array}]\nmd/stripe_cache_size={[256, 128, 17][which % 3]}")
    return {("stripe-cache", "md0")}


def another_speed(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sas":
        return None
    add(layout, f"[{shape.folder(which)}/../..]\nvpd_pgb1 hex= 00 b1 00 3c 1c 20 00 02")
    return {("unequal-members", "md0")}


def another_size(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level == "raid0":
        return None
    place = f"{shape.folder(which)}/{shape.members[which]}" if shape.partitions else shape.folder(which)
    add(layout, f"[{place}]\nsize={shape.drive_sectors * 2}")
    return {("unequal-members", "md0")}


def large_drives(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level != "raid5" or shape.drive != "sata":
        return None
    add(layout, f"[{shape.array}]\nmd/component_size={8 * 10**12 // 1024}")
    return {("ure", "md0")}


def strict_atime(shape: Shape, layout: Layout, which: int) -> Planted | None:
    path = "proc/self/mountinfo"
    layout.files[path] = layout.files[path].replace(b"rw,relatime", b"rw")
    return {("atime", "fs:/data")}


def no_barriers(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive == "sas":
        return None  # their caches are off
    path = "proc/self/mountinfo"
    layout.files[path] = (
        layout.files[path].replace(b" rw,sunit", b" rw,nobarrier,sunit").replace(b" rw\n", b" rw,barrier=0\n")
    )
    return {("barriers", "fs:/data")}


def flushes_dropped(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sata":
        return None
    add(layout, f"[{shape.folder(which)}]\nqueue/write_cache=write through")
    return {("barriers", shape.names[which])}


def slow_link(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sata":
        return None
    for at in range(shape.disks):
        port = f"sys/devices/pci0000:00/0000:00:1f.2/ata{at + 1}/link{at + 1}/ata_link/link{at + 1}"
        add(layout, f"[{port}]\nsata_spd=1.5 Gbps")
    return {("drive-link", name) for name in shape.names}


def failing(shape: Shape, layout: Layout, which: int) -> Planted | None:
    data = [
        '{"smart_status": {"passed": false}, "temperature": {"current": 30}}',
        '{"smart_status": {"passed": true}, "ata_smart_attributes": {"table": [{"id": 197, "raw": {"value": 3}}]}}',
        '{"smart_status": {"passed": true}, "ata_smart_attributes": {"table": [{"id": 5, "raw": {"value": 40}}]}}',
        '{"smart_status": {"passed": true}, "nvme_smart_health_information_log": {"critical_warning": 4}}',
    ][which % 4]
    add(layout, f"[]\ntools/smartctl/{shape.names[which]} <<END\n{data}\nEND")
    return {("smart", shape.names[which])}


def hot(shape: Shape, layout: Layout, which: int) -> Planted | None:
    data = '{"smart_status": {"passed": true}, "temperature": {"current": 74}}'
    add(layout, f"[]\ntools/smartctl/{shape.names[which]} <<END\n{data}\nEND")
    return {("temperature", shape.names[which])}


def full(shape: Shape, layout: Layout, which: int) -> Planted | None:
    data = '{"filesystems": [{"target": "/data", "size": 1000000000000, "avail": 20000000000}]}'
    add(layout, f"[]\ntools/findmnt/%2Fdata <<END\n{data}\nEND")
    return {("space", "fs:/data")}


def narrow_slot(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sas" or shape.disks < 3:
        return None
    slot = "[sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0]\n"
    add(layout, slot + "current_link_speed=2.5 GT/s PCIe\ncurrent_link_width=1")
    return {("shared-link", "md0")}


def discards_held_back(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "nvme" or shape.level not in ("raid5", "raid6"):
        return None
    for at in range(shape.disks):
        add(layout, f"[{shape.folder(at)}]\nqueue/discard_max_bytes=2199023255040")
    return {("discard", "md0")}


def shingled_member(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sata":
        return None
    add(layout, f"[{shape.folder(which)}/../..]\nmodel=WDC WD40EFAX-68J")
    return {("shingled", shape.names[which])}


def patient_drive(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sata" or shape.level == "raid0":
        return None
    data = '{"smart_status": {"passed": true}, "ata_sct_erc": {"read": {"enabled": false}}}'
    add(layout, f"[]\ntools/smartctl/{shape.names[which]} <<END\n{data}\nEND")
    return {("error-recovery", shape.names[which])}


def resync_limit(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level == "raid0":
        return None
    add(layout, f"[{shape.array}]\nmd/sync_speed_max={[1000, 10000, 49000][which % 3]} (local)")
    return {("md-sync-speed", "md0")}


def resync_starved(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level == "raid0":
        return None
    add(layout, f"[{shape.array}]\nmd/sync_action=resync\nmd/sync_completed=1000 / 9000\nmd/sync_speed=1500")
    return {("md-sync", "md0"), ("md-sync-speed", "md0")}


def no_bitmap(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.level == "raid0":
        return None
    add(layout, f"[{shape.array}]\nmd/bitmap/location=none\nmd/consistency_policy=resync")
    return {("md-no-bitmap", "md0")}


def dirty_memory(shape: Shape, layout: Layout, which: int) -> Planted | None:
    add(layout, "[]\nproc/sys/vm/dirty_bytes=2000000000000")
    return {("dirty-memory", "machine")}


def swap_beside(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive == "nvme":
        return None
    add(layout, "[]\nproc/swaps <<END\nFilename Type Size Used Priority\n/dev/md0 partition 1000000 0 -2\nEND")
    return {("swap-place", "md0")}


def another_sector(shape: Shape, layout: Layout, which: int) -> Planted | None:
    add(layout, f"[{shape.folder(which)}]\nqueue/logical_block_size=4096")
    return {("sector-sizes", "md0")}


def worn(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "nvme":
        return None
    data = '{"smart_status": {"passed": true}, "nvme_smart_health_information_log": {"percentage_used": 80}}'
    add(layout, f"[]\ntools/smartctl/{shape.names[which]} <<END\n{data}\nEND")
    return {("wear", shape.names[which])}


def bad_firmware(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "nvme":
        return None
    place = shape.folder(which).rsplit("/", 1)[0]
    add(layout, f"[{place}]\nmodel=Samsung SSD 980 PRO 2TB\nfirmware_rev=3B2QGXA7")
    return {("firmware", shape.names[which])}


def link_sleeps(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sata":
        return None
    port = f"sys/devices/pci0000:00/0000:00:1f.2/ata{which + 1}/host{which}/scsi_host/host{which}"
    add(layout, f"[{port}]\nlink_power_management_policy={['min_power', 'med_power_with_dipm'][which % 2]}")
    return {("sata-power", shape.names[which])}


def spins_down(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive == "nvme":
        return None
    data = '{"smart_status": {"passed": true}, "ata_apm": {"enabled": true, "level": 127}, "rotation_rate": 15000}'
    add(layout, f"[]\ntools/smartctl/{shape.names[which]} <<END\n{data}\nEND")
    return {("spin-down", shape.names[which])}


def pcie_sleeps(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "nvme":
        return None
    add(layout, f"[{shape.folder(which).rsplit('/', 3)[0]}]\nlink/l1_aspm=1")
    return {("pcie-power", f"0000:{which + 1:02x}:00.0")}


def cpus_sleep(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "nvme":
        return None
    add(layout, "[sys/devices/system/cpu/cpu0/cpuidle/state3]\nname=C6\nlatency=133\ndisable=0")
    return {("cpu-latency", "machine")}


def data_journal(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.fs != "ext4":
        return None
    path = "proc/self/mountinfo"
    mode = ["journal", "writeback"][which % 2]
    layout.files[path] = layout.files[path].replace(b" rw\n", f" rw,data={mode}\n".encode())
    return {("ext4-journal", "fs:/data")}


def stepped_down(shape: Shape, layout: Layout, which: int) -> Planted | None:
    if shape.drive != "sata":
        return None
    for at in range(shape.disks):
        port = f"sys/devices/pci0000:00/0000:00:1f.2/ata{at + 1}/link{at + 1}/ata_link/link{at + 1}"
        add(layout, f"[{port}]\nsata_spd=3.0 Gbps")
    return {("drive-link", name) for name in shape.names}


FAULTS: list[Fault] = [
    member_misaligned,
    partition_off_the_chunk,
    volume_off_the_chunk,
    wrong_unit,
    wrong_width,
    no_geometry,
    small_read_ahead,
    nothing_sorts,
    bfq_on_nvme,
    few_requests,
    ncq_off,
    wrong_flag,
    cut_requests,
    degraded,
    busy,
    read_errors,
    parity_disagrees,
    tiny_bitmap,
    small_stripe_cache,
    another_speed,
    another_size,
    large_drives,
    strict_atime,
    no_barriers,
    flushes_dropped,
    slow_link,
    failing,
    hot,
    full,
    narrow_slot,
    discards_held_back,
    shingled_member,
    patient_drive,
    resync_limit,
    resync_starved,
    no_bitmap,
    dirty_memory,
    swap_beside,
    another_sector,
    worn,
    bad_firmware,
    link_sleeps,
    spins_down,
    pcie_sleeps,
    cpus_sleep,
    data_journal,
    stepped_down,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_one_fault_planted_is_that_finding_and_no_other(fault: Fault, data: st.DataObject) -> None:
    shape, which = data.draw(shapes()), data.draw(st.integers(0, 9))
    layout = healthy(shape)
    expected = fault(shape, layout, which % shape.disks)
    assume(expected is not None)
    assert found_on(layout) == expected, shape


OVERWRITING = (degraded, busy, failing, hot, large_drives, another_size, patient_drive, spins_down, worn, bad_firmware)
ALSO_OVERWRITING = (
    bfq_on_nvme,
    resync_starved,
    resync_limit,
    stepped_down,
    slow_link,
    no_bitmap,
    tiny_bitmap,
    data_journal,
)
TOGETHER = [fault for fault in FAULTS if fault not in (*OVERWRITING, *ALSO_OVERWRITING)]
"""Those that leave alone what the others look at."""


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(shapes(), st.lists(st.sampled_from(TOGETHER), min_size=2, max_size=4, unique=True), st.integers(0, 9))
def test_several_faults_are_all_found(shape: Shape, faults: list[Fault], which: int) -> None:
    """None hides another."""
    layout, expected = healthy(shape), set()
    for fault in faults:
        expected |= fault(shape, layout, which % shape.disks) or set()
    assert expected <= found_on(layout)


def test_the_shapes_are_what_they_say() -> None:
    shape = Shape(level="raid10", disks=6, near=2, far=1, chunk=64 * KIB)
    assert (shape.data_disks, shape.stripe) == (3, 192 * KIB)
    assert replace(shape, level="raid6").data_disks == 4
