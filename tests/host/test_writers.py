"""A process that can write to a device is always found: through a node made elsewhere, a mapping, the file behind
a loop device, a thread's own descriptors, an io_uring, a lock; and the device stays as it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spindle.host.devices import HERE, DevNumber, by_name
from spindle.host.errors import Refusal
from spindle.host.guard import StreamAccess, _uses, open_target
from spindle.host.openers import SearchSet, UseKind, openers, tables
from spindle.host.usage import Usage
from tests.workbench import Workbench, after_other_tests

pytestmark = pytest.mark.promise(1)

WRITE = [StreamAccess(write=True, direct=False)]
Holder = Callable[[Any, str, Path], str]
"""Makes a process hold a device (its path, the file behind it); gives a word that the refusal must contain."""

HOLDERS: dict[str, Holder] = {}


def holder(prepare: Holder) -> Holder:
    HOLDERS[prepare.__name__] = prepare
    return prepare


WAIT = "\nprint('held', flush=True)\nsys.stdin.read()"
START = "import ctypes, fcntl, mmap, os, struct, sys, threading, time\n"


def holds(bench: Workbench, code: str, *arguments: object) -> None:
    bench.python(START + code + WAIT, *map(str, arguments))


MAP = "f = os.open(sys.argv[1], os.O_RDWR)\nctypes.CDLL(None).mmap(0, 4096, {protection}, 1, f, 0)\n"
"""Shared. (Python's own mmap keeps a descriptor.)"""


def jail(bench: Workbench, device: str) -> Path:
    """A node of the device with another name in another folder, as chroots and jailers of virtual machines have it."""
    folder: Path = bench.new_path("jail")
    folder.mkdir()
    os.mknod(folder / "drive", 0o600 | stat.S_IFBLK, os.stat(device).st_rdev)
    return folder


@holder
def a_node_made_elsewhere(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "os.open(sys.argv[1], os.O_RDWR)", jail(bench, device) / "drive")
    return "has it open for writing"


@holder
def a_node_made_elsewhere_for_writing_only_and_removed(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "os.open(sys.argv[1], os.O_WRONLY); os.unlink(sys.argv[1])", jail(bench, device) / "drive")
    return "has it open for writing"


@holder
def a_node_in_a_chroot(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "os.chroot(sys.argv[1]); os.chdir('/'); os.open('/drive', os.O_RDWR)", jail(bench, device))
    return "has it open for writing"


@holder
def a_node_on_a_file_system_of_another_mount_namespace(bench: Workbench, device: str, image: Path) -> str:
    folder = jail(bench, device)
    code = (
        "import subprocess\nlibc = ctypes.CDLL(None)\nassert libc.unshare(0x20000) == 0\n"
        "subprocess.run(['mount', '--make-rprivate', '/'], check=True)\n"
        "subprocess.run(['mount', '-t', 'tmpfs', 'none', sys.argv[1]], check=True)\n"
        "os.mknod(sys.argv[1] + '/d', 0o60600, int(sys.argv[2]))\nos.open(sys.argv[1] + '/d', os.O_RDWR)"
    )
    holds(bench, code, folder, os.stat(device).st_rdev)
    return "has it open for writing"


@holder
def a_mapping_whose_descriptor_is_closed(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, MAP.format(protection=3) + "os.close(f)", device)
    return "has it mapped and can write to it"


@holder
def a_mapping_that_is_not_writable_yet_of_a_node_that_is_gone(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, MAP.format(protection=1) + "os.close(f); os.unlink(sys.argv[1])", jail(bench, device) / "drive")
    return "has it mapped and can write to it"


THREAD = (
    "def own():\n    libc = ctypes.CDLL(None)\n    assert libc.unshare(0x400) == 0\n"
    "    os.open(sys.argv[1], os.O_RDWR)\n    print('held', flush=True)\n    time.sleep(600)\n"
    "threading.Thread(target=own, daemon=True).start()\n"
)


@holder
def a_thread_with_descriptors_of_its_own(bench: Workbench, device: str, image: Path) -> str:
    bench.python(START + THREAD + "sys.stdin.read()", device)
    return "has it open for writing"


@holder
def a_thread_that_outlives_the_first_one(bench: Workbench, device: str, image: Path) -> str:
    bench.python(START + THREAD + "ctypes.CDLL(None).syscall(60, 0)", device)
    return "has it open for writing"


@holder
def an_io_uring_that_keeps_what_is_closed(bench: Workbench, device: str, image: Path) -> str:
    code = (
        "libc = ctypes.CDLL(None)\nring = libc.syscall(425, 4, ctypes.create_string_buffer(120))\n"
        "if ring < 0:\n    print('none', flush=True)\nf = os.open(sys.argv[1], os.O_RDWR)\n"
        "libc.syscall(427, ring, 2, struct.pack('i', f), 1)\nos.close(f)"
    )
    if os.uname().machine != "x86_64" or Path("/proc/sys/kernel/io_uring_disabled").read_text().strip() == "2":
        pytest.skip("needs io_uring")
    holds(bench, code, jail(bench, device) / "drive")
    return "has it in an io_uring"


@holder
def the_file_behind_it_open_for_writing(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "os.open(sys.argv[1], os.O_RDWR)", image)
    return f"has the file behind {device} ({image}) open for writing"


@holder
def the_file_behind_it_by_a_hard_link(bench: Workbench, device: str, image: Path) -> str:
    link = bench.new_path("hard")
    link.hardlink_to(image)
    holds(bench, "os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)", link)
    return "open for writing"


@holder
def the_file_behind_it_by_a_bind_mount(bench: Workbench, device: str, image: Path) -> str:
    other = bench.new_path("bound")
    other.touch()
    bench.run("mount", "--bind", image, other)
    bench.undo.callback(bench.run, "umount", "--lazy", other, check=False)
    holds(bench, "os.open(sys.argv[1], os.O_RDWR)", other)
    return "open for writing"


@holder
def the_file_behind_it_after_it_was_removed(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "os.open(sys.argv[1], os.O_RDWR); os.unlink(sys.argv[1])", image)
    return "open for writing"


@holder
def the_file_behind_it_replaced_by_another(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "os.open(sys.argv[1], os.O_RDWR); os.rename(sys.argv[1], sys.argv[1] + '.old')", image)
    image.touch()
    return "open for writing"


@holder
def the_file_behind_it_mapped(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, MAP.format(protection=3) + "os.close(f)", image)
    return "mapped and can write to it"


@holder
def the_file_behind_it_through_an_overlay(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "os.open(sys.argv[1], os.O_RDWR)", overlaid(bench, image.parent, image.name))
    return "open for writing"


@holder
def the_file_behind_it_locked(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH)", image)
    return f"has locked the file behind {device}"


@holder
def the_file_behind_it_locked_for_reading_as_qemu_does(bench: Workbench, device: str, image: Path) -> str:
    code = "f = open(sys.argv[1])\nfcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 100, 1, 0))"
    holds(bench, code, image)
    return f"has locked the file behind {device}"


@holder
def the_file_behind_it_with_a_lock_whose_descriptor_travels(bench: Workbench, device: str, image: Path) -> str:
    code = (
        "import socket\na, b = socket.socketpair()\nf = os.open(sys.argv[1], os.O_RDWR)\nfcntl.flock(f, 2)\n"
        "socket.send_fds(a, [b'x'], [f])\nos.close(f)"
    )
    holds(bench, code, image)
    return f"has locked the file behind {device}"


@holder
def a_lock_on_a_node_made_elsewhere(bench: Workbench, device: str, image: Path) -> str:
    holds(bench, "f = open(sys.argv[1], 'rb'); fcntl.flock(f, 2)", jail(bench, device) / "drive")
    return "has locked it"


def overlaid(bench: Workbench, upper: Path, name: str) -> Path:
    """A file seen through an overlay. `upper` must hold nothing but files that the overlay may show."""
    lower, work, point = (bench.new_path(stem) for stem in ("lower", "work", "overlay"))
    for folder in (lower, work, point):
        folder.mkdir()
    if "overlay" not in Path("/proc/filesystems").read_text():
        pytest.skip("the kernel has no overlay")
    bench.run("mount", "-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", "overlay", point)
    bench.undo.callback(bench.run, "umount", "--lazy", point, check=False)
    return Path(point / name)


def image_in_a_folder(bench: Workbench) -> Path:
    folder: Path = bench.new_path("images")
    folder.mkdir()
    path = folder / "image"
    with path.open("xb") as file:
        file.truncate(8 << 20)
    return path


def refused(device: str, **consent: Any) -> str:
    def refusal() -> str:
        with pytest.raises(Refusal) as found:
            open_target(device, WRITE, erase=device, **consent).close()
        return str(found.value)

    text = after_other_tests(refusal)
    assert text.startswith(device)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", HOLDERS)
def test_a_holder_is_found_and_nothing_is_written(name: str, bench: Workbench, content: Callable[[str], str]) -> None:
    image = image_in_a_folder(bench)
    device = bench.loop(image)
    before = content(device)
    word = HOLDERS[name](bench, device, image)
    said = refused(device)
    assert word in said
    assert said.endswith("nothing is written to it")
    assert content(device) == before


@pytest.mark.parametrize("name", ["the_file_behind_it_open_for_writing", "a_node_made_elsewhere"])
def test_a_holder_of_a_lower_device_is_found_through_the_stack(name: str, bench: Workbench) -> None:
    image = image_in_a_folder(bench)
    lower = bench.loop(image)
    upper = bench.loop(bench.loop(lower))
    HOLDERS[name](bench, lower, image)
    assert lower in refused(upper, erase_stacked=True)


def test_a_holder_of_the_file_behind_the_disk_is_found_for_its_partition(bench: Workbench) -> None:
    image = bench.image()
    device = bench.loop(image)
    first, _ = bench.partitioned(device)
    the_file_behind_it_open_for_writing(bench, device, image)
    assert f"the file behind {device}" in refused(first, erase_shared=True)


def test_a_partition_of_a_disk_that_is_built_of_others_needs_consent_and_claims_them(bench: Workbench) -> None:
    lower = bench.loop()
    first, _ = bench.partitioned(bench.loop(lower))
    assert "`erase_stacked=`" in refused(first)
    target = open_target(first, WRITE, erase=first, erase_stacked=True)
    with target, pytest.raises(OSError, match="busy"):
        os.open(lower, os.O_RDONLY | os.O_EXCL)


def test_another_loop_device_over_the_same_file_is_found_through_an_overlay(bench: Workbench) -> None:
    image = image_in_a_folder(bench)
    device, second = bench.loop(image), bench.loop(overlaid(bench, image.parent, image.name))
    assert f"as has {second}" in refused(device)
    assert f"as has {device}" in refused(second)


def test_a_loop_device_over_a_file_of_an_overlay_finds_who_writes_the_file_underneath(bench: Workbench) -> None:
    image = image_in_a_folder(bench)
    device = bench.loop(overlaid(bench, image.parent, image.name))
    holds(bench, "os.open(sys.argv[1], os.O_RDWR)", image)
    assert "open for writing" in refused(device)


READERS = {
    "a_reader": "os.open(sys.argv[1], os.O_RDONLY)",
    "a_reader_of_the_file_behind": "os.open(sys.argv[2], os.O_RDONLY)",
    "a_copy_on_write_mapping": "f = os.open(sys.argv[2], os.O_RDONLY); m = mmap.mmap(f, 4096, mmap.MAP_PRIVATE)",
    "a_mapping_for_reading": "f = os.open(sys.argv[1], os.O_RDONLY); m = mmap.mmap(f, 4096, prot=mmap.PROT_READ)",
    "a_writer_of_another_file_beside": "os.open(sys.argv[2] + '.other', os.O_RDWR | os.O_CREAT)",
}


@pytest.mark.parametrize("name", READERS)
def test_a_process_that_cannot_write_is_not_a_reason_to_refuse(name: str, bench: Workbench) -> None:
    image = image_in_a_folder(bench)
    device = bench.loop(image)
    overlaid(bench, image.parent, image.name)
    holds(bench, READERS[name], device, image)
    with open_target(device, WRITE, erase=device):
        pass


PASSERS_BY = {
    "a_lock": "f = open(sys.argv[2]); fcntl.flock(f, 2)",
    "a_writer": "f = open(sys.argv[1], 'r+b')",
}


@pytest.mark.parametrize("name", PASSERS_BY)
def test_who_holds_a_target_for_a_moment_is_waited_for(name: str, bench: Workbench) -> None:
    image = image_in_a_folder(bench)
    device = bench.loop(image)
    code = PASSERS_BY[name] + "\nprint('held', flush=True)\ntime.sleep(0.3)\nf.close()"
    bench.python(START + code + WAIT, device, str(image))
    with open_target(device, WRITE, erase=device):
        pass


def opened_by_qemu(fake_sys: Any, node: Path, kind: int, number: tuple[int, int]) -> None:
    """A process of the laid-out machine has a device of that number open for writing."""
    try:
        os.mknod(node, 0o600 | kind, os.makedev(*number))
    except PermissionError:
        pytest.skip("needs the right to make device nodes")
    for folder in ("fd", "fdinfo"):
        (fake_sys.machine.proc / "77" / folder).mkdir(parents=True)
    (fake_sys.machine.proc / "77/fd/3").symlink_to(node)
    fake_sys.proc("77/fdinfo/3", "pos:\t0\nflags:\t0100002")
    fake_sys.proc("77/comm", "qemu")


def uses_of(name: str, fake_sys: Any) -> list[str]:
    device = by_name(name, fake_sys.machine)
    assert device is not None
    wanted = Usage.now(fake_sys.machine).written_through(device)
    return [one.use for one in openers(wanted, fake_sys.machine)]


def test_a_writer_to_a_member_of_an_array_is_found(fake_sys: Any, tmp_path: Path) -> None:
    fake_sys.device("sda", "240:0", size=8)
    fake_sys.device("sda1", "240:1", size=8, disk="sda")
    fake_sys.device("dm-0", "241:0", size=8, dm="data")
    fake_sys.link("dm-0", "sda1")
    opened_by_qemu(fake_sys, tmp_path / "anything", stat.S_IFBLK, (240, 0))
    assert uses_of("dm-0", fake_sys) == ["process 77 (qemu) has /dev/sda open for writing"]


def test_a_writer_by_another_path_to_the_same_drive_is_found(fake_sys: Any, tmp_path: Path) -> None:
    for name, number in (("sda", "240:0"), ("sdb", "240:16")):
        fake_sys.file(fake_sys.device(name, number, size=8) / "device/wwid", "naa.5000")
    opened_by_qemu(fake_sys, tmp_path / "anything", stat.S_IFBLK, (240, 16))
    assert uses_of("sda", fake_sys) == ["process 77 (qemu) has /dev/sdb open for writing"]


def test_a_file_that_is_mounted_without_a_loop_device_is_in_use(bench: Workbench, fake_sys: Any) -> None:
    image = bench.image()
    device = bench.loop(image)
    number = f"{os.major(os.stat(device).st_rdev)}:{os.minor(os.stat(device).st_rdev)}"
    fake_sys.file(fake_sys.device("loop9", number, size=8) / "loop/backing_file", str(image))
    fake_sys.proc("self/mountinfo", f"9 1 0:77 / /image ro - erofs {image} ro")
    found = by_name("loop9", fake_sys.machine)
    assert found is not None
    usage = Usage.now(fake_sys.machine)
    assert list(_uses(usage, found)) == [f"has {image} behind it, which is mounted on /image"]
    status = image.stat()
    assert "is mounted on /image" in list(usage.of_file((DevNumber.of(status.st_dev), status.st_ino)))


@pytest.mark.parametrize(
    ("disk", "below", "node"),
    [("sda", "device/scsi_generic/sg3", "sg3"), ("sda", "device/bsg/0:0:0:0", "0:0:0:0"),
     ("nvme0n1", "device/ng0n1", "ng0n1"), ("nvme1n2", "../ng1n2", "ng1n2")],
)  # fmt: skip
def test_a_process_that_sends_commands_past_the_block_layer_is_found(
    fake_sys: Any, tmp_path: Path, disk: str, below: str, node: str
) -> None:
    fake_sys.file(fake_sys.device(disk, "240:0", size=8) / below / "dev", "242:3")
    opened_by_qemu(fake_sys, tmp_path / "anything", stat.S_IFCHR, (242, 3))
    assert uses_of(disk, fake_sys) == [
        f"process 77 (qemu) has it ({node}, which takes SCSI or NVMe commands) open for writing"
    ]


def test_a_device_that_the_kernel_serves_to_others_is_in_use(bench: Workbench, fake_sys: Any) -> None:
    image = bench.image()
    device = bench.loop(image)
    number = f"{os.major(os.stat(device).st_rdev)}:{os.minor(os.stat(device).st_rdev)}"
    loop = fake_sys.device("loop9", number, size=8)
    fake_sys.file(loop / "loop/backing_file", str(image))
    served = fake_sys.machine.sys / "kernel/config/nvmet/subsystems/nqn.test/namespaces/1"
    fake_sys.file(served / "device_path", device)
    fake_sys.file(served / "enable", "0")
    found = by_name("loop9", fake_sys.machine)
    assert found is not None
    assert list(_uses(Usage.now(fake_sys.machine), found)) == []
    fake_sys.file(served / "enable", "1")
    assert list(_uses(Usage.now(fake_sys.machine), found)) == ["is served to others by an NVMe-oF target, nqn.test"]
    fake_sys.file(served / "device_path", str(image))
    assert "which is served to others by an NVMe-oF target" in next(_uses(Usage.now(fake_sys.machine), found))


def test_descriptors_of_threads_that_share_a_table_are_read_once(bench: Workbench) -> None:
    code = "for _ in range(8):\n    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    process = bench.python(START + code + "f = open(sys.argv[1])" + WAIT, __file__)
    assert list(tables(Path(f"/proc/{process.pid}"), HERE)) == [f"/proc/{process.pid}"]


def test_a_process_that_only_reads_is_named_as_the_holder_of_a_claim(bench: Workbench) -> None:
    device = bench.loop()
    holds(bench, "os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)", jail(bench, device) / "drive")
    assert "held exclusively by another program, maybe process" in refused(device)
    wanted = SearchSet({by_name(Path(device).name).dev: "it"})  # type: ignore[union-attr]
    assert [one.how for one in openers(wanted, HERE) if one.command != "losetup"] == [UseKind.READS]
