"""Parts that could not be judged are listed, for drives of every transport and for every rule; they are never
`fine`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spindle.doctor import RULES, diagnose
from spindle.doctor.rule import Rule
from spindle.doctor.stack import Stack
from spindle.doctor.unjudged import PARTS
from spindle.inspect import inspect_stack
from tests.doctor.shapes import Shape, add, diagnosis, healthy, laid
from tests.inspect.trees import NAMES, Layout, load
from tests.program import Ended

pytestmark = pytest.mark.promise(23)


def asked(layout: Layout, rule: str) -> dict[str, str]:
    """Parts that a rule could not judge, and the reasons."""
    return {one.object: one.why for one in diagnosis(layout).unjudged if one.rule == rule}


def without_health(name: str) -> Layout:
    layout = load(name)
    layout.remove("tools/smartctl")
    return layout


def disk(folder: str, name: str, lines: str = "") -> Layout:
    device = f"device {folder}/block/{name}\ndevice -> ../../../{folder.rpartition('/')[2]}\ndev=8:0\nsize=1000000\n"
    return laid(f"[]\nuse machine\n[{folder}]\nstate=running\nqueue_depth=1\n{lines}\n{device}")


USB = "sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0"
ISCSI = "sys/devices/platform/host7/session1/target7:0:0/7:0:0:1"
MMC = "sys/devices/pci0000:00/0000:00:1c.0/mmc_host/mmc0/mmc0:aaaa"
VIRTIO = "sys/devices/pci0000:00/0000:00:05.0/virtio2"
ODD = "sys/devices/pci0000:00/0000:00:06.0/host9/target9:0:0/9:0:0:0"

TRANSPORTS: dict[str, tuple[Callable[[], Layout], str]] = {
    "sata": (lambda: without_health("sata-ssd"), "sda"),
    "sas": (lambda: without_health("md-raid10-n2-xfs"), "sdn"),
    "nvme": (lambda: without_health("nvme-ext4"), "nvme0n1"),
    "fc": (lambda: without_health("dm-multipath"), "sdb"),
    "usb": (lambda: disk(USB, "sda"), "sda"),
    "iscsi": (lambda: disk(ISCSI, "sda"), "sda"),
    "mmc": (lambda: disk(MMC, "mmcblk0"), "mmcblk0"),
    "virtio": (lambda: disk(VIRTIO, "vda"), "vda"),
    "none known": (lambda: disk(ODD, "sda"), "sda"),
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("rule", ["smart", "temperature"])
def test_a_drive_that_was_not_asked_is_listed_for_every_transport(transport: str, rule: str) -> None:
    make, name = TRANSPORTS[transport]
    layout = make()
    drive = next(found.drive for found in inspect_stack(None, layout.held()).devices if found.id == name)
    assert drive is not None
    assert drive.transport == (None if transport == "none known" else transport)
    assert asked(layout, rule)[name]


@pytest.mark.parametrize("rule", ["smart", "temperature", "firmware", "shingled", "wear", "rotational"])
def test_a_disk_of_a_hypervisor_is_never_fine(rule: str) -> None:
    layout = add(disk(VIRTIO, "vda"), f"[{VIRTIO}/block/vda]\nqueue/rotational=1")
    assert asked(layout, rule) == {"vda": "a virtual disk: only its host sees the drives behind it"}


def test_a_raid_unit_with_unknown_drives_is_listed() -> None:
    layout = load("raid-megaraid")
    layout.remove("tools/storcli/all")
    why = asked(layout, "smart")["sda"]
    assert "hides its drives" in why
    assert "sda" not in asked(load("raid-megaraid"), "smart"), "its drives are asked one by one"
    assert {"raid-unit", "write-cache"} <= {one.rule for one in diagnosis(layout).unjudged}


def test_a_network_block_device_is_listed() -> None:
    layout = laid("[]\nuse machine\ndevice sys/devices/virtual/block/nbd0\ndev=43:0\nsize=1000\n")
    assert "its server" in asked(layout, "smart")["nbd0"]


SILENT = {
    "a USB bridge": (
        '{"smartctl": {"exit_status": 1, "messages": [{"string": "/dev/sda: Unknown USB bridge [0x152d:0x0578 '
        '(0x1402)]", "severity": "error"}]}}',
        "Unknown USB bridge",
    ),
    "a sleeping drive": (
        '{"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)", '
        '"severity": "information"}]}}',
        "STANDBY",
    ),
    "nothing": ("{}", "does not report it"),
}


@pytest.mark.parametrize("kind", SILENT)
def test_an_answer_without_a_verdict_is_not_fine(kind: str, tmp_path: object, invoke: Callable[..., Ended]) -> None:
    answer, words = SILENT[kind]
    layout = disk(USB, "sda")
    layout.files["tools/smartctl/sda"] = answer.encode()
    assert words in asked(layout, "smart")["sda"]
    _, out, _ = invoke("doctor", "--root", str(layout.lay_out(tmp_path)))  # type: ignore[arg-type]
    fine = next(line for line in out.splitlines() if line.startswith("fine"))
    assert " smart," not in fine


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.inputs], ids=lambda rule: rule.name)
def test_each_value_that_a_rule_needs_is_missed_when_it_is_unknown(rule: Rule) -> None:
    """For each part of each captured stack, and of a generated one, one value at a time."""
    seen = set()
    for layout in (*map(load, NAMES), healthy(Shape()), healthy(Shape(drive="nvme"))):
        for value in rule.inputs:
            kind, _, field = value.partition(".")
            inventory = inspect_stack(None, layout.held())
            planted = set()
            for name, part, _ in PARTS[kind](Stack(inventory)):
                if part is not None:
                    setattr(part, field, [] if isinstance(getattr(part, field), list) else None)
                    part.unknown[field] = "it was taken away"
                    planted.add(name)
            found = diagnose(inventory, [rule])
            assert planted <= {one.object for one in found.findings} | {one.object for one in found.unjudged}, value
            if planted:
                seen.add(value)
    assert seen == set(rule.inputs), "no stack has a part with it"


def test_every_rule_lists_its_inputs() -> None:
    without = {rule.name for rule in RULES if not rule.inputs}
    listing = {"ncq", "stripe-geometry", "dirty-memory", "wear", "pcie-power", "cpu-latency"}
    assert without == {*listing, "atime"}, "the others list it themselves; a mount always has its options"
