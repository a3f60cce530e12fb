"""Checks before and during a run: on machines made of files, and on real loop devices."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from spindle.conditions import Sampler, idle_check
from spindle.conditions.during import Traffic
from spindle.conditions.jobs import Processes, between, jobs, processes, suspects
from spindle.conditions.processors import clock, heat, throttle_events
from spindle.conditions.selftest import self_tests
from spindle.conditions.temperature import sensors
from spindle.host import syncing
from spindle.host.devices import Device, by_name
from spindle.host.stack import below, device_of
from spindle.inspect.tree import ReadError, Tool
from tests.workbench import Workbench

MIB = 1 << 20
NOBODY = Processes({}, 0)
ROOM = 32
"""Samples that a run may keep here, instead of a thousand."""


def device(name: str, machine: Any) -> Device:
    found = by_name(name, machine)
    assert found is not None
    return found


def process(
    fake_sys: Any, pid: int, name: str, *, read: int = 0, arguments: str = "", state: str = "S", parent: int = 1
) -> None:
    rest = [str(parent), *["0"] * 17, "4711", *["0"] * 30]
    fake_sys.proc(f"{pid}/stat", f"{pid} ({name}) {state} " + " ".join(rest))
    fake_sys.proc(f"{pid}/io", f"rchar: 1\nread_bytes: {read}\nwrite_bytes: 0\ncancelled_write_bytes: 0")
    (fake_sys.machine.proc / f"{pid}/cmdline").write_text(arguments.replace(" ", "\0"))
    (fake_sys.machine.proc / f"{pid}/fd").mkdir(exist_ok=True)


# --- programs --------------------------------------------------------------------------------------------------------


def test_a_program_that_writes_to_the_target_is_named_with_its_number(bench: Workbench) -> None:
    path = bench.loop()
    target = by_name(Path(path).name)
    assert target is not None
    before = processes()
    child = bench.python(
        "import mmap, os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\nbuffer = mmap.mmap(-1, 1 << 20)\n"
        "for _ in range(32): os.preadv(fd, [buffer], 0)\nprint(flush=True)\nsys.stdin.read()",
        path,
    )
    found = between(before, processes(), 1.0, [target, *below(target)])
    job = next(one for one in found if one.pid == child.pid)
    assert job.on_target
    assert job.read_bytes >= 32 * MIB
    finding = jobs([job])
    assert finding.level == "warn"
    assert f"(process {child.pid}, " in finding.text
    assert finding.evidence["pid"] == child.pid
    assert str(child.pid) in suspects(found)


@pytest.mark.parametrize(
    ("name", "arguments", "known"),
    [
        ("updatedb.plocat", "/usr/sbin/updatedb.plocate", True),
        ("apt-get", "apt-get upgrade", True),
        ("mdcheck", "bash /usr/share/mdadm/mdcheck", True),
        ("fstrim", "fstrim -a", True),
        ("btrfs", "btrfs scrub start -B /", True),
        ("btrfs", "btrfs filesystem show", False),
        ("unattended-upgr", "python3 unattended-upgrade-shutdown --wait-for-signal", False),
        ("rsync", "rsync --daemon", False),
        ("postgres", "postgres: checkpointer", False),
    ],
)
def test_jobs_that_disturb_disks_are_known_by_name(fake_sys: Any, name: str, arguments: str, known: bool) -> None:
    process(fake_sys, 812, name, arguments=arguments)
    finding = jobs(between(NOBODY, processes(fake_sys.machine), 1.0, [], fake_sys.machine))
    assert finding.level == ("warn" if known else "ok")
    assert (f"{name} (process 812" in finding.text) is known


def test_a_program_that_works_elsewhere_is_not_reported(fake_sys: Any) -> None:
    process(fake_sys, 5, "copier", read=100 * MIB)
    found = between(NOBODY, processes(fake_sys.machine), 1.0, [], fake_sys.machine)
    assert jobs(found).level == "ok"
    assert "copier (process 5, 104.9 MB/s)" in suspects(found), "but it is a suspect when the target is busy"


def test_the_dead_are_left_out_and_a_number_used_again_is_another_process(fake_sys: Any) -> None:
    process(fake_sys, 5, "gone", read=MIB, state="Z")
    process(fake_sys, 6, "odd) S (name", read=3 * MIB)
    before = processes(fake_sys.machine)
    assert {one.name for one in before.seen.values()} == {"odd) S (name"}
    text = (fake_sys.machine.proc / "6/stat").read_text()
    (fake_sys.machine.proc / "6/stat").write_text(text.replace("4711", "9999"))
    (found,) = between(before, processes(fake_sys.machine), 1.0, [], fake_sys.machine)
    assert found.read_bytes == 3 * MIB, "all of what the new one did"


def test_earlier_traffic_of_a_child_is_not_counted_for_its_parent_when_it_ends(fake_sys: Any) -> None:
    process(fake_sys, 5, "shell", read=MIB)
    process(fake_sys, 6, "maker", read=0, parent=5)
    process(fake_sys, 7, "copier", read=900 * MIB, parent=6)
    before = processes(fake_sys.machine)
    for pid in (6, 7):
        shutil.rmtree(fake_sys.machine.proc / str(pid))
    process(fake_sys, 5, "shell", read=MIB + 900 * MIB + 3 * MIB)  # the copier moved 3 MiB more, and was waited for
    (found,) = between(before, processes(fake_sys.machine), 1.0, [], fake_sys.machine)
    assert (found.pid, found.read_bytes) == (5, 3 * MIB)


def test_a_real_child_that_ends_does_not_make_its_parent_a_suspect(bench: Workbench) -> None:
    path = bench.loop()
    child = (
        "import mmap, os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\nbuffer = mmap.mmap(-1, 1 << 20)\n"
        "for _ in range(32): os.preadv(fd, [buffer], 0)\nprint(flush=True)\nsys.stdin.read()"
    )
    parent = bench.python(
        "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1]], "
        "stdin=subprocess.PIPE, stdout=subprocess.PIPE)\nchild.stdout.readline()\nprint(flush=True)\n"
        "sys.stdin.readline()\nchild.communicate()\nprint('waited', flush=True)\nsys.stdin.read()",
        path,
        child,
    )
    before = processes()
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write("\n")
    parent.stdin.flush()
    assert parent.stdout.readline() == "waited\n"
    after = processes()
    account = after.seen[parent.pid].read_bytes - before.seen[parent.pid].read_bytes
    assert account >= 32 * MIB, "the kernel books the child's reads on whoever waits for it"
    moved = {job.pid: job.read_bytes for job in between(before, after, 1.0, [])}
    assert moved.get(parent.pid, 0) < 32 * MIB


def test_with_traffic_on_the_devices_only_known_jobs_are_named_apart(fake_sys: Any) -> None:
    process(fake_sys, 5, "updatedb", read=MIB)
    process(fake_sys, 6, "copier", read=100 * MIB)
    found = between(NOBODY, processes(fake_sys.machine), 1.0, [], fake_sys.machine)
    assert "copier" not in jobs(found, only_known=True).text
    assert "updatedb" in jobs(found, only_known=True).text


def test_processes_that_cannot_be_read_are_counted(fake_sys: Any) -> None:
    process(fake_sys, 5, "theirs")
    fake_sys.proc("5/io", "")
    assert processes(fake_sys.machine).hidden == 1


# --- clock, heat, temperature ----------------------------------------------------------------------------------------


def governor(fake_sys: Any, cpu: int, name: str, **files: str) -> None:
    folder = fake_sys.machine.sys / f"devices/system/cpu/cpu{cpu}/cpufreq"
    for file, text in {"scaling_governor": name, **files}.items():
        fake_sys.file(folder / file, text)


def test_a_clock_that_follows_the_load_is_reported(fake_sys: Any) -> None:
    assert clock(fake_sys.machine) is None
    governor(fake_sys, 0, "performance")
    found = clock(fake_sys.machine)
    assert found is not None
    assert found.level == "ok"
    governor(fake_sys, 1, "schedutil")
    found = clock(fake_sys.machine)
    assert found is not None
    assert found.level == "warn"
    assert "schedutil on 1 of 2 CPUs" in found.text


@pytest.mark.parametrize(("preference", "level"), [("performance", "ok"), ("balance_power", "warn"), ("power", "warn")])
def test_processors_that_choose_their_clock_are_judged_by_their_preference(
    fake_sys: Any, preference: str, level: str
) -> None:
    governor(fake_sys, 0, "powersave", scaling_driver="intel_pstate", energy_performance_preference=preference)
    found = clock(fake_sys.machine)
    assert found is not None
    assert found.level == level


def test_heat_counts_a_core_once_however_many_threads_it_has(fake_sys: Any) -> None:
    for cpu in (0, 1):
        folder = fake_sys.machine.sys / f"devices/system/cpu/cpu{cpu}"
        for file, text in (
            ("thermal_throttle/core_throttle_count", "5"),
            ("thermal_throttle/package_throttle_count", "7"),
            ("topology/core_id", "3"),
            ("topology/physical_package_id", "0"),
        ):
            fake_sys.file(folder / file, text)
    assert throttle_events(fake_sys.machine) == 12
    assert heat(None, 3) is None
    assert [found.level for found in (heat(3, 3), heat(3, 5)) if found is not None] == ["ok", "warn"]


def test_thermometers_of_drives_are_found_with_their_limit(fake_sys: Any) -> None:
    disk = fake_sys.device("nvme0n1", "259:0", size=8)
    fake_sys.file(disk / "device/hwmon3/temp1_input", "41850")
    fake_sys.file(disk / "device/hwmon3/temp1_max", "81850")
    sata = fake_sys.device("sda", "8:0", size=8)
    fake_sys.file(sata / "device/hwmon/hwmon1/temp1_input", "33000")
    fake_sys.file(sata / "device/hwmon/hwmon1/temp1_max", "65261850")
    fake_sys.file(fake_sys.machine.sys / "class/hwmon/hwmon0/name", "coretemp")
    fake_sys.file(fake_sys.machine.sys / "class/hwmon/hwmon0/temp1_input", "55000")
    names = ("nvme0n1", "sda")
    found = sensors([device(name, fake_sys.machine) for name in names], fake_sys.machine)
    seen = [(sensor.name, sensor.celsius(), sensor.limit_celsius) for sensor in found]
    assert seen == [("nvme0n1", 41.85, 81.85), ("sda", 33.0, None), ("cpu", 55.0, None)]


# --- self-tests ------------------------------------------------------------------------------------------------------


class Smartctl:
    """Answers as smartctl does, or not at all."""

    live = True

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def output(self, tool: Tool) -> str:
        assert tool.command[0] == "smartctl"
        if isinstance(self.answer, str):
            raise ReadError(self.answer)
        return json.dumps(self.answer)


@pytest.mark.parametrize(
    ("answer", "level", "says"),
    [
        ({"ata_smart_data": {"self_test": {"status": {"value": 0xF4}}}}, "warn", "40 % left"),
        ({"ata_smart_data": {"self_test": {"status": {"value": 0}}}}, "ok", ""),
        (
            {
                "nvme_self_test_log": {
                    "current_self_test_operation": {"value": 2},
                    "current_self_test_completion_percent": 30,
                }
            },
            "warn",
            "70 % left",
        ),
        ({"nvme_self_test_log": {"current_self_test_operation": {"value": 0}}}, "ok", ""),
        ({"scsi_self_test_0": {"result": {"value": 15, "string": "Self test in progress ..."}}}, "warn", "100 % left"),
        ({"scsi_self_test_0": {"result": {"value": 0, "string": "Completed"}}}, "ok", ""),
    ],
)
def test_a_running_self_test_is_reported(fake_sys: Any, answer: object, level: str, says: str) -> None:
    fake_sys.device("sda", "8:0", size=8)
    tree: Any = Smartctl(answer)
    (found,), unchecked = self_tests([device("sda", fake_sys.machine)], fake_sys.machine, tree)
    assert found.level == level
    assert says in found.text
    assert not unchecked


@pytest.mark.parametrize("answer", ["smartctl: not installed", {}, {"ata_smart_data": 5}])
def test_a_drive_that_cannot_be_asked_about_self_tests_is_named(fake_sys: Any, answer: object) -> None:
    fake_sys.device("sda", "8:0", size=8)
    tree: Any = Smartctl(answer)
    found, unchecked = self_tests([device("sda", fake_sys.machine)], fake_sys.machine, tree)
    assert found == []
    assert len(unchecked) == 1
    assert unchecked[0].startswith("SMART self-test of sda: ")


def test_devices_other_than_drives_have_no_self_tests(fake_sys: Any) -> None:
    for minor, name in enumerate(("loop0", "vda", "zram0")):
        fake_sys.device(name, f"7:{minor}", size=8)
        assert self_tests([device(name, fake_sys.machine)], fake_sys.machine) == ([], [])


# --- beside a run ----------------------------------------------------------------------------------------------------


def lay_counters(
    fake_sys: Any, *, ticks: int, user: int, read_sectors: int, pages: int = 0, fetched: int | None = None
) -> None:
    fake_sys.proc("stat", f"cpu  {user} 0 0 {ticks - user} 0 0 0 0")
    fake_sys.proc("diskstats", f"8 0 sda {read_sectors // 8} 0 {read_sectors} 0 0 0 0 0 0 0 0")
    fake_sys.proc("vmstat", f"pswpin {pages}\npswpout 0")


def test_each_interval_separates_cpu_io_swap_heat_and_arrays(fake_sys: Any) -> None:
    fake_sys.device("sda", "8:0", size=8)
    array = fake_sys.device("md0", "9:0", size=8)
    fake_sys.link("md0", "sda")
    fake_sys.file(array / "md/sync_action", "idle")
    lay_counters(fake_sys, ticks=1000, user=0, read_sectors=0)
    sampler = Sampler([device("sda", fake_sys.machine)], ["sda"], interval_s=0, machine=fake_sys.machine)
    sampler.begin(Traffic(0, 0))
    lay_counters(fake_sys, ticks=100_000, user=60_000, read_sectors=4 * MIB // 512, pages=50)
    fake_sys.file(array / "md/sync_action", "check")
    sampler.look(Traffic(3 * MIB, 0))
    fake_sys.file(array / "md/sync_action", "idle")
    sampler.look(Traffic(3 * MIB, 0))
    first, second = sampler.samples
    assert first.cpu_others == pytest.approx(60_000 / 99_000, abs=0.02)
    assert first.other_read_bytes_per_s == pytest.approx(MIB / first.seconds)
    assert (first.swapped_pages, second.swapped_pages) == (50, 0)
    assert (first.array_actions, second.array_actions) == ({"md0": "check"}, {})
    assert second.cpu_others is None, "no tick has passed"
    assert second.other_read_bytes_per_s == 0
    counted = first.devices["sda"]
    assert counted["rMB/s"] * MIB / counted["r/s"] == pytest.approx(4096, rel=0.01)
    assert second.devices["sda"]["rMB/s"] == 0


def test_a_long_run_needs_no_more_memory_for_the_activity_of_its_devices(fake_sys: Any) -> None:
    fake_sys.device("sda", "8:0", size=8)
    lay_counters(fake_sys, ticks=1, user=0, read_sectors=0)
    tested = [device("sda", fake_sys.machine)]
    sampler = Sampler(tested, ["sda"], interval_s=0, most=ROOM, machine=fake_sys.machine)
    sampler.begin(Traffic(0, 0))
    for number in range(ROOM + 1):
        lay_counters(fake_sys, ticks=1, user=0, read_sectors=(number + 1) * 8)
        sampler.look(Traffic(0, 0))
    assert len(sampler.samples) <= ROOM // 2 + 2
    for sample in sampler.samples:
        counted = sample.devices["sda"]
        assert counted["rMB/s"] * MIB / counted["r/s"] == pytest.approx(4096, rel=0.01)


def test_writes_through_a_cache_are_not_compared_with_the_devices(fake_sys: Any) -> None:
    fake_sys.device("sda", "8:0", size=8)
    lay_counters(fake_sys, ticks=1, user=0, read_sectors=0)
    sampler = Sampler(
        [device("sda", fake_sys.machine)], ["sda"], writes_directly=False, interval_s=0, machine=fake_sys.machine
    )
    sampler.begin(Traffic(0, 0))
    sampler.look(Traffic(0, 0))
    assert sampler.samples[0].other_write_bytes_per_s is None
    assert sampler.samples[0].other_read_bytes_per_s == 0


def test_a_long_run_needs_bounded_memory_and_loses_no_time(fake_sys: Any) -> None:
    lay_counters(fake_sys, ticks=1, user=0, read_sectors=0)
    sampler = Sampler([], [], interval_s=0, most=ROOM, machine=fake_sys.machine)
    sampler.begin(Traffic(0, 0))
    for number in range(ROOM + 3):
        lay_counters(fake_sys, ticks=1, user=0, read_sectors=0, pages=number)
        sampler.look(Traffic(0, 0))
    assert len(sampler.samples) <= ROOM // 2 + 4
    assert sum(sample.swapped_pages or 0 for sample in sampler.samples) == ROOM + 2
    assert sampler.samples[-1].at_s == pytest.approx(sum(sample.seconds for sample in sampler.samples), rel=1e-6)
    assert [a.at_s for a in sampler.samples] == sorted(a.at_s for a in sampler.samples)


# --- the stack -------------------------------------------------------------------------------------------------------


def test_a_loop_device_over_a_file_is_followed_down_to_the_disk_that_others_use(bench: Workbench) -> None:
    """Traffic on the disk under the backing file shows, though nobody touches the upper device."""
    lower = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", lower)
    backing = bench.mount(lower) / "backing"
    backing.write_bytes(bytes(8 * MIB))
    os.sync()
    upper = by_name(Path(bench.loop(backing)).name)
    assert upper is not None
    devices = [upper, *below(upper)]
    assert Path(lower).name in [one.name for one in devices]
    bench.python(
        "import mmap, os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\nbuffer = mmap.mmap(-1, 65536)\n"
        "print(flush=True)\nwhile True: os.preadv(fd, [buffer], 0)",
        lower,
    )
    found = idle_check(devices, 0.3)
    busy = {finding.text.split()[0]: finding.level for finding in found.findings if finding.check == "other_io"}
    assert busy[Path(lower).name] == "warn"
    assert upper.name in busy


def test_dirty_data_below_a_loop_device_is_written_too(bench: Workbench) -> None:
    lower = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", lower)
    point = bench.mount(lower)
    (point / "backing").write_bytes(bytes(8 * MIB))
    upper = by_name(Path(bench.loop(point / "backing")).name)
    assert upper is not None
    unrelated = bench.loop(size=64 * MIB)
    bench.run("mkfs.ext4", "-q", unrelated)
    other = bench.mount(unrelated)
    fd = os.open(upper.path, os.O_RDONLY)
    try:
        synced = syncing.sync_stack(fd, [upper, *below(upper)])
    finally:
        os.close(fd)
    assert str(point) in synced
    assert str(other) not in synced
    under = device_of(point)
    assert under is not None
    assert under.path == lower
