"""Users of a device, on machines made of files: for md and device mapper, which this machine's kernel may not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spindle.host.devices import DevNumber, by_name, by_number, partitions, whole
from spindle.host.guard import _uses
from spindle.host.mounts import Mount, all_mounts, devices_of, parse_mountinfo, swaps
from spindle.host.stack import above, below
from spindle.host.usage import Usage
from tests.workbench import Workbench


@pytest.fixture
def machine(fake_sys: Any) -> Any:
    """Two disks with a mirror over their partitions, on it a volume that is mounted; a third disk is swap."""
    for disk, major in (("sda", 8), ("sdb", 65)):
        fake_sys.device(disk, f"{major}:0", size=1 << 20)
        fake_sys.device(f"{disk}1", f"{major}:1", size=1 << 19, disk=disk)
        fake_sys.device(f"{disk}2", f"{major}:2", size=1 << 18, disk=disk)
    fake_sys.device("md0", "9:0", size=1 << 19)
    (fake_sys.machine.sys / "devices/virtual/block/md0/md").mkdir()
    fake_sys.device("dm-0", "252:0", size=1 << 18, dm="vg-data")
    fake_sys.link("md0", "sda1")
    fake_sys.link("md0", "sdb1")
    fake_sys.link("dm-0", "md0")
    fake_sys.device("sdc", "66:0", size=1 << 20)
    fake_sys.proc(
        "self/mountinfo", "30 1 252:0 / /data\\040of\\134mine rw,noatime shared:1 - xfs /dev/mapper/vg-data rw"
    )
    fake_sys.proc("swaps", "Filename Type Size Used Priority\n/dev/sdc partition 524284 1024 -2")
    return fake_sys.machine


def uses(machine: Any, name: str) -> list[str]:
    device = by_name(name, machine)
    assert device is not None
    return list(Usage.now(machine).of(device))


def test_a_member_of_an_array_says_which_and_what_that_is_used_for(machine: Any) -> None:
    text = "is part of md0, which is part of dm-0 (vg-data), which is mounted on /data of\\mine"
    assert uses(machine, "sda1") == [text]
    assert uses(machine, "sda") == [f"its partition sda1 {text}"]
    assert uses(machine, "md0") == ["is part of dm-0 (vg-data), which is mounted on /data of\\mine"]
    assert uses(machine, "dm-0") == ["is mounted on /data of\\mine"]
    assert uses(machine, "sdc") == ["is in use as swap"]
    assert uses(machine, "sda2") == []


def test_siblings_and_the_disk_are_checked_for_a_partition(machine: Any) -> None:
    usage = Usage.now(machine)
    partition = by_name("sda2", machine)
    assert partition is not None
    assert list(usage.of_siblings(partition)) == [
        "sda1 on the same disk is part of md0, which is part of dm-0 (vg-data), which is mounted on /data of\\mine"
    ]
    assert list(usage.of_disk(partition)) == []


def test_the_stack_is_walked_both_ways(machine: Any) -> None:
    volume, disk = by_name("dm-0", machine), by_name("sda", machine)
    assert volume is not None
    assert disk is not None
    assert [device.name for device in below(volume, machine)] == ["md0", "sda1", "sdb1", "sda", "sdb"]
    assert [device.name for device in above(disk, machine)] == ["sda1", "sda2", "md0", "dm-0"]
    assert [device.name for device in partitions(disk)] == ["sda1", "sda2"]
    assert {whole(part).name for part in partitions(disk)} == {"sda"}


def test_kinds_sizes_and_numbers_are_read(machine: Any) -> None:
    found = {name: by_name(name, machine) for name in ("sda", "sda1", "md0", "dm-0")}
    assert [device.kind for device in found.values() if device] == ["disk", "partition", "md", "dm"]
    assert found["sda"] is not None
    assert found["sda"].size_bytes == 512 << 20
    assert by_number(DevNumber(252, 0), machine) == found["dm-0"]
    assert by_number(DevNumber(1, 1), machine) is None


def test_model_and_serial_are_read_as_each_driver_gives_them(fake_sys: Any) -> None:
    scsi, ata, nvme, virtio = (fake_sys.device(name, f"8:{16 * at}", size=8) for at, name in enumerate("abcd"))
    fake_sys.file(scsi / "device/vendor", "SEAGATE ")
    fake_sys.file(scsi / "device/model", "ST12000NM0027   ")
    (scsi / "device/vpd_pg80").write_bytes(b"\0\x80\0\x14ZJV01234            ")
    fake_sys.file(ata / "device/vendor", "ATA     ")
    fake_sys.file(ata / "device/model", "WDC WD740ADFD-00")
    fake_sys.file(nvme / "device/model", "Samsung SSD 990 PRO 1TB                 ")
    fake_sys.file(nvme / "device/serial", "S6Z1NJ0W123456      ")
    fake_sys.file(virtio / "device/vendor", "0x1af4")
    fake_sys.file(virtio / "serial", "disk-1")
    found = [by_name(name, fake_sys.machine) for name in "abcd"]
    assert [(device.model, device.serial) for device in found if device] == [
        ("SEAGATE ST12000NM0027", "ZJV01234"),
        ("WDC WD740ADFD-00", None),
        ("Samsung SSD 990 PRO 1TB", "S6Z1NJ0W123456"),
        (None, "disk-1"),
    ]


def test_hidden_paths_of_nvme_multipath_are_below(fake_sys: Any) -> None:
    fake_sys.device("nvme0n1", "259:0", size=8)
    path = fake_sys.device("nvme0c1n1", "259:1", size=8)
    fake_sys.file(path / "hidden", "1")
    head = by_name("nvme0n1", fake_sys.machine)
    assert head is not None
    assert [(device.name, device.kind) for device in below(head, fake_sys.machine)] == [("nvme0c1n1", "path")]


def test_another_path_to_a_drive_in_use_is_found_by_its_world_wide_name(fake_sys: Any) -> None:
    for name, number, wwn in (("sda", "8:0", "naa.5000"), ("sdb", "8:16", "naa.5000"), ("sdc", "8:32", "naa.6000")):
        fake_sys.file(fake_sys.device(name, number, size=8) / "device/wwid", wwn)
    fake_sys.proc("self/mountinfo", "9 1 8:0 / /data rw - ext4 /dev/sda rw\n10 1 8:32 / /c rw - ext4 /dev/sdc rw")
    device = by_name("sdb", fake_sys.machine)
    assert device is not None
    assert list(_uses(Usage.now(fake_sys.machine), device)) == [
        "sda, which has the same world-wide name, is mounted on /data"
    ]


def test_every_member_of_a_btrfs_counts_as_mounted(fake_sys: Any) -> None:
    for name, number in (("sda", "8:0"), ("sdb", "8:16")):
        place = fake_sys.device(name, number, size=8)
        members = fake_sys.machine.sys / "fs/btrfs/8f8c/devices"
        members.mkdir(parents=True, exist_ok=True)
        (members / name).symlink_to(place)
    assert uses(fake_sys.machine, "sdb") == ["is a member of the mounted btrfs 8f8c"]


def test_other_namespaces_are_read_once_each(fake_sys: Any) -> None:
    fake_sys.device("sda", "8:0", size=8)
    for process, namespace in (("self", "mnt:[1]"), ("1", "mnt:[1]"), ("50", "mnt:[2]"), ("51", "mnt:[2]")):
        (fake_sys.machine.proc / process / "ns").mkdir(parents=True, exist_ok=True)
        (fake_sys.machine.proc / process / "ns/mnt").symlink_to(namespace)
        if namespace == "mnt:[2]":
            fake_sys.proc(f"{process}/mountinfo", "9 1 8:0 / /inside rw - ext4 /dev/sda rw")
            fake_sys.proc(f"{process}/comm", "dockerd")
    assert uses(fake_sys.machine, "sda") == ["is mounted on /inside (in the mount namespace of process 50 (dockerd))"]
    assert len(all_mounts(fake_sys.machine)) == 1


def mount(**changed: Any) -> Mount:
    line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
    return Mount(**{**parse_mountinfo(line)[0].__dict__, **changed})


def test_mountinfo_is_read_as_proc_describes_it() -> None:
    found = mount()
    assert (found.mount_id, found.dev, found.point) == (36, DevNumber(98, 0), "/mnt2")
    assert (found.fs_type, found.source, found.super_options) == ("ext3", "/dev/root", "rw,errors=continue")
    no_tags = "1 0 0:1 / / rw - rootfs rootfs rw\nnonsense\n2 1 0:2 / /x\\011y rw a:1 b:2 - tmpfs none rw"
    assert [entry.point for entry in parse_mountinfo(no_tags)] == ["/", "/x\ty"]


def test_devices_named_in_mount_options_count(fake_sys: Any) -> None:
    assert devices_of(mount(super_options="rw,journal_dev=0x810"), fake_sys.machine) == {
        DevNumber(98, 0),
        DevNumber(8, 16),
    }
    assert devices_of(mount(dev=DevNumber(0, 40), source="none"), fake_sys.machine) == set()


def test_a_swap_with_a_path_of_another_namespace_is_found_by_its_kernel_name(fake_sys: Any) -> None:
    fake_sys.device("zram7", "253:7", size=8)
    fake_sys.proc("swaps", "Filename Type Size Used Priority\n/nowhere/zram7 partition 100 4 100")
    assert [(swap.dev, swap.used_bytes) for swap in swaps(fake_sys.machine)] == [(DevNumber(253, 7), 4096)]


def test_a_loop_device_is_on_its_file_and_that_on_its_disk(bench: Workbench) -> None:
    inner_image = bench.mount(prepared(bench)) / "inner"
    with inner_image.open("xb") as file:
        file.truncate(1 << 20)
    inner = by_name(Path(bench.loop(inner_image)).name)
    assert inner is not None
    names = [device.name for device in below(inner)]
    assert names[0].startswith("loop")
    assert inner.name not in names


def prepared(bench: Workbench) -> str:
    device = bench.loop()
    bench.run("mkfs.ext4", "-q", device)
    return str(device)
