"""Counters, conditions, settings, caches, environment: parsed from the kernel's formats."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spindle.base.units import si_size
from spindle.base.words import listed
from spindle.conditions import array_activity, cpu_times, idle_check, throttle_events
from spindle.conditions.caches import drop_file_cache, known_caches, sync_file_system
from spindle.host import kernel
from spindle.host.devices import by_name
from spindle.host.diskstats import Snapshot, delta, parse, snapshot
from spindle.host.environment import environment
from spindle.host.groups import memory_limit
from spindle.host.guard import StreamAccess, describe_for_confirmation, open_target
from spindle.host.settings import chosen, settings_of
from spindle.host.signals import ENDING, Stopped, held_back, unwinding
from spindle.host.signatures import Signature
from spindle.host.stack import device_of, stack_of
from spindle.result.record import changed
from tests.documents import present
from tests.workbench import Workbench

MIB = 1 << 20

BEFORE = "   8  0 sda 1000 100 80000 5000 2000 50 160000 9000 0 7000 14000 10 1 2048 30 5 60"
AFTER = "   8  0 sda 1400 140 112000 9000 2200 70 176000 9400 3 8500 19000 20 1 4096 80 9 100"


def test_iostats_columns_are_those_of_iostat() -> None:
    change = delta(Snapshot(0, parse(BEFORE)), Snapshot(2_000_000_000, parse(AFTER)))["sda"]
    assert (change.reads, change.read_bytes, change.write_bytes) == (400, 32000 * 512, 16000 * 512)
    assert change.iostat() == pytest.approx(
        {
            "r/s": 200, "rMB/s": 7.8125, "rrqm/s": 20, "%rrqm": 100 * 40 / 440, "r_await": 10, "rareq-sz": 40,
            "w/s": 100, "wMB/s": 3.90625, "wrqm/s": 10, "%wrqm": 100 * 20 / 220, "w_await": 2, "wareq-sz": 40,
            "d/s": 5, "dMB/s": 0.5, "drqm/s": 0, "%drqm": 0, "d_await": 5, "dareq-sz": 102.4,
            "f/s": 2, "f_await": 10, "aqu-sz": 2.5, "%util": 75,
        }
    )  # fmt: skip
    assert change.in_flight == 3


def test_times_that_wrap_and_replaced_devices_are_detected() -> None:
    wrapped = "8 0 sda 1400 140 112000 3000 2200 70 176000 9400 0 8500 19000"
    near_wrap = "8 0 sda 1000 100 80000 4294965296 2000 50 160000 9000 0 7000 14000"
    change = delta(Snapshot(0, parse(near_wrap)), Snapshot(1, parse(wrapped)))["sda"]
    assert change.read_ms == 5000
    assert change.discards == 0
    assert delta(Snapshot(0, parse(AFTER)), Snapshot(1, parse(BEFORE))) == {}
    assert delta(Snapshot(0, parse(AFTER)), Snapshot(1, {})) == {}


def test_counters_of_a_real_device_move_by_what_is_read(bench: Workbench) -> None:
    path = bench.loop()
    device = by_name(Path(path).name)
    assert device is not None
    before = snapshot([device])
    with open_target(path, [StreamAccess(direct=False)]) as target:
        target.drop_cache()
        for place in range(0, 32 * MIB, MIB):
            assert len(os.pread(target.files[0].fd, MIB, place)) == MIB
    change = delta(before, snapshot([device]))[device.name]
    assert change.read_bytes == 32 * MIB
    assert change.write_bytes == 0
    assert json.loads(json.dumps(change.to_dict()))["iostat"]["r/s"] > 0


def test_dropping_the_cache_of_a_file_makes_the_next_reading_go_to_the_device(bench: Workbench) -> None:
    device_path = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", device_path)
    file = bench.mount(device_path) / "file"
    file.write_bytes(os.urandom(8 * MIB))
    device = device_of(file)
    assert device is not None
    assert device.path == device_path
    fd = os.open(file, os.O_RDONLY)
    try:
        sync_file_system(fd)
        read = []
        for drop in (False, True):
            if drop:
                drop_file_cache(fd)
            before = snapshot([device])
            assert len(os.pread(fd, 8 * MIB, 0)) == 8 * MIB
            read.append(delta(before, snapshot([device]))[device.name].read_bytes)
    finally:
        os.close(fd)
    assert read[0] == 0
    assert read[1] >= 8 * MIB


# --- conditions ------------------------------------------------------------------------------------------------------


def test_a_quiet_device_is_reported_idle_and_a_busy_one_is_not(bench: Workbench) -> None:
    quiet = bench.loop()
    device = by_name(Path(quiet).name)
    assert device is not None
    found = idle_check([device], 0.2)
    assert [finding.level for finding in found.findings if finding.check == "other_io"] == ["ok"]
    bench.python(
        "import mmap, os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\nbuffer = mmap.mmap(-1, 65536)\n"
        "print(flush=True)\nwhile True: os.preadv(fd, [buffer], 0)",
        quiet,
    )
    found = idle_check([device], 0.3)
    io = next(finding for finding in found.findings if finding.check == "other_io")
    assert io.level == "warn"
    assert io.evidence["bytes_per_s"] > 1e6
    assert "in use by others" in io.text
    assert found.level == "warn"
    assert json.loads(json.dumps(found.to_dict()))["devices"][device.name]["reads"] > 0


@pytest.mark.parametrize(
    ("action", "degraded", "level"),
    [("idle", "0", "ok"), ("idle", "1", "warn"), ("recover", "1", "invalid"), ("check", "0", "invalid")],
)
def test_an_array_that_resyncs_or_lacks_a_member_is_reported(
    fake_sys: Any, action: str, degraded: str, level: str
) -> None:
    place = fake_sys.device("md0", "9:0", size=8)
    fake_sys.device("sda", "8:0", size=8)
    fake_sys.link("md0", "sda")
    for name, text in (("sync_action", action), ("degraded", degraded), ("sync_completed", "250 / 1000")):
        fake_sys.file(place / "md" / name, text)
    for name in ("md0", "sda"):
        device = by_name(name, fake_sys.machine)
        assert device is not None
        (finding,) = array_activity([device], fake_sys.machine)
        assert finding.level == level
        if action != "idle":
            assert finding.evidence["done"] == 0.25


def test_cpu_swap_and_dirty_pages_are_judged(fake_sys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_sys.proc("stat", "cpu  100 0 100 800 0 0 0 0 0 0")
    fake_sys.proc("vmstat", "pswpin 5\npswpout 5")
    fake_sys.proc("meminfo", "MemTotal: 1000 kB\nSwapTotal: 4000 kB\nSwapFree: 1000 kB\nDirty: 200000 kB")
    fake_sys.proc("diskstats", BEFORE)

    def meanwhile(_: float) -> None:
        fake_sys.proc("stat", "cpu  150 0 150 830 60 0 0 10 0 0")
        fake_sys.proc("vmstat", "pswpin 5000\npswpout 5")

    monkeypatch.setattr("spindle.conditions.before.time.sleep", meanwhile)
    found = {finding.check: finding for finding in idle_check([], 1.0, fake_sys.machine).findings}
    assert found["cpu"].level == "warn"
    assert found["cpu"].evidence == pytest.approx({"busy": 0.5, "iowait": 0.3, "steal": 0.05})
    assert found["swap"].level == "warn"
    assert found["swap"].evidence["used_bytes"] == 3000 * 1024
    assert found["dirty_pages"].level == "warn"


def test_cpu_times_and_throttling_are_summed(fake_sys: Any) -> None:
    fake_sys.proc("stat", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 0 0 0 0 0 0 0 0 0 0")
    assert present(cpu_times(fake_sys.machine)).total == 36
    assert throttle_events(fake_sys.machine) is None
    for cpu in (0, 1):
        fake_sys.file(fake_sys.machine.sys / f"devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count", "3")
    assert throttle_events(fake_sys.machine) == 6


# --- settings, caches, environment -----------------------------------------------------------------------------------


def test_settings_are_named_after_their_device_and_differences_are_found(fake_sys: Any) -> None:
    disk = fake_sys.device("sda", "8:0", size=8)
    fake_sys.device("sda1", "8:1", size=8, disk="sda")
    fake_sys.file(disk / "queue/scheduler", "none [mq-deadline] kyber")
    fake_sys.file(disk / "queue/iosched/read_expire", "500")
    fake_sys.file(disk / "device/queue_depth", "32")
    fake_sys.proc("sys/vm/dirty_ratio", "20")
    partition = by_name("sda1", fake_sys.machine)
    assert partition is not None
    before = settings_of([partition], fake_sys.machine)
    assert before == {
        "sda.scheduler": "mq-deadline",
        "sda.iosched.read_expire": "500",
        "sda.queue_depth": "32",
        "vm.dirty_ratio": "20",
    }
    fake_sys.file(disk / "queue/scheduler", "[none] mq-deadline kyber")
    shutil.rmtree(disk / "queue/iosched")
    changes = changed(before, settings_of([partition], fake_sys.machine))
    assert [(change.name, change.before, change.after) for change in changes] == [
        ("sda.iosched.read_expire", "500", None),
        ("sda.scheduler", "mq-deadline", "none"),
    ]


@pytest.mark.parametrize(
    ("text", "choice"), [("[none]", "none"), ("a [b] c", "b"), ("write back", "write back"), ("x[1] y", "x[1] y")]
)
def test_the_choice_in_brackets_is_the_one_in_force(text: str, choice: str) -> None:
    assert chosen(text) == choice


def test_a_memory_limit_of_the_control_group_bounds_the_cache(fake_sys: Any) -> None:
    fake_sys.proc("meminfo", "MemTotal: 8000000 kB\nCached: 100 kB\nBuffers: 20 kB")
    assert memory_limit(fake_sys.machine) is None
    groups = fake_sys.machine.sys / "fs/cgroup"
    fake_sys.proc("self/cgroup", "0::/user/run")
    fake_sys.file(groups / "user/run/memory.max", "max")
    fake_sys.file(groups / "user/memory.max", str(1 << 30))
    caches = known_caches([], fake_sys.machine)
    assert caches.ram_bytes == 1 << 30
    assert caches.page_cache_bytes == 120 * 1024
    assert caches.data_set_bytes == 2 << 30
    fake_sys.proc("self/cgroup", "4:memory,hugetlb:/job\n3:cpu:/other")
    fake_sys.file(groups / "memory/job/memory.limit_in_bytes", str(1 << 29))
    assert known_caches([], fake_sys.machine).ram_bytes == 1 << 29


def test_the_environment_of_this_machine_is_recorded(tmp_path: Path) -> None:
    found: Any = json.loads(json.dumps(environment(tmp_path)))
    assert found["kernel"]["release"] == os.uname().release
    assert found["cpu"]["online"] == os.cpu_count()
    assert found["memory"]["total_bytes"] > 0
    assert found["stack"][0]["kind"] == "file system"


def test_the_command_line_of_the_kernel_is_not_recorded(fake_sys: Any) -> None:
    fake_sys.proc("cmdline", "root=UUID=1234 password=secret mem=2G quiet isolcpus=2,3 nosmt memory_secret=1")
    found: Any = environment(None, fake_sys.machine)
    assert found["kernel"]["parameters"] == ["mem=2G", "isolcpus=2,3", "nosmt"]


def test_the_stack_is_listed_from_the_file_system_down(bench: Workbench) -> None:
    device = bench.loop(size=64 * MIB)
    first, _ = bench.partitioned(device)
    bench.run("mkfs.ext4", "-q", first)
    layers = stack_of(str(bench.mount(first)))
    assert [layer.kind for layer in layers[:4]] == ["file system", "partition", "loop", "file"]
    assert layers[0].details["source"] == first
    assert layers[1].details["start_bytes"] == 2048 * 512
    assert [layer.depth for layer in layers[:4]] == [0, 1, 2, 3]


def test_the_stack_of_a_path_that_is_gone_is_empty(tmp_path: Path) -> None:
    assert stack_of(tmp_path / "gone") == []


# --- the kernel's answers --------------------------------------------------------------------------------------------


def test_alignment_of_direct_io_follows_the_device(bench: Workbench) -> None:
    for block in (512, 4096):
        device = bench.loop(None, "--sector-size", str(block))
        with open_target(device, [StreamAccess()]) as target:
            assert target.files[0].block_bytes == block
            assert target.files[0].memory_align in (1, 2, 4, 64, 512, 4096)
        with open_target(device, [StreamAccess(direct=False)]) as target:
            assert target.files[0].block_bytes == block


def test_without_the_kernels_report_alignment_falls_back_to_the_block(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "direct_alignment", lambda _: None)
    with open_target(bench.loop(), [StreamAccess()]) as target:
        assert (target.files[0].block_bytes, target.files[0].memory_align) == (512, 4096)


def test_a_birth_time_is_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as opened:
        birth = kernel.birth_time_ns(opened.fileno())
        if birth is None:
            pytest.skip("the file system keeps no birth time")
        assert abs(birth - file.stat().st_ctime_ns) < 1_000_000_000
        os.utime(file, (0, 0))
        assert kernel.birth_time_ns(opened.fileno()) == birth


def test_a_loop_device_reports_its_file(bench: Workbench) -> None:
    image = bench.image()
    with open(bench.loop(image, "--offset", "4096"), "rb") as device:
        status = kernel.loop_status(device.fileno())
    assert status is not None
    assert status.file_inode == image.stat().st_ino
    assert status.block_device is None
    assert status.offset == 4096
    with image.open("rb") as file:
        assert kernel.loop_status(file.fileno()) is None


# --- words and signals -----------------------------------------------------------------------------------------------


def test_the_confirmation_names_size_model_serial_and_content(fake_sys: Any) -> None:
    disk = fake_sys.device("sdb", "8:16", size=12_000_138_625_024 // 512)
    fake_sys.file(disk / "device/vendor", "SEAGATE")
    fake_sys.file(disk / "device/model", "ST12000NM0027")
    fake_sys.file(disk / "serial", "ZJV01234")
    fake_sys.device("sdb2", "8:18", size=8, disk="sdb")
    found = by_name("sdb", fake_sys.machine)
    part = by_name("sdb2", fake_sys.machine)
    assert found is not None
    assert part is not None
    assert describe_for_confirmation(found, [Signature("ext4", "backup")], False, fake_sys.machine) == (
        "All data on /dev/sdb will be lost (12.0 TB, SEAGATE ST12000NM0027, serial ZJV01234, "
        "carries ext4 (label backup))."
    )
    assert "partition 2 of /dev/sdb" in describe_for_confirmation(part, machine=fake_sys.machine)


def test_sizes_are_decimal_as_drives_are_sold() -> None:
    assert [si_size(count) for count in (0, 999, 1000, 999_949, 999_950, 12_000_138_625_024)] == [
        "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "12.0 TB",
    ]  # fmt: skip
    assert [listed(parts) for parts in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Restore default handlers, as some signals may be ignored where the tests run."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("usual_signals")
def test_signals_unwind_and_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in ENDING]
    for number in ENDING:
        with pytest.raises(Stopped) as stopped, unwinding():
            os.kill(os.getpid(), number)
        assert stopped.value.signum == number
    assert [signal.getsignal(number) for number in ENDING] == before


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("threads", [0, 2])
def test_a_signal_waits_while_it_is_held_back(threads: int) -> None:
    """With any number of other threads: the kernel delivers the signal to one that does not block it."""
    reached, over = False, threading.Event()
    others = [threading.Thread(target=over.wait) for _ in range(threads)]
    for other in others:
        other.start()

    def work() -> None:
        nonlocal reached
        with unwinding(), held_back():
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(100):
                time.sleep(0.001)
            reached = True

    try:
        with pytest.raises(Stopped):
            work()
    finally:
        over.set()
    assert reached


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with unwinding():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
