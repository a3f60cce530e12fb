"""Files of /proc and /sys may contain anything: unreadable values are unknown, and never an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spindle.conditions import array_activity, cpu_times, idle_check, throttle_events
from spindle.conditions.caches import known_caches
from spindle.conditions.jobs import processes
from spindle.conditions.temperature import sensors
from spindle.host import queue_files, settings
from spindle.host.devices import DevNumber, by_name, int_of
from spindle.host.diskstats import parse, snapshot
from spindle.host.groups import memory_limit
from spindle.host.memory import memory, swapped_pages
from spindle.host.mounts import swaps
from spindle.host.number import signed_number, whole_number
from spindle.host.stack import below
from spindle.inspect.model import Queue
from spindle.knobs.catalogue import KNOBS

LONG = "9" * (10 << 20)
GARBAGE = ["", "\n\n", "abc", "-", "1.5", "1e9", "0x10", "١٢", "²", "\0\0", "1 2", "9" * 21, LONG, "\ufffd", ": : :"]


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: repr(text[:8]))
def test_text_that_is_not_a_number_is_unknown(text: str, tmp_path: Path) -> None:
    assert whole_number(text) is None
    assert signed_number(text) is None
    file = tmp_path / "file"
    assert int_of(file) is None
    file.write_text(text)
    assert int_of(file) is None
    assert DevNumber.read(file) is None


def test_numbers_are_read_up_to_64_bits() -> None:
    assert [whole_number(text) for text in ("0", "007", str(2**64 - 1), str(2**64), "-1")] == [
        0,
        7,
        2**64 - 1,
        None,
        None,
    ]
    assert [signed_number(text) for text in ("-1", "--1", "5")] == [-1, None, 5]


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: repr(text[:8]))
def test_every_check_survives_garbage_in_every_file(text: str, fake_sys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spindle.conditions.before.time.sleep", lambda _: None)
    machine = fake_sys.machine
    disk = fake_sys.device("sda", "8:0", size=8)
    part = fake_sys.device("sda1", "8:1", size=8, disk="sda")
    place_of_array = fake_sys.device("md0", "9:0", size=8)
    fake_sys.link("md0", "sda1")
    cpu = machine.sys / "devices/system/cpu/cpu0"
    for place in (
        part / "start",
        place_of_array / "md/sync_action",
        place_of_array / "md/degraded",
        place_of_array / "md/sync_completed",
        disk / "queue/rotational",
        disk / "device/hwmon/hwmon0/temp1_input",
        disk / "device/hwmon/hwmon0/temp1_max",
        cpu / "thermal_throttle/core_throttle_count",
        cpu / "cpufreq/scaling_governor",
        machine.proc / "7/stat",
        machine.proc / "7/io",
        *(
            machine.proc / name
            for name in ("stat", "diskstats", "vmstat", "meminfo", "swaps", "self/cgroup", "self/io")
        ),
        machine.proc / "spl/kstat/zfs/arcstats",
    ):
        fake_sys.file(place, text)
    device, array = by_name("sda1", machine), by_name("md0", machine)
    assert device is not None
    assert array is not None
    devices = [device, *below(device, machine)]
    found = idle_check(devices, 0, machine)
    assert "CPU time: /proc/stat cannot be understood" in found.unchecked
    assert any(reason.startswith("I/O on sda1") for reason in found.unchecked)
    assert not [finding for finding in found.findings if finding.check in ("other_io", "cpu")]
    assert cpu_times(machine) is throttle_events(machine) is swapped_pages(machine) is None
    assert snapshot(devices, machine).counters == {}
    assert memory_limit(machine) is None
    assert known_caches(devices, machine).ram_bytes == 0
    assert memory(machine) == {}
    assert swaps(machine) == []
    assert processes(machine).seen == {}
    assert all(sensor.celsius() is None for sensor in sensors(devices, machine))
    assert [finding.level for finding in array_activity(devices, machine)] == ["ok"] * len(
        array_activity(devices, machine)
    )


def test_a_line_of_counters_that_cannot_be_read_leaves_the_others() -> None:
    good = "8 0 sda 1 2 3 4 5 6 7 8 9 10 11"
    text = "\n".join(["8 1 sdb 1 2 x 4 5 6 7 8 9 10 11", "8 2 sdc 1 2", f"8 3 sdd {LONG} 2 3 4 5 6 7 8 9 10 11", good])
    assert list(parse(text)) == ["sda"]


def test_the_names_of_queue_files_are_in_one_list() -> None:
    """Recorded, shown and changeable files are one set: a file added to only one list would be missed."""
    known = set(queue_files.NAMES)
    assert len(known) == len(queue_files.NAMES)
    assert set(settings.QUEUE) == known
    turned = {path for knob in KNOBS for path in knob.where if path.startswith("queue/") and "iosched" not in path}
    assert {path.removeprefix("queue/") for path in turned} <= known
    derived = {"unknown", "schedulers", "iosched", "hardware_queues", "tags"}
    assert set(Queue.__struct_fields__) - derived <= known
    assert known - set(Queue.__struct_fields__) == {"iostats_passthrough", "async_depth"}, "inspect does not show these"


def test_a_queue_file_that_is_not_in_the_list_cannot_become_a_knob() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        queue_files.path_of("nr_request")
