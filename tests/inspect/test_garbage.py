"""Any content of a captured tree gives 'unknown' with a reason, never a traceback."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spindle.host.errors import TargetError
from spindle.inspect import Inventory, inspect_stack, open_capture
from spindle.inspect.machine import machine_file
from spindle.inspect.model import encode
from spindle.inspect.tree import MemoryTree
from spindle.report.terminal.inspect import inventory_page
from spindle.report.terminal.style import Style
from tests.inspect.trees import NAMES, Layout, load

LAYOUTS = {name: load(name) for name in NAMES}
GARBAGE = [
    b"",
    b"\n",
    b"banana\n",
    b"-1\n",
    b"0\n",
    b"00\n",
    b"1e9\n",
    b"0x\n",
    b"99999999999999999999999999\n",
    b"9223372036854775807\n",
    "١٢٣\n".encode(),
    "naïve ☃ \u202e\n".encode(),
    b"\xff\xfe\x00\x01",
    b"\x00" * 100,
    b"\x1b[2J\x1b]0;gone\x07\n",
    b"[" * 5000,
    b"{}",
    b'{"smart_status": 3, "temperature": [], "blockdevices": 7, "Controllers": [null, {"Response Data": []}]}',
    b"1 2 3\n" * 1000,
    b"0 / 0\n",
    b"0 10 multipath 1 2 3\n0 x linear\n0 1 striped 0 0 8:0 1\n",
    b": - = []\n",
    b"a" * 5000,
]
LONG = [b"7" * (10 << 20), b"x" * (10 << 20) + b"\n"]


def everything(held: MemoryTree, target: str | None = None) -> Inventory:
    inventory = inspect_stack(target, held)
    for width in (None, 40):
        for line in inventory_page(inventory, Style(width=width)):
            assert line.isprintable()
    with contextlib.suppress(TargetError):
        for top in inventory.tops:
            machine_file(inspect_stack(top, held) if top in held.names("sys/class/block") else inventory, ["WD10EACS"])
    back = msgspec.json.decode(encode(inventory), type=Inventory)
    assert back == inventory
    return inventory


def changed(layout: Layout, changes: list[tuple[int, object]]) -> MemoryTree:
    held = Layout()
    held.files, held.links, held.folders = dict(layout.files), dict(layout.links), set(layout.folders)
    paths = sorted([*held.files, *held.links])
    for at, change in changes:
        path = paths[at % len(paths)]
        if change is None:
            held.files.pop(path, None)
            held.links.pop(path, None)
        elif isinstance(change, str):
            held.files.pop(path, None)
            held.links[path] = change
        elif isinstance(change, bytes):
            held.links.pop(path, None)
            held.files[path] = change
    return held.held()


LINKS = ["", "/", ".", "..", "../../../../../../etc/passwd", "/etc/passwd", "/sys/class/block", "loop", "a\x1bb", "sda"]
CHANGE = st.one_of(st.none(), st.sampled_from(GARBAGE), st.sampled_from(LINKS), st.binary(max_size=64))


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.sampled_from(NAMES),
    st.lists(st.tuples(st.integers(0, 1 << 16), CHANGE), min_size=1, max_size=40),
)
def test_no_change_of_a_tree_crashes_it(name: str, changes: list[tuple[int, object]]) -> None:
    # A tree without any device is an error; nothing else is raised.
    with contextlib.suppress(TargetError):
        everything(changed(LAYOUTS[name], changes))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("garbage", [b"", b"banana\n", "☃\n".encode(), b"\xff\x00", b"9" * 70_000])
def test_a_tree_full_of_garbage_is_unknown_throughout(name: str, garbage: bytes) -> None:
    layout = LAYOUTS[name]
    held = Layout()
    held.links, held.folders = layout.links, layout.folders
    held.files = dict.fromkeys(layout.files, garbage)
    inventory = everything(held.held())
    for device in inventory.devices:
        assert device.size_bytes is None
        assert device.unknown["size_bytes"]
        if device.queue is not None:
            assert device.queue.nr_requests is None
            assert device.queue.unknown["nr_requests"]


@pytest.mark.parametrize("line", LONG)
def test_a_line_of_ten_megabytes_is_unknown(tmp_path: Path, line: bytes) -> None:
    layout = load("sata-ssd")
    queue = next(path for path in layout.files if path.endswith("sda/queue/nr_requests"))
    for path in (queue, queue.replace("nr_requests", "scheduler"), "proc/meminfo", "tools/smartctl/sda"):
        layout.files[path] = line
    inventory = everything(open_capture(str(layout.lay_out(tmp_path))))  # type: ignore[arg-type]
    device = inventory.device("sda")
    assert device is not None
    assert device.queue is not None
    assert device.drive is not None
    assert device.queue.nr_requests is None
    assert "longer than" in device.queue.unknown["nr_requests"]
    assert "longer than" in device.queue.unknown["scheduler"]
    assert "longer than" in device.drive.unknown["smart"]
    assert "memory_bytes" in inventory.unknown
    assert device.queue.read_ahead_kb == 128, "sound values are still read"


@pytest.mark.parametrize("name", NAMES)
def test_each_number_that_is_missing_or_wrong_is_named_with_its_reason(name: str) -> None:
    layout = LAYOUTS[name]
    for path in [path for path in layout.files if path.endswith("/queue/nr_requests")]:
        for content, why in (
            (b"many\n", "'many' is not a whole number"),
            (b"\n", "empty"),
            (None, "not in the capture"),
        ):
            held = Layout()
            held.files, held.links, held.folders = dict(layout.files), layout.links, layout.folders
            if content is None:
                del held.files[path]
            else:
                held.files[path] = content
            inventory = inspect_stack(None, held.held())
            queues = [device.queue for device in inventory.devices if f"/{device.id}/queue/" in path]
            assert queues[0] is not None
            assert queues[0].unknown["nr_requests"] == f"{path}: {why}"
        break


def test_links_in_a_circle_do_not_loop_for_ever(tmp_path: Path) -> None:
    held = MemoryTree()
    held.add_link("sys/class/block/sda", "../../devices/sda")
    held.add_link("sys/devices/sda", "sda2")
    held.add_link("sys/devices/sda2", "sda")
    with pytest.raises(TargetError, match="no stack"):
        inspect_stack(None, held)


def test_devices_built_on_each_other_do_not_loop_for_ever() -> None:
    held = MemoryTree()
    for name, under, number in (("md0", "md1", "9:0"), ("md1", "md0", "9:1")):
        held.add(f"sys/devices/virtual/block/{name}/dev", number.encode())
        held.add(f"sys/devices/virtual/block/{name}/size", b"8\n")
        held.add_link(f"sys/devices/virtual/block/{name}/slaves/{under}", f"/sys/class/block/{under}")
        held.add_link(f"sys/class/block/{name}", f"/sys/devices/virtual/block/{name}")
    assert everything(held, "md0").tops == ["md0"]
