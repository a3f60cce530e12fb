"""Boots of the lab's other kernel. They need it (`make lab KERNEL=6.12`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spindle.lab import kernel
from spindle.lab.errors import LabMissing
from tests.program import spindle

SERIES = "6.12"
LEVELS = {
    "0": "--level=0",
    "1": "--level=1 --assume-clean",
    "4": "--level=4 --assume-clean",
    "5": "--level=5 --assume-clean",
    "6": "--level=6 --assume-clean",
    **{layout: f"--level=10 --layout={layout} --assume-clean" for layout in ("n2", "f2", "o2")},
}


@pytest.fixture
def machine(four: Path) -> Path:
    """Four drives. Skips where the kernel is not built."""
    try:
        kernel.current(version=SERIES)
    except LabMissing as error:
        pytest.skip(str(error))
    return four


def made(level: str, mkfs: str) -> str:
    """An array of this level with a file system, a file in it, and the file's checksum read back from the drives."""
    options = LEVELS[level] + ("" if level == "1" else " --chunk=64")
    return f"""
        mdadm --create /dev/md0 --run {options} --raid-devices=4 /dev/vd[abcd] 2>/dev/null
        {mkfs} /dev/md0 2>/dev/null && mount /dev/md0 /mnt
        dd if=/dev/urandom of=/mnt/f bs=64k count=100 conv=fsync 2>/dev/null
        before=$(md5sum </mnt/f); umount /mnt; echo 3 >/proc/sys/vm/drop_caches; mount /dev/md0 /mnt
        [ "$before" = "$(md5sum </mnt/f)" ] && echo level {level} "$before"
        umount /mnt; mdadm -q --stop /dev/md0; mdadm -q --zero-superblock /dev/vd[abcd]"""


@pytest.mark.parametrize("mkfs", ["mkfs.xfs -q -f", "mkfs.ext4 -q -F"])
def test_each_level_keeps_what_is_written_and_two_runs_are_equal(machine: Path, tmp_path: Path, mkfs: str) -> None:
    script = "uname -r; dmesg -n 1" + "".join(made(level, mkfs) for level in LEVELS)
    runs = []
    for run in ("first", "second"):
        trace = tmp_path / run
        command = ("lab", "exec", str(machine), "--kernel", SERIES, "--trace", str(trace), "--", "sh", "-c", script)
        ended = spindle(*command)
        assert (ended.status, ended.err) == (0, "")
        runs.append((ended.out, trace.read_text()))
    release, *levels = runs[0][0].splitlines()
    assert release == kernel.current(version=SERIES).version
    assert [line.split()[1] for line in levels] == list(LEVELS)
    assert runs[0] == runs[1]


def test_a_record_names_the_kernel_and_repeats_on_it(machine: Path, tmp_path: Path) -> None:
    def run(name: str, version: str) -> dict[str, object]:
        out = tmp_path / name
        options = ("--seconds", "1", "--ramp", "0s", "--size", "4KiB", "--output", str(out))
        assert spindle("run", "randomio", str(machine), f"--kernel={version}", *options).status == 0
        found: dict[str, object] = json.loads(out.read_text())
        return found

    newer, older, again = run("a", SERIES), run("b", "6.1"), run("c", SERIES)
    assert newer == again
    assert newer["id"] != older["id"]
    assert newer["target"]["detail"]["kernel"] == kernel.current(version=SERIES).version  # type: ignore[index]
    assert f"--kernel {SERIES}" in spindle("report", str(tmp_path / "a")).out
