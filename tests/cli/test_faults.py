"""Injected faults: each one clear line, figures up to then kept and marked, exit status 1."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from spindle.result.document import decode
from spindle.result.record import RunRecord
from tests.program import Amid, Ended, Invoke
from tests.workbench import DETACH_LOOP, Workbench

MIB = 1 << 20


def random_image(bench: Workbench, size: int = 64 * MIB) -> Path:
    image = bench.image(size)
    image.write_bytes(os.urandom(size))
    return image


def interrupted_by_error(found: Ended, saved: Path) -> RunRecord:
    assert found.status == 1, found
    assert re.match(r"spindle: \S+: read of 4 KiB at byte \d+ failed with EIO", found.complaint)
    assert "invalid interrupted: read of 4 KiB at byte" in found.out
    assert "the figures are partial" in found.out
    record = decode(saved.read_bytes(), str(saved))
    assert isinstance(record, RunRecord)
    assert record.figures.requests > 0
    return record


def test_a_backing_file_that_is_truncated_under_its_loop_device(
    bench: Workbench, invoke: Invoke, amid: Amid, here: Path
) -> None:
    image = random_image(bench)
    device = bench.loop(image)
    amid(lambda: os.truncate(image, MIB))
    interrupted_by_error(invoke("run", "seeker", device, "--seconds", "30", "-o", "r.json"), here / "r.json")


def test_a_device_that_shrinks_is_named_as_such(bench: Workbench, invoke: Invoke, amid: Amid) -> None:
    image = random_image(bench)
    device = bench.loop(image)

    def shrink() -> None:
        os.truncate(image, MIB)
        subprocess.run(["losetup", "-c", device], check=True)

    amid(shrink)
    found = invoke("run", "seeker", device, "--seconds", "1", "--tolerate-errors")
    assert found.status == 1
    assert re.search(r"invalid target: /dev/loop\d+ changed its size from .* to .*", found.out)


def test_errors_that_are_tolerated_are_counted_and_judged(bench: Workbench, invoke: Invoke, amid: Amid) -> None:
    image = random_image(bench)
    device = bench.loop(image)
    amid(lambda: os.truncate(image, 32 * MIB))
    found = invoke("run", "seeker", device, "--seconds", "1", "--tolerate-errors")
    assert found.status == 1
    assert re.search(r"invalid errors: .* % of the requests failed \(\d+ x read: EIO", found.out)
    assert "invalid interrupted" not in found.out


def test_a_detached_loop_device_exists_until_the_end_of_the_run(bench: Workbench, invoke: Invoke, amid: Amid) -> None:
    """The kernel detaches it when its last user closes it (LO_FLAGS_AUTOCLEAR), so no request fails."""
    device = bench.loop(random_image(bench))
    amid(lambda: subprocess.run([*DETACH_LOOP, device], check=True))
    found = invoke("run", "seeker", device, "--seconds", "1")
    assert found.status in (0, 1)
    assert "Traceback" not in found.err
    assert "Results:" in found.out
    assert not Path(f"/sys/block/{device.rpartition('/')[2]}/loop").exists()


def test_a_file_system_that_fills_up_while_the_test_file_is_written(
    bench: Workbench, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = bench.loop(size=16 * MIB)
    bench.run("mkfs.ext4", "-q", device)
    point = bench.mount(device)
    # Somebody else takes the space between the check and the writing.
    monkeypatch.setattr("spindle.host.testfile._check_space", lambda *_: None)
    found = invoke("run", "randomio", str(point / "t.bin"), "--create", "64MiB", "--seconds", "1")
    assert found.status == 1
    assert "full" in found.complaint
    assert sorted(path.name for path in point.iterdir()) == ["lost+found"]


def test_the_last_of_a_file_system_is_never_taken(bench: Workbench, invoke: Invoke) -> None:
    device = bench.loop(size=32 * MIB)
    bench.run("mkfs.ext4", "-q", device)
    point = bench.mount(device)
    found = invoke("run", "randomio", str(point / "t.bin"), "--create", "26MiB", "--seconds", "1")
    assert found.status == 3
    assert "file system" in found.complaint
    assert sorted(path.name for path in point.iterdir()) == ["lost+found"]


def test_a_mounted_device_is_not_written_with_any_consent(bench: Workbench, invoke: Invoke) -> None:
    device = bench.loop(size=32 * MIB)
    bench.run("mkfs.ext4", "-q", device)
    bench.mount(device)
    options = ["--erase", device, "--erase-signature", "ext4", "--erase-stacked", "--erase-shared", "--yes"]
    found = invoke("run", "randomio", device, *options)
    assert found.status == 3
    assert "mounted" in found.complaint


def test_an_empty_device_that_is_named_is_written(bench: Workbench, invoke: Invoke) -> None:
    device = bench.loop()
    unconfirmed = invoke("run", "sdd-write", device, "--erase", device, "--seconds", "0.5")
    assert unconfirmed.status == 3
    assert f"All data on {device} will be lost" in unconfirmed.complaint
    found = invoke("run", "sdd-write", device, "--erase", device, "--yes", "--seconds", "0.5")
    assert found.status == 0, found
    with open(device, "rb") as opened:
        assert any(opened.read(MIB))
