"""This machine: its root disk, loop devices over files, btrfs over two of them."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.host.devices import HERE, DevNumber
from spindle.host.mounts import own_mounts
from spindle.host.settings import chosen
from spindle.inspect import inspect_stack, running
from spindle.inspect.model import Queue
from spindle.inspect.tree import LiveTree, ReadError, Tool
from spindle.report.terminal.inspect import inventory_page
from spindle.report.terminal.style import Style
from tests.inspect.trees import NAMES, load
from tests.program import Ended
from tests.workbench import Workbench

Invoke = Callable[..., Ended]


def test_the_root_file_system_and_every_queue_setting_equal_sysfs() -> None:
    inventory = inspect_stack("/", running())
    mount = next(mount for mount in reversed(own_mounts(HERE)) if mount.point == "/")
    file_system = inventory.file_systems[0]
    assert (file_system.mount_point, file_system.type) == ("/", mount.fs_type)
    assert file_system.options == mount.options.split(",")
    if mount.dev.major == 0:
        pytest.skip("the root file system is on no block device of its own")
    top = inventory.device(file_system.below[0])
    assert top is not None
    assert top.number == str(DevNumber.of(os.stat("/").st_dev))
    for device in inventory.devices:
        if device.queue is None:
            continue
        folder = Path("/sys/class/block", device.id, "queue")
        for name in Queue.__struct_fields__:
            path = folder / name
            if path.is_file():
                assert str(getattr(device.queue, name)) == chosen(path.read_text().strip()), name
            elif name not in ("schedulers", "iosched", "hardware_queues", "tags", "unknown"):
                assert getattr(device.queue, name) is None
        for parameter in (folder / "iosched").glob("*"):
            assert device.queue.iosched[parameter.name] == parameter.read_text().strip()
        assert device.size_bytes == int(Path("/sys/class/block", device.id, "size").read_text()) * 512


def test_a_loop_device_over_a_file_over_its_file_system(bench: Workbench) -> None:
    file = bench.image()
    loop = bench.loop(file)
    bench.run("mkfs.ext4", "-q", "-E", "stride=16,stripe-width=64", "-b", "4096", loop)
    point = bench.mount(loop, "-o", "noatime")
    (point / "x").write_text("x")
    inventory = inspect_stack(str(point / "x"), running())
    name = loop.removeprefix("/dev/")
    assert inventory.tops == [f"fs:{point}"]
    found = inventory.file_systems[0]
    assert (found.type, found.atime, found.below) == ("ext4", "noatime", [name])
    assert (found.stripe_unit_bytes, found.stripe_width_bytes, found.block_bytes) == (64 << 10, 256 << 10, 4096)
    device = inventory.device(name)
    assert device is not None
    assert device.loop is not None
    assert device.loop.file == str(file)
    assert f"fs:{point}" in device.above
    holding = next(iter(device.below))
    assert inventory.file_system(holding) is not None
    assert os.stat(holding.removeprefix("fs:")).st_dev == os.stat(file).st_dev
    page = "\n".join(inventory_page(inventory, Style()))
    assert page.index(str(point)) < page.index(str(file)) < page.index(f"└─ {holding.removeprefix('fs:')}")


def test_btrfs_over_two_loop_devices_shows_both(bench: Workbench) -> None:
    if "btrfs" not in Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no btrfs")
    loops = sorted(bench.loop(size=128 << 20) for _ in range(2))
    bench.run("mkfs.btrfs", "-q", "-f", "-d", "raid1", "-m", "raid1", *loops)
    point = bench.mount(loops[0])
    inventory = inspect_stack(str(point), running())
    found = inventory.file_systems[0]
    assert sorted(found.below) == sorted(loop.removeprefix("/dev/") for loop in loops)
    assert found.profiles["data"] == found.profiles["metadata"] == "raid1"
    assert found.errors == 0
    for loop in loops:
        device = inventory.device(loop.removeprefix("/dev/"))
        assert device is not None
        assert device.kind == "loop"


def test_xfs_geometry_is_that_given_to_mkfs(bench: Workbench) -> None:
    if "xfs" not in Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no XFS")
    loop = bench.loop(size=1 << 30)
    bench.run("mkfs.xfs", "-q", "-d", "su=64k,sw=4", loop)
    point = bench.mount(loop)
    found = inspect_stack(str(point), running()).file_systems[0]
    assert (found.stripe_unit_bytes, found.stripe_width_bytes) == (64 << 10, 256 << 10)
    assert (found.sunit_blocks, found.swidth_blocks, found.geometry_source) == (16, 64, "xfs_info")
    options = [option for option in found.super_options if option.startswith(("sunit", "swidth"))]
    assert options == ["sunit=128", "swidth=512"], "the mount counts sectors of 512 bytes"


def test_a_partition_shows_its_start(bench: Workbench) -> None:
    loop = bench.loop()
    node = bench.partition(loop, 1, 63, 8192)
    inventory = inspect_stack(node, running())
    device = inventory.device(node.removeprefix("/dev/"))
    assert device is not None
    assert device.partition is not None
    assert (device.partition.start_sector, device.partition.aligned_to_bytes) == (63, 512)
    assert device.below == [loop.removeprefix("/dev/")]


def test_a_loop_device_over_a_deleted_file_says_so(bench: Workbench) -> None:
    file = bench.image()
    loop = bench.loop(file)
    file.unlink()
    device = inspect_stack(loop, running()).devices[0]
    assert device.loop is not None
    assert device.loop.deleted
    assert device.below == []
    assert "deleted" in device.unknown["below"]


def test_without_any_tool_the_reasons_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_arguments, **_words: None)
    inventory = inspect_stack(None, running())
    assert inventory.devices
    for file_system in inventory.file_systems:
        assert "not installed" in file_system.unknown["size_bytes"]


def test_a_tool_that_fails_hangs_or_floods_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spindle.inspect.tree._TOOL_SECONDS", 0.3)
    monkeypatch.setattr("spindle.inspect.tree.LONG", 1000)
    for script, why in (
        ("exit 3", "prints nothing"),
        ("echo 'no such\tthing' >&2; exit 1", "no such thing"),
        ("sleep 5", "no answer"),
        ("head -c 5000 /dev/zero", "output is longer than"),
    ):
        with pytest.raises(ReadError, match=why):
            LiveTree().output(Tool("sh", "x", ("sh", "-c", script)))


def test_a_tool_that_leaves_a_child_behind_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output stays open, so waiting for its end would wait for the child."""
    monkeypatch.setattr("spindle.inspect.tree._TOOL_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(ReadError, match="no answer"):
        LiveTree().output(Tool("sh", "x", ("sh", "-c", "sleep 20 & wait")))
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_the_width_of_the_terminal(name: str, width: int) -> None:
    longest_word = 34  # a device's name or a path is not broken
    for line in inventory_page(inspect_stack(None, load(name).held()), Style(width=width)):
        assert len(line) <= width or len(line.split()[-1]) + 12 > width - longest_word


def test_facts_are_in_one_column_below_their_part() -> None:
    lines = inventory_page(inspect_stack(None, load("lvm-on-md").held()), Style(width=100))
    at = {line.index(word) for word in ("rw, relatime", "no stride") for line in lines if word in line}
    assert len(at) == 1


def test_the_command_in_a_pipe_and_in_a_narrow_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spindle.cli", "inspect", "/"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert piped.stderr == ""
    assert piped.stdout.startswith("/")
    leader, follower = pty.openpty()
    with subprocess.Popen(
        command, stdout=follower, stderr=follower, env={**os.environ, "COLUMNS": "50"}, close_fds=True
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        assert process.wait(60) == 0
    os.close(leader)
    lines = shown.decode().splitlines()
    assert max(map(len, lines)) <= 60
    assert len(lines) > len(piped.stdout.splitlines())


def test_json_is_one_document_and_the_schema_is_printed(invoke: Invoke) -> None:
    status, out, err = invoke("inspect", "--json", "/")
    assert (status, err) == (0, "")
    assert json.loads(out)["kind"] == "inventory"
    status, out, _ = invoke("schema", "inspect")
    assert status == 0
    assert json.loads(out)["title"] == "spindle inspect"
