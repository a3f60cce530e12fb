"""Captures are read back as they were written; nothing outside a capture is ever read."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from spindle.host.errors import TargetError
from spindle.inspect import capture, inspect_stack, open_capture, schema
from spindle.inspect.capture import Capture, _masked
from spindle.inspect.model import encode
from spindle.inspect.tree import SHORT, MemoryTree, ReadError, Tool
from tests.inspect.trees import NAMES, load
from tests.program import Ended

Invoke = Callable[..., Ended]
MODULE = sys.modules[Capture.__module__]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_a_tar_and_memory_give_the_same(tmp_path: Path, name: str) -> None:
    held = load(name).held()
    inventory = inspect_stack(None, held)
    folder = load(name).lay_out(tmp_path / "tree")
    assert inspect_stack(None, open_capture(str(folder))) == inventory
    for compressed, file in ((False, tmp_path / "a.tar"), (True, tmp_path / "a.tar.gz")):
        file.write_bytes(Capture(held, inventory).tar(compressed))
        assert inspect_stack(None, open_capture(str(file))) == inventory


@pytest.mark.parametrize("name", NAMES)
def test_the_json_output_matches_the_schema(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = msgspec.json.decode(encode(inspect_stack(None, load(name).held())))
    jsonschema.Draft202012Validator(schema()).validate(document)


def test_no_path_leads_out_of_a_capture(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("7\n")
    layout = load("sata-ssd")
    queue = next(path for path in layout.files if path.endswith("sda/queue/nr_requests")).removesuffix("nr_requests")
    for name, target in (
        ("nr_requests", str(secret)),
        ("read_ahead_kb", "../" * 40 + str(secret).lstrip("/")),
        ("max_sectors_kb", "/etc/hostname"),
    ):
        del layout.files[queue + name]
        layout.links[queue + name] = target
    root = layout.lay_out(tmp_path / "tree")
    device = inspect_stack(None, open_capture(str(root))).device("sda")
    assert device is not None
    assert device.queue is not None
    for name in ("nr_requests", "read_ahead_kb", "max_sectors_kb"):
        assert getattr(device.queue, name) is None
        assert "not in the capture" in device.queue.unknown[name]


def test_folders_that_are_links_out_of_the_capture_are_not_entered(tmp_path: Path) -> None:
    outside = load("sata-ssd").lay_out(tmp_path / "outside")
    root = tmp_path / "tree"
    root.mkdir()
    (root / "sys").symlink_to(outside / "sys")
    with pytest.raises(TargetError, match="no folder `sys`"):
        open_capture(str(root))


def test_pipes_and_device_nodes_in_a_folder_are_not_opened(tmp_path: Path) -> None:
    root = load("sata-ssd").lay_out(tmp_path / "tree")
    queue = next(root.glob("sys/devices/**/sda/queue"))
    (queue / "nr_requests").unlink()
    os.mkfifo(queue / "nr_requests")  # to open it for reading would wait for ever
    if os.geteuid() == 0:
        (queue / "read_ahead_kb").unlink()
        os.mknod(queue / "read_ahead_kb", 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero never ends
    device = inspect_stack(None, open_capture(str(root))).device("sda")
    assert device is not None
    assert device.queue is not None
    assert device.queue.nr_requests is None
    assert os.geteuid() != 0 or device.queue.read_ahead_kb is None


def test_a_tar_may_contain_devices_hard_links_and_paths_upwards(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, kind, link in (
            ("../../sys/class/block/sda", tarfile.REGTYPE, ""),
            ("/sys/class/block/sdb", tarfile.DIRTYPE, ""),
            ("sys/class/block/sdb/dev", tarfile.CHRTYPE, ""),
            ("sys/class/block/sdb/size", tarfile.LNKTYPE, "/etc/passwd"),
            ("./sys/class/block/sdb/ro", tarfile.FIFOTYPE, ""),
            ("etc/passwd", tarfile.REGTYPE, ""),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, link
            tar.addfile(entry)
    path = tmp_path / "a.tar"
    path.write_bytes(file.getvalue())
    inventory = inspect_stack(None, open_capture(str(path)))
    found = inventory.device("sdb")
    assert found is not None
    assert found.number is None
    assert found.size_bytes is None
    assert not (tmp_path.parent / "sys").exists()


@pytest.mark.parametrize(
    "content", [b"", b"not a tar", b"\x1f\x8b\x08\x00damaged", b"\xfd7zXZ\x00damaged", b"\0" * 10240]
)
def test_a_file_that_is_not_a_capture_is_an_error_of_one_line(invoke: Invoke, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(content)
    status, out, err = invoke("inspect", "--root", str(path))
    assert (status, out) == (2, "")
    assert err.startswith(f"spindle: {path}: ")
    assert err.count("\n") == 1
    assert "defect" not in err


def test_serials_are_masked_everywhere_and_the_same_drive_stays_the_same() -> None:
    hidden = _masked(load("dm-multipath").held())
    text = b"".join(path.encode() + (content or b"") for path, content, _ in hidden.entries())
    for serial in (b"600a098038304437415d4b6a59684a52", b"80D7A]KjYhJR"):
        assert serial not in text
    inventory = inspect_stack(None, hidden)
    drives = [device.drive for device in inventory.devices if device.drive is not None]
    assert len(drives) == 4
    assert len({drive.wwid for drive in drives}) == 1
    assert len({drive.serial for drive in drives}) == 1
    dm = inventory.device("dm-0")
    assert dm is not None
    assert dm.dm is not None
    assert dm.dm.owner == "mpath"


@pytest.mark.parametrize("name", NAMES)
def test_masking_changes_no_value_and_leaves_no_serial(name: str) -> None:
    held = load(name).held()
    before, after = inspect_stack(None, held), inspect_stack(None, _masked(held))
    serials = {device.drive.serial for device in before.devices if device.drive and device.drive.serial}
    serials |= {
        drive.serial for found in before.controllers if found.raid for drive in found.raid.drives if drive.serial
    }
    left = b"".join(path.encode() + (content or b"") for path, content, _ in _masked(held).entries())
    for serial in serials:
        assert serial.encode() not in left, f"{serial} is still there"
    for one, other in zip(before.devices, after.devices, strict=True):
        assert one.queue == other.queue
        assert one.md == other.md or one.md is None
        assert one.size_bytes == other.size_bytes
        if one.drive is not None and other.drive is not None:
            assert (one.drive.model, one.drive.ncq_depth) == (other.drive.model, other.drive.ncq_depth)
            assert (one.drive.serial is None) == (other.drive.serial is None)


def test_a_name_made_of_model_and_serial_loses_the_serial_only() -> None:
    held = MemoryTree()
    held.add("sys/class/block/sda/wwid", b"t10.ATA     WDC WD10EARS-00Y5B1        WD-WCAV5C123456\n")
    held.add("sys/class/block/sda/model", b"WDC WD10EARS-00Y5B1\n")
    held.add(
        "tools/smartctl/sda", b'{"wwn": {"naa": 5, "oui": 5358, "id": 8831234567}, "serial_number": "WD-WCAV5C123456"}'
    )
    hidden = _masked(held)
    assert hidden.read("sys/class/block/sda/model") == b"WDC WD10EARS-00Y5B1\n"
    assert b"WCAV" not in hidden.read("sys/class/block/sda/wwid")
    answer = json.loads(hidden.read("tools/smartctl/sda"))
    assert answer["wwn"] == {}
    assert len(answer["serial_number"]) == len("WD-WCAV5C123456")
    assert "8831234567" not in str(answer)


def test_two_paths_to_one_drive_keep_different_serials_apart() -> None:
    held = MemoryTree()
    for name, serial in (("sda", "ABC123456"), ("sdb", "ABC1234567")):
        held.add(f"sys/class/block/{name}/serial", serial.encode() + b"\n")
    hidden = _masked(held)
    one, other = (hidden.read(f"sys/class/block/{name}/serial") for name in ("sda", "sdb"))
    assert one != other
    assert len(one) == 10
    assert len(other) == 11


def test_a_capture_of_this_machine_gives_the_inventory_of_the_machine(tmp_path: Path) -> None:
    taken = capture(None, mask_serials=False)
    file = tmp_path / "here.tar.gz"
    file.write_bytes(taken.tar(compressed=True))
    again = inspect_stack(None, open_capture(str(file)))

    def shape(part: object) -> object:
        """The inventory without reasons, as a missing file is 'not in the capture' later."""
        if isinstance(part, dict):
            return {key: shape(item) for key, item in part.items() if key not in ("unknown", "origin")}
        return [shape(item) for item in part] if isinstance(part, list) else part

    assert shape(msgspec.to_builtins(again)) == shape(msgspec.to_builtins(taken.inventory))
    for one, other in zip(taken.inventory.devices, again.devices, strict=True):
        assert one.unknown.keys() == other.unknown.keys()
    assert file.stat().st_size < 2_000_000


def test_the_command_captures_and_shows_a_capture(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "here.tar"
    status, shown, err = invoke("inspect", "--capture", str(file), "--mask-serials")
    assert (status, err) == (0, "")
    with tarfile.open(file) as tar:
        inside = tar.extractfile("spindle-capture.json")
        assert inside is not None
        manifest = json.loads(inside.read())
    assert manifest["serials_masked"] is True
    status, again, err = invoke("inspect", "--root", str(file))
    assert (status, err) == (0, "")
    assert again == shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--root", "/nowhere"], "/nowhere: no such file"),
        (["--mask-serials"], "--mask-serials is for --capture"),
        (["--root", "/", "--capture", "a.tar"], "it excludes --root"),
        (["/no/such/path"], "/no/such/path: no such file"),
        (["/proc"], "no block device"),
        (["/dev/null"], "character device"),
        ([""], "the target has no name"),
    ],
)
def test_each_mistake_is_an_error_of_one_line(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = invoke("inspect", *arguments)
    assert status in (1, 2)
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("target", ["/dev/sdz", "sdz", "/srv", "relative/path"])
def test_a_target_that_a_capture_does_not_have(invoke: Invoke, tmp_path: Path, target: str) -> None:
    layout = load("sata-ssd")
    layout.files["proc/self/mountinfo"] = b""
    root = layout.lay_out(tmp_path / "tree")
    status, _, err = invoke("inspect", "--root", str(root), target)
    assert status == 2
    assert err.startswith(f"spindle: {target}: ")


def test_a_tool_without_output_in_a_capture_says_why() -> None:
    layout = load("sata-ssd")
    del layout.files["tools/smartctl/sda"]
    layout.files["tools/smartctl/sda.why"] = b"smartctl: not installed\n"
    device = inspect_stack(None, layout.held()).device("sda")
    assert device is not None
    assert device.drive is not None
    assert device.drive.unknown["smart"] == "smartctl: not installed"


def test_reading_has_a_limit() -> None:
    held = MemoryTree()
    held.add("sys/x", b"7" * 100)
    assert held.read("sys/x", 100) == b"7" * 100
    with pytest.raises(ReadError, match="longer than 99 bytes"):
        held.read("sys/x", 99)


def plain_copy(held: MemoryTree, names: dict[str, str]) -> MemoryTree:
    """A capture made by hand: /sys/block with folders in place of links, and /proc/mounts."""
    made = MemoryTree()
    for name, path in names.items():
        folder = held.resolve(f"sys/class/block/{name}")
        assert folder is not None
        for source, content, _ in held.entries():
            if source.startswith(folder + "/") and content is not None:
                made.add(f"sys/block/{path}{source.removeprefix(folder)}", content)
        for below in held.names(f"{folder}/slaves"):
            made.add_folder(f"sys/block/{path}/slaves/{below}")
        device = held.resolve(f"{folder}/device")
        for source, content, _ in held.entries():
            if device and source.startswith(device + "/") and "/block/" not in source and content is not None:
                made.add(f"sys/block/{path}/device{source.removeprefix(device)}", content)
    return made


def test_a_capture_made_by_hand_without_links(tmp_path: Path) -> None:
    names = {"md127": "md127"}
    for name in ("sda", "sdb", "sdc", "sdd"):
        names |= {name: name, f"{name}1": f"{name}/{name}1"}
    made = plain_copy(load("raid5-ext4-sector63").held(), names)
    made.add("proc/mounts", b"/dev/md127 /srv ext4 rw,noatime,stripe=48 0 0\n")
    made.add("run/udev/data/b8:0", b"E:ID_BUS=ata\n")
    inventory = inspect_stack("/srv", made)
    assert inventory.tops == ["fs:/srv"]
    assert inventory.file_systems[0].mount_stripe_blocks == 48
    array, part, disk = (inventory.device(name) for name in ("md127", "sda1", "sda"))
    assert array is not None
    assert array.below == ["sda1", "sdb1", "sdc1", "sdd1"]
    assert part is not None
    assert part.partition is not None
    assert (part.partition.start_sector, part.below) == (63, ["sda"])
    assert disk is not None
    assert disk.drive is not None
    assert (disk.drive.transport, disk.drive.queue_depth, disk.drive.write_cache_type) == ("sata", 31, "write back")
    assert disk.drive.controller is None
    assert "PCI" in disk.drive.unknown["controller"]


def test_a_tar_of_the_folder_that_holds_a_capture(tmp_path: Path) -> None:
    layout = load("sata-ssd")
    layout.lay_out(tmp_path / "captured")
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tar:
        tar.add(tmp_path / "captured", "captured")
    assert inspect_stack(None, open_capture(str(tmp_path / "a.tgz"))) == inspect_stack(None, layout.held())


class Vanishing:
    """A tree whose devices of one name are gone from the n-th query on."""

    live = True

    def __init__(self, held: MemoryTree, name: str, after: int) -> None:
        self._held, self._name, self.left = held, name, after

    def _there(self, path: str) -> bool:
        self.left -= 1
        found = self._held.resolve(path) or path
        return self.left >= 0 or not any(part.startswith(self._name) for part in found.split("/"))

    def read(self, path: str, limit: int = SHORT) -> bytes:
        if not self._there(path):
            raise ReadError(f"{path}: not there")
        return self._held.read(path, limit)

    def names(self, path: str) -> list[str]:
        names = self._held.names(path) if self._there(path) else []
        return [name for name in names if self.left >= 0 or not name.startswith(self._name)]

    def resolve(self, path: str) -> str | None:
        return self._held.resolve(path) if self._there(path) else None

    def points_to(self, path: str) -> str | None:
        return self._held.points_to(path) if self._there(path) else None

    def output(self, tool: Tool) -> str:
        self.left -= 1
        return self._held.output(tool)


@pytest.mark.parametrize(("name", "gone"), [("raid5-ext4-sector63", "sd"), ("luks-nvme", "nvme"), ("luks-nvme", "dm-")])
def test_a_device_may_go_at_any_moment_of_a_capture(name: str, gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = load(name).held()
    whole = Vanishing(held, gone, 1_000_000)
    monkeypatch.setattr(MODULE, "LiveTree", lambda: whole)
    capture(None, mask_serials=False)
    questions = 1_000_000 - whole.left
    assert questions > 100
    for after in range(0, questions, 1 + questions // 150):
        monkeypatch.setattr(MODULE, "LiveTree", lambda after=after: Vanishing(held, gone, after))
        with suppress(TargetError):  # all devices were gone before the first look
            inspect_stack(None, capture(None, mask_serials=False).held)
