"""No device in use and no device with a signature is written, trimmed or zeroed; and nothing on it changes."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spindle.host import signatures
from spindle.host.devices import Machine
from spindle.host.errors import Refusal, TargetError
from spindle.host.guard import OpenTarget, StreamAccess, open_target
from spindle.host.testfile import TestFile
from tests.workbench import Workbench, after_other_tests, no_new_loops

Case = Callable[[Any], tuple[str, str]]
"""Prepares a device; returns it and a word that the refusal must contain."""

CASES: dict[str, Case] = {}
MIB = 1 << 20


def case(prepare: Case) -> Case:
    CASES[prepare.__name__] = prepare
    return prepare


def stream(change: str | None) -> StreamAccess:
    """A stream with its share of writes, trims or zeroes, as in a workload."""
    mix = {"write": 0.0, "trim": 0.0, "zero": 0.0}
    if change:
        mix[change] = 0.5
    return StreamAccess.of({"mix": mix, "direct": False, "sync": {"dsync": False}})


CHANGES = ("write", "trim", "zero")


def ext4(bench: Workbench, device: str) -> None:
    """Without a journal, its tables and bitmaps written at once: mounted with noatime, nothing on it changes by itself.

    (A bitmap that is not there the kernel makes as it reads ahead, seconds after the mount.)
    """
    features = "^has_journal,^metadata_csum,^uninit_bg"
    bench.run("mkfs.ext4", "-q", "-O", features, "-E", "lazy_itable_init=0,nodiscard", device)


@case
def mounted_ext4(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    ext4(bench, device)
    bench.mount(device, "-o", "noatime")
    return device, "is mounted on"


@case
def mounted_read_only(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    ext4(bench, device)
    bench.mount(device, "-o", "ro")
    return device, "is mounted on"


@case
def mounted_and_lazily_unmounted_while_in_use(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    bench.run("mkfs.ext4", "-q", device)
    point = bench.mount(device, "-o", "ro")
    bench.undo.callback(os.close, os.open(point, os.O_RDONLY))
    bench.run("umount", "--lazy", point)
    return device, "mounted but not visible"


@case
def mounted_in_another_namespace(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    ext4(bench, device)
    point = bench.new_path("mnt")
    point.mkdir()
    inside = (
        "import subprocess, sys\n"
        "subprocess.run(['mount', '-o', 'ro', sys.argv[1], sys.argv[2]], check=True)\n"
        "print('mounted', flush=True)\nsys.stdin.read()"
    )
    outside = "import os, sys\nos.execvp('unshare', ['unshare', '-m', sys.executable, '-c', *sys.argv[1:]])"
    bench.run("unshare", "--version")
    bench.python(outside, inside, device, str(point))
    return device, "mount namespace of"


@case
def unmounted_ext4(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    ext4(bench, device)
    return device, "`erase_signature=` ext4"


@case
def disk_with_a_mounted_partition(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    first, _ = bench.partitioned(device)
    ext4(bench, first)
    bench.mount(first, "-o", "noatime")
    return device, "its partition"


@case
def partition_of_a_disk_with_another_one_mounted(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    first, second = bench.partitioned(device)
    ext4(bench, first)
    bench.mount(first, "-o", "noatime")
    return second, "`erase_shared=`"


@case
def partition_of_a_disk_held_as_a_whole(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    first, _ = bench.partitioned(device)
    hold_exclusively(bench, device)
    return first, "exclusively"


@case
def partition_of_a_disk_behind_a_loop_device(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    first, _ = bench.partitioned(device)
    bench.loop(device)
    return first, "the disk it is a partition of"


@case
def disk_with_a_partition_table_only(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    bench.partitioned(device)
    return device, "`erase_signature=` dos"


@case
def disk_with_a_file_system_on_a_partition(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    ext4(bench, bench.partitioned(device)[1])
    return device, "`erase_signature=` dos,ext4"


@case
def swap_in_use(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    bench.run("mkswap", device)
    bench.run("swapon", device)
    bench.undo.callback(bench.run, "swapoff", device)
    return device, "in use as swap"


@case
def swap_not_in_use(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    bench.run("mkswap", device)
    return device, "`erase_signature=` swap"


@case
def second_member_of_a_mounted_btrfs(bench: Workbench) -> tuple[str, str]:
    if "btrfs" not in Path("/proc/filesystems").read_text():
        pytest.skip("the kernel has no btrfs")
    first, second = (bench.loop(size=128 * MIB) for _ in range(2))
    bench.run("mkfs.btrfs", "--quiet", "--nodiscard", first, second)
    bench.mount(first, "-o", "ro")
    return second, "is mounted on"


@case
def member_of_an_unmounted_btrfs(bench: Workbench) -> tuple[str, str]:
    first, second = (bench.loop(size=128 * MIB) for _ in range(2))
    bench.run("mkfs.btrfs", "--quiet", "--nodiscard", first, second)
    return second, "`erase_signature=` btrfs"


@case
def unmounted_xfs(bench: Workbench) -> tuple[str, str]:
    device = bench.loop(size=320 * MIB)
    bench.run("mkfs.xfs", "-q", "-K", device)
    return device, "`erase_signature=` xfs"


@case
def log_device_of_a_mounted_xfs(bench: Workbench) -> tuple[str, str]:
    if "xfs" not in Path("/proc/filesystems").read_text():
        pytest.skip("the kernel has no XFS")
    device, log = bench.loop(size=320 * MIB), bench.loop(size=128 * MIB)
    bench.run("mkfs.xfs", "-q", "-K", "-l", f"logdev={log}", device)
    bench.mount(device, "-o", f"ro,logdev={log}")
    return log, "is mounted on"


@case
def journal_of_a_mounted_ext4(bench: Workbench) -> tuple[str, str]:
    device, journal = bench.loop(), bench.loop()
    bench.run("mke2fs", "-q", "-O", "journal_dev", "-b", "4096", journal)
    bench.run("mkfs.ext4", "-q", "-b", "4096", "-E", "lazy_itable_init=0,nodiscard", "-J", f"device={journal}", device)
    bench.mount(device, "-o", "ro")
    return journal, "journal"


@case
def physical_volume_of_lvm(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    write(device, 512, lvm_label())
    return device, "`erase_signature=` LVM2_member"


@case
def member_of_an_md_array(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    write(device, 4096, md_superblock())
    return device, "`erase_signature=` linux_raid_member"


@case
def backing_device_of_bcache(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    write(device, 4096, bcache_superblock())
    return device, "`erase_signature=` bcache"


@case
def held_exclusively_by_another_process(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    hold_exclusively(bench, device)
    return device, "held exclusively by another program"


@case
def open_for_writing_in_another_process(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    bench.python("import os, sys; os.open(sys.argv[1], os.O_RDWR); print(flush=True); sys.stdin.read()", device)
    return device, "has it open for writing"


@case
def locked_by_another_process(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    code = "import fcntl, sys; f = open(sys.argv[1], 'rb'); fcntl.flock(f, 2); print(flush=True); sys.stdin.read()"
    bench.python(code, device)
    return device, "locked"


@case
def loop_device_whose_file_is_mounted_through_another(bench: Workbench) -> tuple[str, str]:
    image = bench.image()
    first, second = bench.loop(image), bench.loop(image)
    ext4(bench, first)
    bench.mount(first, "-o", "noatime")
    return second, "as has /dev/loop"


@case
def loop_device_whose_file_another_one_has_too(bench: Workbench) -> tuple[str, str]:
    image = bench.image()
    bench.loop(image, "--offset", str(16 * MIB))
    return bench.loop(image, "--sizelimit", str(16 * MIB)), "as has /dev/loop"


@case
def loop_device_over_a_mounted_device(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    ext4(bench, device)
    bench.mount(device, "-o", "noatime")
    return bench.loop(device), "is mounted on"


@case
def loop_device_over_a_disk_with_a_mounted_partition(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    first, _ = bench.partitioned(device)
    ext4(bench, first)
    bench.mount(first, "-o", "noatime")
    return bench.loop(device), "is mounted on"


@case
def device_under_a_loop_device(bench: Workbench) -> tuple[str, str]:
    device = bench.loop()
    bench.loop(device)
    return device, "is behind /dev/loop"


@case
def loop_device_over_a_free_device(bench: Workbench) -> tuple[str, str]:
    return bench.loop(bench.loop()), "`erase_stacked=`"


def hold_exclusively(bench: Workbench, device: str) -> None:
    code = "import os, sys; os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL); print(flush=True); sys.stdin.read()"
    bench.python(code, device)


def write(device: str, offset: int, data: bytes) -> None:
    with open(device, "r+b") as file:
        file.seek(offset)
        file.write(data)
        os.fsync(file.fileno())


def lvm_label() -> bytes:
    """lib/format_text/layout.h of LVM2: label header with its checksum, at sector 1."""
    after_crc = struct.pack("<I8s32s", 32, b"LVM2 001", b"0123456789abcdef0123456789abcdef").ljust(512 - 20, b"\0")
    crc = zlib.crc32(after_crc, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    return struct.pack("<8sQI", b"LABELONE", 1, crc) + after_crc


def md_superblock() -> bytes:
    """struct mdp_superblock_1 of drivers/md (version 1.2: 4 KiB from the start)."""
    block = bytearray(256)
    struct.pack_into("<II", block, 0, 0xA92B4EFC, 1)
    block[16:32] = bytes(range(16))
    block[32:64] = b"test:0".ljust(32, b"\0")
    struct.pack_into("<iIQII", block, 72, 1, 0, 32768, 0, 2)
    struct.pack_into("<QQQ", block, 128, 2048, 32768, 8)
    struct.pack_into("<I", block, 216, md_checksum(bytes(block)))
    return bytes(block)


def md_checksum(block: bytes) -> int:
    total: int = sum(struct.unpack("<64I", block))
    return ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF


def bcache_superblock() -> bytes:
    """struct cache_sb_disk of include/uapi/linux/bcache.h."""
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    after_checksum = struct.pack("<QQ16s16s", 8, 1, magic, bytes(range(16))).ljust(200, b"\0")
    return struct.pack("<Q", bcache_crc(after_checksum)) + after_checksum


def bcache_crc(data: bytes) -> int:
    crc = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        crc ^= byte << 56
        for _ in range(8):
            crc = ((crc << 1) ^ 0x42F0E1EBA9EA3693 if crc >> 63 else crc << 1) & 0xFFFFFFFFFFFFFFFF
    return crc ^ 0xFFFFFFFFFFFFFFFF


@pytest.fixture(scope="module")
def prepared(shared_bench: Workbench) -> Callable[[str], tuple[str, str]]:
    """Prepares each case once for its attempts."""
    done: dict[str, tuple[str, str]] = {}

    def prepare(name: str) -> tuple[str, str]:
        if name not in done:
            done[name] = CASES[name](shared_bench)
            shared_bench.run("sync")
        return done[name]

    return prepare


def attempt(path: str | Path, change: str | None, **consent: Any) -> str:
    """Text of the refusal; a target that opens fails the test."""

    def refusal() -> str:
        with pytest.raises(Refusal) as refused:
            open_target(path, [stream(change)], **{"erase": str(path), **consent}).close()
        assert refused.value.exit_code == 3
        return str(refused.value)

    text = after_other_tests(refusal)
    assert "\n" not in text
    assert str(path) in text
    return text


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", CASES)
def test_refused_and_unchanged(
    name: str, change: str, prepared: Callable[[str], tuple[str, str]], content: Callable[[str], str]
) -> None:
    device, word = prepared(name)
    before = content(device)
    assert word in attempt(device, change)
    assert content(device) == before


@pytest.mark.parametrize("name", CASES)
def test_reading_is_allowed_whatever_the_device_is_used_for(
    name: str, prepared: Callable[[str], tuple[str, str]]
) -> None:
    device, _ = prepared(name)
    with open_target(device, [stream(None)]) as target:
        assert not target.writes
        assert len(os.pread(target.files[0].fd, 4096, 0)) == 4096
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(target.files[0].fd, b"x" * 4096, 0)


MOUNTED = [name for name in CASES if "mounted" in name and "unmounted" not in name and "partition" not in name]


@pytest.mark.parametrize("name", [*MOUNTED, "swap_in_use", "held_exclusively_by_another_process"])
def test_no_consent_whatever_overrules_that_a_device_is_in_use(
    name: str, prepared: Callable[[str], tuple[str, str]]
) -> None:
    device, word = prepared(name)
    text = attempt(device, "write", erase_signature="ext4,swap,btrfs,xfs,jbd", erase_stacked=True, erase_shared=True)
    assert word in text


# --- names -----------------------------------------------------------------------------------------------------------


def test_other_names_of_a_mounted_device_are_refused_too(
    prepared: Callable[[str], tuple[str, str]], tmp_path: Path
) -> None:
    device, word = prepared("mounted_ext4")
    link = tmp_path / "link"
    link.symlink_to(device)
    second = tmp_path / "second"
    second.symlink_to(link)
    node = tmp_path / "node"
    os.mknod(node, 0o600 | 0o060000, os.stat(device).st_rdev)
    names = [link, second, f"/dev/../dev/{os.path.basename(device)}", f"//dev/./{os.path.basename(device)}", node]
    for name in names:
        assert word in attempt(str(name), "write", erase=device)
        assert word in attempt(str(name), "write")


def test_names_under_dev_disk_are_refused_too(prepared: Callable[[str], tuple[str, str]]) -> None:
    device, word = prepared("mounted_ext4")
    folder = Path("/dev/disk/by-id")
    made = [place for place in (folder, folder.parent) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / f"spindle-test-{os.getpid()}"
    link.symlink_to(f"../../{os.path.basename(device)}")
    try:
        assert word in attempt(str(link), "write")
    finally:
        link.unlink()
        for place in made:
            place.rmdir()


def test_a_mistyped_name_under_dev_is_an_error_and_never_a_new_file(tmp_path: Path) -> None:
    for name in ("/dev/spindle-no-such-device", "/dev/../dev/spindle-no-such-device", "/dev/disk/by-id/spindle-none"):
        assert "no such device" in attempt(name, "write")
        assert not os.path.lexists(name)
        with pytest.raises(TargetError, match="no such device"):
            open_target(name, [stream(None)])
    link = tmp_path / "dev"
    link.symlink_to("/dev")
    assert "no such device" in attempt(str(link / "spindle-no-such-device"), "write")


@pytest.mark.parametrize("change", CHANGES)
def test_a_free_device_is_refused_unless_erase_names_it(bench: Workbench, change: str) -> None:
    device, other = bench.loop(), bench.loop()
    assert "`erase=`" in attempt(device, change, erase=None)
    assert "another device" in attempt(device, change, erase=other)
    assert "cannot be looked up" in attempt(device, change, erase="/dev/spindle-no-such-device")
    assert "another device" in attempt(device, change, erase=str(bench.folder))


def test_erase_of_the_disk_does_not_name_its_partition(bench: Workbench) -> None:
    device = bench.loop()
    first, second = bench.partitioned(device)
    assert "another device" in attempt(first, "write", erase=device)
    assert "another device" in attempt(first, "write", erase=second)
    assert "another device" in attempt(device, "write", erase=first)


@pytest.mark.promise(26)
def test_erase_that_names_another_device_is_refused_also_where_nothing_is_written(
    bench: Workbench, tmp_path: Path
) -> None:
    device, other = bench.loop(), bench.loop()
    assert "another device" in attempt(device, None, erase=other)
    assert "cannot be looked up" in attempt(device, None, erase="/dev/spindle-no-such-device")
    file = tmp_path / "file"
    file.write_bytes(bytes(4096))
    assert "is not a device, but `erase=` names" in attempt(file, None, erase=device)
    with (
        TestFile.create(tmp_path / "made", MIB) as made,
        pytest.raises(Refusal, match="is not a device"),
        open_target(made, [stream("write")], erase=device),
    ):
        pass
    with open_target(device, [stream(None)], erase=device) as target:
        assert not target.writes


# --- what is allowed -------------------------------------------------------------------------------------------------


def overwrite(target: OpenTarget) -> None:
    assert os.pwrite(target.files[0].fd, b"\xaa" * 4096, 0) == 4096


def test_a_free_device_that_erase_names_is_written(bench: Workbench) -> None:
    device = bench.loop()
    asked: list[str] = []

    def agreed(text: str) -> bool:
        asked.append(text)
        return True

    with open_target(device, [stream("write")], erase=device, confirm=agreed) as target:
        overwrite(target)
    assert Path(device).read_bytes()[:4097] == b"\xaa" * 4096 + b"\0"
    assert len(asked) == 1
    assert all(word in asked[0] for word in (device, "33.6 MB", "image", "empty"))


def test_a_device_is_written_under_another_name_of_it(bench: Workbench, tmp_path: Path) -> None:
    device = bench.loop()
    link = tmp_path / "link"
    link.symlink_to(device)
    with open_target(link, [stream("write")], erase=device) as target:
        overwrite(target)


def test_the_signature_must_be_repeated_as_shown(bench: Workbench) -> None:
    device = bench.loop()
    ext4(bench, device)
    for wrong in (None, "", "xfs", "ext4,xfs", "EXT4"):
        assert "`erase_signature=` ext4" in attempt(device, "write", erase_signature=wrong)
    with open_target(device, [stream("write")], erase=device, erase_signature="ext4"):
        pass


def test_a_device_erased_before_may_have_lost_signatures_but_gained_none(bench: Workbench) -> None:
    device = bench.loop()
    again = partial(open_target, device, [stream("write")], erase=device, erase_signature="ext4", erased_before=True)
    with again():
        pass
    ext4(bench, device)
    with again():
        pass
    bench.run("wipefs", "-aq", device)
    bench.run("mkswap", device)
    assert "`erase_signature=` swap" in attempt(device, "write", erase_signature="ext4", erased_before=True)
    assert "`erase_signature=` swap" in attempt(device, "write", erased_before=True)


def test_every_signature_must_be_repeated(bench: Workbench) -> None:
    device = bench.loop()
    ext4(bench, bench.partitioned(device)[1])
    for incomplete in ("dos", "ext4"):
        attempt(device, "write", erase_signature=incomplete)
    with open_target(device, [stream("write")], erase=device, erase_signature="ext4,dos"):
        pass


def test_a_signature_that_is_not_there_is_a_sign_of_a_mix_up(bench: Workbench) -> None:
    device = bench.loop()
    assert "has no signature" in attempt(device, "write", erase_signature="ext4")


def test_a_partition_is_written_beside_a_mounted_one_when_that_is_agreed(bench: Workbench) -> None:
    device = bench.loop()
    first, second = bench.partitioned(device)
    ext4(bench, first)
    bench.mount(first, "-o", "noatime")
    with open_target(second, [stream("write")], erase=second, erase_shared=True) as target:
        assert target.size_bytes == 24576 * 512
        overwrite(target)


def test_no_confirmation_no_writing(bench: Workbench, content: Callable[[str], str]) -> None:
    device = bench.loop()
    before = content(device)
    assert "not confirmed" in attempt(device, "write", confirm=lambda _: False)
    assert content(device) == before


def test_the_claim_is_kept_for_the_whole_run_and_given_back(bench: Workbench) -> None:
    device = bench.loop()
    with open_target(device, [stream("write"), stream("trim"), stream(None)], erase=device) as target:
        assert len({file.fd for file in target.files}) == 3
        with pytest.raises(OSError, match="busy"):
            os.open(device, os.O_RDONLY | os.O_EXCL)
        assert "exclusively" in attempt(device, "write")
    os.close(os.open(device, os.O_RDONLY | os.O_EXCL))


def test_a_loop_device_over_a_free_device_claims_that_too(bench: Workbench) -> None:
    lower = bench.loop()
    upper = bench.loop(lower)
    target = open_target(upper, [stream("write")], erase=upper, erase_stacked=True)
    with target, pytest.raises(OSError, match="busy"):
        os.open(lower, os.O_RDONLY | os.O_EXCL)


def test_a_stack_of_devices_needs_consent_of_its_own(bench: Workbench, fake_sys: Any) -> None:
    device = bench.loop()
    number = f"{os.major(os.stat(device).st_rdev)}:{os.minor(os.stat(device).st_rdev)}"
    fake_sys.device("dm-0", number, size=65536, dm="data")
    fake_sys.device("sdx", "240:0", size=65536)
    fake_sys.link("dm-0", "sdx")
    machine: Machine = fake_sys.machine
    assert "is built of sdx" in attempt(device, "write", machine=machine)
    with open_target(device, [stream("write")], erase=device, erase_stacked=True, machine=machine) as target:
        assert [found.name for found in target.counted_devices()] == ["dm-0", "sdx"]


# --- content that cannot be determined -------------------------------------------------------------------------------


def test_a_missing_tool_is_a_refusal(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    device = bench.loop()
    monkeypatch.setattr(signatures, "TOOL_FOLDERS", "")
    monkeypatch.setenv("PATH", "/nowhere")
    assert "wipefs is missing (package util-linux)" in attempt(device, "write")


def test_a_tool_that_hangs_is_a_refusal(bench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = bench.loop()
    slow = tmp_path / "wipefs"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(signatures, "TIMEOUT_S", 0.2)
    assert "gave no answer" in attempt(device, "write")


@pytest.mark.parametrize(("tool", "script"), [("wipefs", "echo '{\"signatures\": []}'"), ("blkid", "exit 2")])
def test_a_signature_found_by_one_tool_is_enough(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tool: str, script: str
) -> None:
    device = bench.loop()
    ext4(bench, device)
    blind = tmp_path / tool
    blind.write_text(f"#!/bin/sh\n{script}\n")
    blind.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "`erase_signature=` ext4" in attempt(device, "write")


def test_an_answer_that_is_not_understood_is_a_refusal(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device = bench.loop()
    odd = tmp_path / "wipefs"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for script in ("echo surprise", "echo '{}'", "exit 1"):
        odd.write_text(f"#!/bin/sh\n{script}\n")
        odd.chmod(0o755)
        assert "content cannot be determined" in attempt(device, "write")


def test_a_device_that_cannot_be_read_is_a_refusal(bench: Workbench) -> None:
    for length in (0, 16 * MIB):  # all of it, and its end
        image = bench.image()
        device = bench.loop(image)
        os.truncate(image, length)
        assert "content cannot be read: input/output error" in attempt(device, "write")
        assert image.stat().st_size == length


def test_read_only_and_empty_devices_get_one_line(bench: Workbench) -> None:
    device = bench.loop(None, "--read-only")
    with pytest.raises(TargetError, match="read-only"):
        open_target(device, [stream("write")], erase=device)
    gone = bench.loop()
    with no_new_loops():
        bench.run("losetup", "--detach", gone)
        for change in (None, "write"):
            with pytest.raises(TargetError, match="has no size"):
                open_target(gone, [stream(change)], erase=gone)


@pytest.mark.parametrize("change", [None, "write"])
def test_other_kinds_of_targets_get_one_line(tmp_path: Path, change: str | None) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    kinds = {"/dev/null": "a character device", str(pipe): "a pipe", str(tmp_path): "a folder"}
    for path, kind in kinds.items():
        with pytest.raises(TargetError, match=kind) as error:
            open_target(path, [stream(change)], erase=path)
        assert isinstance(error.value, Refusal) == (change is not None)


def test_a_missing_permission_gets_one_line(bench: Workbench) -> None:
    device = bench.loop()
    os.seteuid(65534)
    try:
        for change in (None, "write"):
            with pytest.raises(TargetError, match="no permission to"):
                open_target(device, [stream(change)], erase=device)
    finally:
        os.seteuid(0)


def test_a_target_that_disappears_is_noticed(bench: Workbench) -> None:
    image = bench.image()
    device = bench.loop(image)
    with open_target(device, [stream(None)]) as target:
        assert target.trouble() is None
        os.truncate(image, 16 * MIB)
        bench.run("losetup", "--set-capacity", device)
        assert "changed its size from 33.6 MB to 16.8 MB" in (target.trouble() or "")
