"""Any content of a captured tree gives findings or none, a page, a script and JSON, never a traceback."""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from spindle.doctor import Diagnosis, diagnose, script
from spindle.host.errors import TargetError
from spindle.inspect import inspect_stack
from spindle.report.terminal.doctor import diagnosis_page, to_json
from spindle.report.terminal.style import Style
from tests.doctor.shapes import Shape, healthy
from tests.inspect.trees import NAMES, Layout, load
from tests.program import Ended

LAYOUTS = {name: load(name) for name in NAMES} | {
    "raid10": healthy(Shape(level="raid10", disks=6, volume=True)),
    "nvme": healthy(Shape(drive="nvme", table=True, fs="ext4")),
}
GARBAGE = [
    b"",
    b"\n",
    b"banana\n",
    b"-1\n",
    b"0\n",
    b"1\n",
    b"3\n",
    b"00\n",
    b"1e9\n",
    b"0x10\n",
    b"99999999999999999999999999\n",
    b"9223372036854775807\n",
    b"18446744073709551615\n",
    "١٢٣\n".encode(),
    "naïve ☃ \u202e\n".encode(),
    b"\xff\xfe\x00\x01",
    b"\x00" * 100,
    b"\x1b[2J\x1b]0;gone\x07\n",
    b"$(reboot) `reboot`; reboot\nreboot\n",
    b"[" * 5000,
    b"{}",
    b'{"smart_status": {"passed": false}, "temperature": {"current": -400}, "rotation_rate": -1}',
    b'{"Controllers":[{"Response Data":{"VD LIST":[{"DG/VD":"0/0","TYPE":"RAID5","Cache":"WB","Size":"0 TB"}],'
    b'"PD LIST":[{"DG":0,"Size":"0.000 TB","Model":"\\u001b","State":"?"}]}}]}',
    b'{"filesystems": [{"target": "/", "size": -5, "avail": 1e99}]}',
    b"0 10 striped 2 0 8:0 1 8:16 1\n0 1 linear 8:0 18446744073709551615\n",
    b"raid5\n",
    b"recover\n",
    b"1 / 0\n",
    b"0 / 0\n",
    b"9 / 3\n",
    b"Block size:  0\nRAID stride: 4294967295\nRAID stripe width: 1\n",
    b"data = bsize=0 sunit=1 swidth=0\n",
    b"a" * 70_000,
    b"7" * (5 << 20),
]


def everything(layout: Layout) -> Diagnosis:
    found = diagnose(inspect_stack(None, layout.held()))
    for width in (None, 40):
        assert all(line.isprintable() for line in diagnosis_page(found, Style(width=width)))
    assert all(line.isprintable() for line in script(found))
    assert msgspec.json.decode(to_json(found), type=Diagnosis) == found
    return found


def copy(layout: Layout) -> Layout:
    made = Layout()
    made.files, made.links, made.folders = dict(layout.files), dict(layout.links), set(layout.folders)
    return made


@pytest.mark.parametrize("seed", range(240))
def test_no_change_of_a_tree_crashes_the_doctor(seed: int) -> None:
    chance = random.Random(seed)
    layout = copy(LAYOUTS[chance.choice(sorted(LAYOUTS))])
    paths = sorted([*layout.files, *layout.links])
    for path in chance.sample(paths, min(len(paths), chance.choice([1, 5, 40, 200]))):
        layout.links.pop(path, None)
        layout.files.pop(path, None)
        match chance.randrange(4):
            case 0:
                layout.links[path] = chance.choice(["", "/", "..", "/etc/passwd", "loop", "sda", "/sys/class/block"])
            case 1:
                pass  # gone
            case _:
                layout.files[path] = chance.choice(GARBAGE)
    with contextlib.suppress(TargetError):  # a tree without its devices is an error
        everything(layout)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
@pytest.mark.parametrize("garbage", [b"", b"banana\n", b"0\n", b"-1\n", b"9223372036854775807\n", "☃\n".encode()])
def test_garbage_in_a_tree_gives_no_finding(name: str, garbage: bytes) -> None:
    layout = copy(LAYOUTS[name])
    layout.files = dict.fromkeys(layout.files, garbage)
    found = everything(layout)
    if not garbage.strip().isdigit():
        assert found.findings == []


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_each_file_may_be_missing(name: str) -> None:
    """A missing file never causes a finding on a healthy stack."""
    whole = {(found.rule, found.object) for found in everything(LAYOUTS[name]).findings}
    paths = sorted(
        path for path in LAYOUTS[name].files if "/md/" in path or "/queue/" in path or path.startswith("tools/")
    )
    for path in paths[:: max(1, len(paths) // 25)]:
        layout = copy(LAYOUTS[name])
        del layout.files[path]
        assert {(found.rule, found.object) for found in everything(layout).findings} <= whole, path


def test_names_cannot_smuggle_commands_into_the_script(tmp_path: Path) -> None:
    layout = copy(LAYOUTS["raid5-ext4-sector63"])
    path = "proc/self/mountinfo"
    evil = (
        rb"/srv/$(touch${IFS}"
        + str(tmp_path / "gone").encode()
        + rb");`id`'\012touch\040"
        + str(tmp_path / "gone").encode()
    )
    layout.files[path] = layout.files[path].replace(b"/srv", evil)
    lines = script(everything(layout))
    remount = next(line for line in lines if "remount" in line)
    assert lines.count(remount) == 1
    # What the shell makes of the line is one command with the mount point as one word.
    shown = subprocess.run(
        ["sh", "-c", 'mount() { printf \'%s\\n\' "$#" "$3"; }\n' + remount], capture_output=True, text=True, check=True
    ).stdout
    assert shown.startswith("3\n/srv/$(touch")
    assert not (tmp_path / "gone").exists()


PARITY = ("raid5-ext4-sector63", "raid6-degraded-resync")
SICK = ("bcache-writeback", "fc-policy", "home-nas", "luks-nvme")
EVIL = "x;:>gone;$(:>gone)`:>gone`"


@pytest.mark.parametrize("name", NAMES)
def test_devices_with_evil_names_make_no_commands(name: str, tmp_path: Path) -> None:
    """Each name is also a command that makes a file; the script is run without any other command in the path."""

    def renamed(text: str) -> str:
        return re.sub(r"\b(sd[a-n](?!\w)|sd[a-d](?=1\b)|md\d+|mpatha|vg0-root|nvme0n1(?!\w))", rf"\1{EVIL}", text)

    layout = load(name)
    made = Layout()
    made.links = {renamed(path): renamed(target) for path, target in layout.links.items()}
    made.folders = {renamed(path) for path in layout.folders}
    for path, content in layout.files.items():
        own = path.endswith("dm/name") or path.startswith("proc/")
        made.files[renamed(path)] = renamed(content.decode("latin-1")).encode("latin-1") if own else content
    with contextlib.suppress(TargetError):
        lines = script(everything(made))
        # Redirections name files of this machine, too: they are looked at, not run.
        lines = [line for line in lines if "> /" not in line]
        tools = r"# (mdadm|sfdisk|echo|mkfs|umount|mount|pvcreate) "
        commented = [line.removeprefix("# ") for line in lines if re.match(tools, line)]
        for commands in (lines, commented):
            text = "\n".join(commands) + "\n"
            subprocess.run(
                ["/bin/sh"], input=text, text=True, cwd=tmp_path, env={"PATH": "/nowhere"}, capture_output=True
            )
        assert not list(tmp_path.iterdir())
        named = any(EVIL in line for line in lines)
        assert named is (name in ("dm-multipath", "md-raid10-f2-xfs", "raid-3ware", *PARITY, *SICK)), (
            "the names are there"
        )


def test_the_program_too_survives_a_changed_tree(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    layout = copy(LAYOUTS["raid6-degraded-resync"])
    for path in layout.files:
        if path.endswith(("scheduler", "degraded", "state")):
            layout.files[path] = b"\x1b[31m\xff\n" * 1000
    status, out, err = invoke("doctor", "--root", str(layout.lay_out(tmp_path)))
    assert status in (0, 1)
    assert "\x1b" not in out
    assert "\x1b" not in err
    assert len(err.splitlines()) == status
