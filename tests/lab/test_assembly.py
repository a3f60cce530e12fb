"""A machine file as commands of the lab; nothing is booted here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spindle import _core
from spindle.lab.assembly import Setup, in_order, setup_of
from spindle.lab.load import Task, script
from tests.program import spindle

DRIVES = "[[drive]]\nmodel = 'HDS725050KLA360'\ncount = "


def setup(text: str) -> Setup:
    return setup_of(_core.Machine.parse(text, "machine.toml"))


def commands(text: str) -> list[str]:
    """All but those for the queues."""
    return [line for line in setup(text).script() if "/queue/" not in line]


def test_an_array_is_made_with_its_geometry() -> None:
    assert commands(f"[array]\nlevel = 'raid5'\nchunk = '64KiB'\nstripe_cache_size = 1024\n{DRIVES}3") == [
        "mdadm --create /dev/md0 --level=5 --layout=left-symmetric --chunk=64K --raid-devices=3 /dev/vda /dev/vdb "
        "/dev/vdc --metadata=1.2 --assume-clean --run --bitmap=none",
        "echo 1024 >/sys/block/md0/md/stripe_cache_size",
    ]


def test_a_missing_member_and_a_rebuild() -> None:
    made = commands(f"[array]\nlevel = 'raid6'\nmissing = [0]\nrebuild = 2\nsync_speed_max = '10 MiB/s'\n{DRIVES}5")
    assert "missing /dev/vdb missing /dev/vdd /dev/vde" in made[0]
    assert made[2:] == [
        "echo 10240 >/sys/block/md0/md/sync_speed_max",
        "echo 1000 >/sys/block/md0/md/sync_speed_min",
        "mdadm /dev/md0 --add /dev/vdc",
    ]


def test_a_check_is_of_every_group() -> None:
    made = commands(f"[array]\nlevel = 'raid50'\ngroups = 2\ncheck = true\nsync_speed_max = '10 MiB/s'\n{DRIVES}6")
    checks = [line for line in made if "sync_action" in line or "sync_speed_max" in line]
    assert checks == [
        line
        for md in (1, 2)
        for line in (
            f"echo 10240 >/sys/block/md{md}/md/sync_speed_max",
            f"echo check >/sys/block/md{md}/md/sync_action",
        )
    ]


def test_a_rebuild_in_a_group_is_the_groups() -> None:
    made = commands(f"[array]\nlevel = 'raid50'\ngroups = 2\nrebuild = 4\n{DRIVES}6")
    assert [line.split()[2] for line in made if line.startswith("mdadm --create")] == [
        "/dev/md1",
        "/dev/md2",
        "/dev/md0",
    ]
    assert made[-1] == "mdadm /dev/md2 --add /dev/vde"
    assert "echo 256 >/sys/block/md1/md/stripe_cache_size" in made


def test_levels_without_copies_have_no_bitmap() -> None:
    assert "bitmap" not in commands(f"[array]\nlevel = 'raid0'\n{DRIVES}2")[0]
    made = commands(f"[array]\nlevel = 'raid1'\nbitmap = 'internal'\nbitmap_chunk = '1MiB'\n{DRIVES}2")
    assert made[0].endswith("--bitmap=internal --bitmap-chunk=1024K")


def test_queues_are_set_before_md_reads_them() -> None:
    text = (
        "[queue]\nscheduler = 'bfq'\nnr_requests = 32\nmax_request = '256KiB'\nread_ahead = '4MiB'\n"
        f"[queue.iosched]\nslice_idle = '0s'\n[array]\nlevel = 'raid0'\n{DRIVES}2"
    )
    made = setup(text).script()
    assert made[:5] == [
        "echo 1 >/sys/block/vda/queue/rotational",
        "echo bfq >/sys/block/vda/queue/scheduler",
        "echo 0 >/sys/block/vda/queue/iosched/slice_idle",
        "echo 32 >/sys/block/vda/queue/nr_requests",
        "echo 256 >/sys/block/vda/queue/max_sectors_kb",
    ]
    assert made[-1] == "echo 4096 >/sys/block/md0/queue/read_ahead_kb"


@pytest.mark.parametrize(
    ("filesystem", "made"),
    [
        (
            "type = 'xfs'\nsu = '64KiB'\nsw = 3\nmount = 'noatime'",
            ["mkfs.xfs -q -f -d su=65536,sw=3 /dev/vda", "mount -t xfs -o noatime /dev/vda /mnt"],
        ),
        (
            "type = 'ext4'\nstride = '64KiB'\nstripe_width = '192KiB'\nmkfs = ['-m', '0']",
            ["mkfs.ext4 -q -F -E stride=16,stripe-width=48 -m 0 /dev/vda", "mount -t ext4 /dev/vda /mnt"],
        ),
        ("type = 'btrfs'", ["mkfs.btrfs -q -f /dev/vda", "mount -t btrfs /dev/vda /mnt"]),
    ],
)
def test_a_file_system_is_made_and_mounted(filesystem: str, made: list[str]) -> None:
    assert commands(f"[filesystem]\n{filesystem}\n{DRIVES}1") == made


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[filesystem]\ntype = 'ext4'\nsu = '64KiB'\nsw = 3\n", "only xfs has it"),
        ("[filesystem]\ntype = 'xfs'\nsu = '64KiB'\n", "go together"),
        ("[filesystem]\ntype = 'xfs'\nmkfs = ['-l', 'logdev=/dev/sda']\n", "expected letters, digits"),
        ("[filesystem]\ntype = 'zfs'\n", "zfs"),
        ("[filesystem]\nsize = '1GiB'\n", "type"),
        ("[array]\nlevel = 'raid0'\nbitmap = 'internal'\n", "no bitmap"),
        ("[array]\nlevel = 'raid1'\nbitmap_chunk = '1MiB'\n", "there is no bitmap"),
        ("[queue]\nread_ahead = 5\n", "multiple of 4096"),
        ("[host]\nmemory = '1MiB'\n", "64 MiB"),
        ("[queue]\nscheduler = 'cfq'\n", "none, mq-deadline, kyber, bfq"),
    ],
)
def test_what_cannot_be_made_is_one_line(text: str, complaint: str) -> None:
    with pytest.raises(_core.ConfigError, match=complaint) as error:
        setup(f"{text}{DRIVES}{2 if '[array]' in text else 1}")
    assert "\n" not in str(error.value)


def test_a_command_that_fails_ends_the_shell_with_its_message() -> None:
    # Never the script of a setup: this system may have a drive of that name.
    made = in_order(["echo begun; echo trouble >&2; false", "echo never"])
    said = subprocess.run(["sh", "-c", made], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout, said.stderr) == (1, "", "begun\ntrouble\n")


def test_the_agent_may_write_only_what_was_made() -> None:
    machine = _core.Machine.parse(f"{DRIVES}1", "one.toml")
    task = Task(machine, setup_of(machine), "x y", "", [("size", "4KiB")])
    line = next(line for line in script(task).splitlines() if line.startswith("spindle-agent"))
    assert "--workload '/lab/load/x y.toml'" in line
    assert "--target /dev/vda --erase /dev/vda" in line
    assert "--set size=4KiB" in line
    assert "--settle 2s" in line
    machine = _core.Machine.parse(f"[filesystem]\ntype = 'xfs'\nsize = '1GiB'\n{DRIVES}1", "one.toml")
    made = script(Task(machine, setup_of(machine), "x", "", []))
    assert f"--target /mnt --create {1 << 30}" in made
    assert "--erase" not in made


def test_a_rebuild_begins_with_the_load() -> None:
    array = "[array]\nlevel = 'raid5'\nrebuild = 1\n"
    machine = _core.Machine.parse(f"{array}{DRIVES}3", "rebuilt.toml")
    assert "--settle 0s" in script(Task(machine, setup_of(machine), "x", "", []))


def test_the_simulator_refuses_what_only_a_kernel_has(tmp_path: Path) -> None:
    machine = tmp_path / "m.toml"
    machine.write_text(f"[filesystem]\ntype = 'btrfs'\n{DRIVES}1")
    complaint = spindle("run", "randomio", str(machine), "--seconds", "1").complaint
    assert (
        complaint
        == 'spindle: [filesystem] `type = "btrfs"` of the machine is not modelled; --kernel runs it on the real kernel'
    )


def test_real_storage_has_its_own_kernel(tmp_path: Path) -> None:
    complaint = spindle("run", "randomio", str(tmp_path / "t.bin"), "--create", "1MiB", "--kernel").complaint
    assert "t.bin is not a modelled machine" in complaint


def test_without_a_kernel_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    complaint = spindle("run", "randomio", "six-sata-f2", "--kernel").complaint
    assert complaint.startswith("spindle: the lab's kernel is not built; `spindle lab build`")


def test_files_of_its_own_are_not_possible_there() -> None:
    assert "makes files of its own" in spindle("run", "metadata", "six-sata-f2", "--kernel").complaint
