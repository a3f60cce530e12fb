"""Limits of control groups, extents of files, and settings that change while a load runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spindle.conditions.watch import SettingsWatch
from spindle.host import groups
from spindle.host.devices import by_name
from spindle.host.extents import extents_of

MIB = 1 << 20


@pytest.mark.promise(14)
def test_limits_of_version_2_apply_to_the_groups_below(fake_sys: Any) -> None:
    fake_sys.device("sda", "8:0", size=1 << 20)
    fake_sys.proc("self/cgroup", "0::/user/job")
    root = fake_sys.machine.sys / "fs/cgroup"
    fake_sys.file(root / "user/job/io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=20\n8:16 rbps=5\n")
    fake_sys.file(root / "user/io.max", "8:0 rbps=2097152 wbps=max riops=max wiops=max\n")
    fake_sys.file(root / "user/cpu.max", "150000 100000\n")
    fake_sys.file(root / "user/job/cpu.max", "max 100000\n")
    fake_sys.file(root / "user/job/memory.high", str(64 * MIB))
    device = by_name("sda", fake_sys.machine)
    assert device is not None
    found = groups.limits([device], fake_sys.machine)
    assert [(one.group, one.kind, one.value) for one in found.io] == [
        ("/user/job", "rbps", MIB),
        ("/user/job", "wiops", 20),
        ("/user", "rbps", 2 * MIB),
    ]
    assert (found.cpus, found.cpu_group) == (1.5, "/user")
    assert (found.memory_bytes, found.memory_group) == (64 * MIB, "/user/job")


@pytest.mark.promise(14)
def test_limits_of_io_of_version_1_apply_to_the_group_alone(fake_sys: Any) -> None:
    fake_sys.device("sda", "8:0", size=1 << 20)
    fake_sys.proc("self/cgroup", "7:blkio:/user/job\n4:memory:/user/job\n1:cpu,cpuacct:/user/job\n0::/")
    fake_sys.proc(
        "self/mountinfo",
        "30 20 0:25 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
        "31 20 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
    )
    root = fake_sys.machine.sys / "fs/cgroup"
    fake_sys.file(root / "blkio/user/job/blkio.throttle.read_bps_device", "8:0 1048576\n")
    fake_sys.file(root / "blkio/user/blkio.throttle.read_bps_device", "8:0 1000\n")
    fake_sys.file(root / "memory/user/memory.limit_in_bytes", str(32 * MIB))
    fake_sys.file(root / "memory/memory.limit_in_bytes", "9223372036854771712")
    fake_sys.file(root / "cpu,cpuacct/user/cpu.cfs_quota_us", "50000")
    fake_sys.file(root / "cpu,cpuacct/user/cpu.cfs_period_us", "100000")
    device = by_name("sda", fake_sys.machine)
    assert device is not None
    found = groups.limits([device], fake_sys.machine)
    assert [(one.group, one.kind, one.value) for one in found.io] == [("/user/job", "rbps", MIB)]
    assert (found.memory_bytes, found.cpus) == (32 * MIB, 0.5)
    assert groups.settings([device], fake_sys.machine)["cgroup.io.rbps:/user/job:sda"] == str(MIB)


@pytest.mark.promise(14)
def test_holes_and_unwritten_extents_are_found(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(os.urandom(4 * MIB))
        os.fsync(file.fileno())
        file.truncate(16 * MIB)
        try:
            os.posix_fallocate(file.fileno(), 4 * MIB, 4 * MIB)
        except OSError as error:
            pytest.skip(f"fallocate: {error}")
        os.fsync(file.fileno())
    with path.open("rb") as file:
        found = extents_of(file.fileno())
    assert found is not None
    if found.hole_bytes is None:
        pytest.skip("the file system of the temporary folder has no FIEMAP")
    assert found.hole_bytes == 8 * MIB
    assert found.unwritten_bytes in (0, 4 * MIB)  # tmpfs and others write zeros instead


@pytest.mark.promise(14)
@pytest.mark.skipif(os.geteuid() != 0, reason="makes and mounts a btrfs on a loop device: root")
def test_a_compressed_file_of_btrfs_is_found(tmp_path: Path) -> None:
    image, point = tmp_path / "image", tmp_path / "mounted"
    with image.open("wb") as file:
        file.truncate(256 * MIB)
    if subprocess.run(["mkfs.btrfs", "-q", image], check=False, capture_output=True).returncode:
        pytest.skip("mkfs.btrfs is not installed")
    point.mkdir()
    mounted = subprocess.run(
        ["mount", "-o", "loop,compress=zstd", image, point], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"mount: {mounted.stderr.strip()}")
    try:
        with (point / "file").open("wb") as file:
            file.write(b"0123456789abcdef" * (MIB // 16) * 4)
            os.fsync(file.fileno())
        with (point / "file").open("rb") as file:
            found = extents_of(file.fileno())
        assert found is not None
        assert found.compressed_bytes == 4 * MIB
        assert found.compresses.startswith("btrfs, mounted with compress=zstd")
    finally:
        subprocess.run(["umount", point], check=True)


@pytest.mark.promise(14)
def test_a_setting_that_changes_and_changes_back_during_a_load_is_seen(fake_sys: Any) -> None:
    disk = fake_sys.device("sda", "8:0", size=1 << 20)
    fake_sys.file(disk / "queue/scheduler", "[none] mq-deadline")
    fake_sys.file(disk / "queue/read_ahead_kb", "128")
    device = by_name("sda", fake_sys.machine)
    assert device is not None
    watch = SettingsWatch([device], fake_sys.machine)
    try:
        watch.look(1.0)
        assert watch.seen == []
        fake_sys.file(disk / "queue/scheduler", "none [mq-deadline]")
        fake_sys.file(disk / "queue/iosched/read_expire", "500")
        watch.look(2.0)
        fake_sys.file(disk / "queue/read_ahead_kb", "64")
        watch.look(3.0)
        fake_sys.file(disk / "queue/scheduler", "[none] mq-deadline")
        (disk / "queue/iosched/read_expire").unlink()
        watch.look(4.0)
        seen = {one.name: (one.before, one.during, one.from_s, one.to_s) for one in watch.seen}
        assert seen == {
            "sda.scheduler": ("none", "mq-deadline", 2.0, 4.0),
            "sda.iosched.read_expire": (None, "500", 2.0, 4.0),
        }
    finally:
        watch.close()
