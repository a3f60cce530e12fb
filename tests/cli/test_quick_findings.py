"""The findings of a quick look: what limits, and how figures compare with those published for a class of device."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from spindle.host.devices import Device, DevNumber, Machine
from spindle.result.figures import EndedByError
from spindle.result.record import Knee, Level, QuickFindings, RunRecord, Step
from spindle.result.rules import judged
from spindle.result.target import Target
from spindle.run import classes
from spindle.run.quick_findings import findings_of
from tests.cli.records import counters, figures, op, quiet_read, record, stream
from tests.cli.test_tables import points

READ_ONLY = [("write_fraction", "0"), ("fsync_fraction", "0")]


def named(name: str, run: RunRecord) -> tuple[Step, RunRecord]:
    found = replace(run, id=f"20260101T000000Z-{zlib.crc32(name.encode()) % 16**6:06x}")
    return Step(name=name, about=name, runs=[found.id]), judged(found)


def target(key: str | None) -> Target:
    return Target(asked="/dev/sdz", kind="device", size_bytes=10**12, detail={"class": key})


def look(
    key: str | None,
    sequential: float = 200e6,
    depth_1: float = 80.0,
    peak: float = 160.0,
    last: float = 0.5,
    levelled_off: bool = True,
    top: RunRecord | None = None,
) -> QuickFindings:
    def reads(bytes_per_s: float) -> RunRecord:
        return record(figures(stream(op(bytes_per_s / 2**20, size=2**20))), preset="sdd-read")

    top = top or quiet_read(peak, mean_ms=16 / peak * 1000)
    parts = [
        named("sequential-read", reads(sequential)),
        named("random-read", record(figures(stream(op(depth_1, mean_ms=1000 / depth_1))), overrides=READ_ONLY)),
        named("random-read-rising", top),
        named("first-part", reads(sequential)),
        named("last-part", reads(sequential * last)),
    ]
    sweep = Knee(
        points=points((1, depth_1, 1000 / depth_1), (8, peak * 0.96, 50.0), (16, peak, 100.0)),
        knee=8,
        levelled_off=levelled_off,
    )
    return findings_of(target(key), [step for step, _ in parts], [run for _, run in parts], sweep, ["nothing"])


def words(found: QuickFindings, topic: str) -> str:
    return "\n".join(finding.text for finding in found.findings if finding.topic == topic)


def test_a_disk_as_fast_as_its_class_is_reported_with_the_published_range() -> None:
    found = look("hdd-7200")
    text = words(found, "class")
    assert "sequential read: 200 MB/s, as such a device delivers (7200 rpm disk: 65 to 270 MB/s)" in text
    assert "random read one at a time: 80 IOPS, as such a device delivers" in text
    assert [figure.name for figure in found.comparison] == [
        "sequential_read",
        "random_read_depth1",
        "random_read_peak",
        "last_to_first",
    ]
    assert all(figure.source for figure in found.comparison)


def test_a_slow_disk_is_reported() -> None:
    assert "only 50 % of the least that such a device delivers" in words(look("hdd-7200", depth_1=37.0), "class")


def test_a_disk_that_is_too_good_has_a_cache_or_another_class() -> None:
    assert "times the most that such a device delivers" in words(look("hdd-7200", depth_1=5000.0, peak=9000.0), "class")


def test_a_virtual_disk_has_no_class_figures_and_says_why() -> None:
    found = look("virtual")
    assert found.comparison == []
    assert "its host and its provider's limits" in words(found, "class")


def test_a_device_of_no_known_class_is_compared_with_nothing() -> None:
    assert "is unknown" in words(look(None), "class")


def test_the_end_of_a_disk_is_compared_with_its_start() -> None:
    assert "the end reaches 50 % of the start" in words(look("hdd-7200"), "first against last part")
    assert "as fast as the start" in words(look("ssd-sata", last=1.0), "first against last part")


def test_throughput_that_stopped_growing_on_a_busy_device_is_the_devices_limit() -> None:
    assert look("hdd-7200").limit == "device"


def test_a_run_that_an_error_ended_names_no_limit() -> None:
    fine = quiet_read(160.0, mean_ms=100.0)
    failed = EndedByError(errno=5, op="read", offset=0, len=4096)
    found = look("hdd-7200", top=replace(fine, figures=replace(fine.figures, ended_by=failed)))
    assert found.limit == "unknown"
    assert "was not measured" in words(found, "limit")


def test_memory_that_compresses_is_limited_by_the_cpu() -> None:
    top = quiet_read(160.0, mean_ms=100.0)
    top = replace(top, target=replace(top.target, detail={**top.target.detail, "class": "zram"}))
    assert look("zram", top=top).limit == "cpu"


def test_throughput_that_still_grew_reached_no_limit() -> None:
    assert look("hdd-7200", levelled_off=False).limit == "unknown"


def test_a_worker_that_never_waits_makes_the_cpu_the_limit() -> None:
    run = quiet_read()
    busy = replace(run, figures=replace(run.figures, generator=replace(run.figures.generator, busiest_worker=0.99)))
    assert look("ssd-sata", top=busy).limit == "cpu"
    own = replace(busy, figures=replace(busy.figures, cpu=replace(busy.figures.cpu, user_ns=9 * 10**9)))
    assert look("ssd-sata", top=own).limit == "generator"


def test_bytes_that_no_device_moved_make_a_cache_the_limit() -> None:
    found = look("hdd-7200", top=record(figures(stream(op(16_000.0))), devices=[counters(0)], overrides=READ_ONLY))
    assert found.limit == "cache"
    assert any(finding.level is Level.INVALID for finding in found.findings)


def test_requests_that_wait_above_the_device_make_the_queue_the_limit() -> None:
    run = figures(stream(op(16_000.0)))
    shallow = counters(run.total_read_bytes, iostat={"%util": 99.0, "aqu-sz": 1.0})
    assert look("hdd-7200", top=record(run, devices=[shallow], overrides=READ_ONLY)).limit == "queue"


def test_steps_that_agree_to_a_percent_have_an_imposed_limit() -> None:
    step, run = named("random-read-rising", quiet_read(500.0, mean_ms=32.0))
    flat = Knee(points=points((1, 499, 2), (2, 500, 4), (4, 500, 8)), knee=1, levelled_off=True)
    found = findings_of(target("virtual"), [step], [run], flat, [])
    assert found.limit == "queue"
    assert "imposed" in words(found, "limit")


def test_every_class_has_either_sourced_figures_or_a_reason_why_not() -> None:
    for known in classes.catalogue().values():
        assert bool(known.figures) != bool(known.no_figures), known.key
        for figure, found in known.figures.items():
            assert figure in ("sequential_read", "random_read_depth1", "random_read_peak", "last_to_first")
            for point in found:
                assert point.value > 0
                assert len(point.drive) > 5
                assert len(point.source) > 10


def test_computed_access_rates_follow_from_their_data_sheet_times() -> None:
    import re

    checked = 0
    for known in classes.catalogue().values():
        for point in known.figures.get("random_read_depth1", ()):
            if point.computed:
                times = [float(text) for text in re.findall(r"([0-9.]+) ms", point.source)]
                assert point.value == pytest.approx(1000 / sum(times), rel=0.01), point
                checked += 1
    assert checked >= 5


# --- the class of a device


def device(root: Path, name: str, where: str, **files: str) -> tuple[Device, Machine]:
    machine = Machine(sys=root / "sys", proc=root / "proc", dev=root / "dev")
    sysfs = root / "sys/devices" / where / name
    sysfs.mkdir(parents=True)
    for path, text in files.items():
        place = sysfs / path.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n")
    found = Device(name=name, dev=DevNumber(8, 0), kind="disk", size_bytes=1, sysfs=sysfs)
    return found, machine


@pytest.mark.parametrize(
    ("speed", "key"),
    [("8.0 GT/s PCIe", "nvme-pcie3"), ("16.0 GT/s PCIe", "nvme-pcie4"), ("32.0 GT/s PCIe", "nvme-pcie5"), ("?", None)],
)
def test_an_nvme_drive_is_of_the_class_of_its_link(speed: str, key: str | None, tmp_path: Path) -> None:
    found, machine = device(
        tmp_path, "nvme0n1", "pci0000:00/0000:01:00.0/nvme/nvme0", device__device__current_link_speed=speed
    )
    assert classes.class_of(found, machine) == key


@pytest.mark.parametrize(
    ("rpm", "key"), [(5400, "hdd-5400"), (5900, "hdd-5400"), (7200, "hdd-7200"), (15000, "hdd-15000")]
)
def test_a_disk_is_of_the_class_of_its_rotation_as_udev_read_it(rpm: int, key: str, tmp_path: Path) -> None:
    found, machine = device(tmp_path, "sda", "pci0000:00/ata1/host0/block")
    database = tmp_path / "run/udev/data/b8:0"
    database.parent.mkdir(parents=True)
    database.write_text(f"S:disk/by-id/x\nE:ID_ATA_ROTATION_RATE_RPM={rpm}\n")
    assert classes.class_of(replace_device(found, rotational=True), machine) == key


def replace_device(found: Device, **changes: Any) -> Device:
    import dataclasses

    return dataclasses.replace(found, **changes)


def test_a_disk_whose_rotation_nobody_read_has_no_class(tmp_path: Path) -> None:
    found, machine = device(tmp_path, "sda", "pci0000:00/ata1/host0/block")
    assert classes.class_of(replace_device(found, rotational=True), machine) is None


def test_a_sata_drive_that_does_not_rotate_is_an_ssd(tmp_path: Path) -> None:
    found, machine = device(tmp_path, "sda", "pci0000:00/ata1/host0/block")
    assert classes.class_of(replace_device(found, rotational=False), machine) == "ssd-sata"


@pytest.mark.parametrize(
    ("name", "where", "model"),
    [
        ("vda", "pci0000:00/virtio0/block", None),
        ("sda", "pci0000:00/ata1/host0/block", "QEMU HARDDISK"),
        ("nvme0n1", "pci0000:00/nvme/nvme0", "Amazon Elastic Block Store"),
    ],
)
def test_a_disk_that_a_hypervisor_made_up_is_virtual_whatever_it_says_of_itself(
    name: str, where: str, model: str | None, tmp_path: Path
) -> None:
    found, machine = device(tmp_path, name, where)
    assert classes.class_of(replace_device(found, rotational=True, model=model), machine) == "virtual"


@pytest.mark.parametrize(
    ("kind", "key"), [("loop", "loop"), ("zram", "zram"), ("md", "array"), ("dm", "array"), ("nbd", "network")]
)
def test_a_device_that_is_not_a_drive_has_a_separate_class(kind: str, key: str, tmp_path: Path) -> None:
    found, machine = device(tmp_path, f"{kind}0", "virtual/block")
    assert classes.class_of(replace_device(found, kind=kind), machine) == key


def test_the_queue_depth_is_the_drives_own_or_that_of_its_tags(tmp_path: Path) -> None:
    scsi, machine = device(tmp_path, "sda", "ata1", device__queue_depth="32")
    assert classes.queue_depth(scsi, machine) == 32
    tags, machine = device(tmp_path, "nvme0n1", "nvme0", mq__0__nr_tags="1023", mq__1__nr_tags="1023")
    assert classes.queue_depth(tags, machine) == 2046
    neither, machine = device(tmp_path, "loop0", "virtual")
    assert classes.queue_depth(neither, machine) is None
