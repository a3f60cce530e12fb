"""Boots of the lab. They need its kernel (`make lab`)."""

from __future__ import annotations

import csv
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.program import Ended, inside, spindle, started, wait_until

RAID5 = "mdadm --create /dev/md0 --run --assume-clean --level=5 --chunk=64 --raid-devices=4 /dev/vd[abcd] 2>/dev/null"


def in_lab(machine: Path, script: str, *options: str) -> Ended:
    return spindle("lab", "exec", *options, str(machine), "--", "sh", "-c", script)


def traced(machine: Path, script: str, file: Path) -> list[dict[str, str]]:
    ended = in_lab(machine, script, "--trace", str(file))
    assert ended.status == 0, ended.err
    with file.open() as lines:
        return list(csv.DictReader(lines))


def test_output_errors_and_exit_status_are_the_commands(four: Path) -> None:
    ended = in_lab(four, "echo out; echo err >&2; ls /dev/vd*; exit 7")
    assert ended == (7, "out\n/dev/vda\n/dev/vdb\n/dev/vdc\n/dev/vdd\n", "err\n")


def test_a_request_takes_exactly_what_the_drive_says(four: Path, tmp_path: Path) -> None:
    script = "dd if=/dev/zero of=/dev/vdb bs=64k count=20 conv=fsync; dd if=/dev/vda of=/dev/null bs=4k count=50"
    trace = traced(four, script, tmp_path / "t.csv")
    assert {line["operation"] for line in trace} == {"R", "W", "F"}
    for drive in "0123":
        free = 0
        for line in (line for line in trace if line["drive"] == drive):
            start = max(free, int(line["arrive_ns"]))
            free = start + 100_000 + 5 * 512 * int(line["sectors"])
            assert int(line["finish_ns"]) == free


def test_equal_commands_give_equal_requests_at_equal_nanoseconds(four: Path, tmp_path: Path) -> None:
    script = f"{RAID5}; mkfs.ext4 -q /dev/md0; mount /dev/md0 /mnt; cp /usr/sbin/* /mnt; sleep 6; blkid"
    runs = [(traced(four, script, tmp_path / f"{run}.csv"), in_lab(four, script).out) for run in range(2)]
    assert runs[0] == runs[1]
    assert len(runs[0][0]) > 100


def test_what_was_written_survives_in_an_array_without_a_member(four: Path) -> None:
    script = f"""{RAID5}; mkfs.xfs -q /dev/md0; mount /dev/md0 /mnt
        dd if=/dev/urandom of=/mnt/f bs=1M count=16 2>/dev/null; sum=$(md5sum </mnt/f)
        mdadm -q /dev/md0 -f /dev/vdc; sync; echo 3 >/proc/sys/vm/drop_caches; [ "$sum" = "$(md5sum </mnt/f)" ]"""
    assert in_lab(four, script).status == 0


def test_virtual_time_passes_without_real_time(four: Path) -> None:
    began = time.monotonic()
    ended = in_lab(four, "sleep 3600; cut -d. -f1 /proc/uptime")
    assert ended.out == "3600\n"
    assert time.monotonic() - began < 600


@pytest.mark.parametrize(
    "script", ["while :; do dd if=/dev/vda of=/dev/null bs=64k count=99; done", "while :; do :; done"]
)
def test_a_killed_spindle_leaves_no_process_and_no_file(
    four: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = four.parent / "a folder whose name leaves no room for the address of a socket, which has 107 bytes"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    process = started("lab", "exec", str(four), "--", "sh", "-c", script, cwd=four.parent)
    try:
        wait_until(lambda: bool(inside(folder)))
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    wait_until(lambda: not inside(folder) and not list(folder.iterdir()))


def test_an_interrupted_lab_ends(four: Path) -> None:
    process = started("lab", "exec", str(four), "--", "sh", "-c", "while :; do :; done", cwd=four.parent)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 1
    assert err.startswith("spindle: stopped by SIGINT")
    assert len(err.splitlines()) == 1


def test_a_wrong_machine_is_one_line(tmp_path: Path) -> None:
    assert spindle("lab", "exec", "no-such", "--", "true").complaint.startswith('spindle: no machine named "no-such"')


def test_a_shell_needs_a_terminal() -> None:
    assert "needs a terminal" in spindle("lab", "shell", "one-sata", stdin="").complaint


def test_a_drive_that_dies_leaves_its_array_at_that_time(four: Path) -> None:
    script = (
        f"{RAID5}; sleep 2; dd if=/dev/zero of=/dev/md0 bs=1M count=1 conv=fsync; grep -o '\\[[U_]*\\]' /proc/mdstat"
    )
    assert in_lab(four, script).out == "[UUUU]\n"
    assert in_lab(four, script, "--fault", "vdb at 1s: dies").out == "[U_UU]\n"


def test_a_bad_sector_fails_until_it_is_written(four: Path) -> None:
    read = "dd if=/dev/vda of=/dev/null bs=4k skip=2 count=1 iflag=direct 2>/dev/null; echo $?"
    script = f"{read}; dd if=/dev/zero of=/dev/vda bs=4k seek=2 count=1 oflag=direct 2>/dev/null; {read}"
    assert in_lab(four, script, "--fault", "vda at 0s: read error at 20").out == "1\n0\n"


def test_a_frozen_drive_answers_when_it_thaws(four: Path) -> None:
    script = "sleep 0.1; dd if=/dev/vda of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; cut -d' ' -f1 /proc/uptime"
    assert in_lab(four, script, "--fault", "vda at 0.1s: freezes for 300ms").out == "0.40\n"


@pytest.mark.parametrize(("lie", "kept"), [((), True), (("--fault", "vda at 0s: ignores flushes"), False)])
def test_what_was_flushed_survives_a_power_cut_unless_the_drive_lies(
    four: Path, tmp_path: Path, lie: tuple[str, ...], kept: bool
) -> None:
    script = "dd if=/dev/urandom of=/dev/vda bs=4k count=256 oflag=direct conv=fsync 2>/dev/null; sleep 9"
    disks = ("--disks", str(tmp_path / "disks"))
    cut = in_lab(four, script, *disks, *lie, "--fault", "at 5s: power cut, seed 2")
    assert (cut.status, cut.err) == (0, "spindle: power cut at 5.000000 s of virtual time\n")
    kilobytes = "tr -d '\\0' </dev/vda | wc -c"
    left = int(in_lab(four, kilobytes, *disks).out)
    assert (left > 1_040_000) == kept


def test_the_time_limit_ends_a_command_that_waits_for_ever(four: Path) -> None:
    ended = in_lab(four, "while :; do sleep 1; done", "--time-limit", "5")
    assert ended == (1, "", "spindle: the command still ran at 5 s of virtual time, the limit\n")


def test_a_lab_ends_although_the_kernel_has_requests_under_way(four: Path) -> None:
    four.write_text(four.read_text().replace("raid5", "raid0").replace("count = 4", "count = 3").replace("256", "32"))
    script = """mdadm --create /dev/md0 --run --level=0 --chunk=64 --raid-devices=3 /dev/vd[abc] 2>/dev/null
        mkfs.ext4 -q /dev/md0; mount /dev/md0 /mnt; dd if=/dev/zero of=/mnt/f bs=1M count=8 2>/dev/null; sync"""
    for pause in range(0, 40, 5):
        assert in_lab(four, f"{script}; sleep 0.0{pause:02}; echo done") == (0, "done\n", "")


def test_a_fault_that_is_not_one_shows_the_forms(four: Path) -> None:
    ended = in_lab(four, "true", "--fault", "vda at 1s: burns")
    assert ended.status != 0
    assert "write `vdb at 2s: dies`" in ended.err
