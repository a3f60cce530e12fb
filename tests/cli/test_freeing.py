"""Discards and zeroings go through to the device: blocks are freed, figures and counters agree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from spindle.result.document import decode
from spindle.result.record import Level, RunRecord
from tests.program import Invoke
from tests.workbench import Workbench

MIB = 1 << 20
SIZE = 32 * MIB


def allocated(path: Path) -> int:
    os.sync()
    return path.stat().st_blocks * 512


@pytest.fixture
def filled(bench: Workbench) -> tuple[str, Path]:
    """A loop device over a file that is all there."""
    image = bench.image(SIZE)
    with image.open("r+b") as file:
        for _ in range(SIZE // MIB):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    device = bench.loop(image)
    queue = Path(f"/sys/block/{os.path.basename(device)}/queue")
    if int((queue / "discard_max_bytes").read_text()) == 0:
        pytest.skip("the file system of the image cannot punch holes")
    return device, image


def run(invoke: Any, here: Path, *options: str) -> RunRecord:
    ended = invoke("run", *options, "-o", "r.json", "-q")
    assert ended.status in (0, 1), ended.err
    assert (here / "r.json").exists(), ended.err
    found = decode((here / "r.json").read_bytes(), "r.json")
    assert isinstance(found, RunRecord)
    return found


def erased(device: str) -> tuple[str, ...]:
    return (device, "--erase", device, "--erase-stacked", "--yes")


def test_a_trimmed_device_gives_its_blocks_back(filled: tuple[str, Path], invoke: Invoke, here: Path) -> None:
    device, image = filled
    assert allocated(image) >= SIZE
    found = run(invoke, here, "trim", *erased(device), "--region", "0%-50%", "--bytes", "16MiB")
    assert allocated(image) <= SIZE // 2 + MIB
    trim = found.figures.streams[0].trim
    assert trim is not None
    assert trim.bytes == 16 * MIB
    assert found.devices[0].delta["discard_bytes"] >= 16 * MIB
    verdict = next(each for each in found.verdicts if each.check == "discards")
    assert verdict.level is Level.OK


def test_zeroes_are_read_back_and_nothing_else_is_touched(filled: tuple[str, Path], invoke: Invoke, here: Path) -> None:
    device, image = filled
    before = image.read_bytes()
    options = ("--write-fraction", "0", "--zero-fraction", "1", "--region", "8MiB-16MiB", "--bytes", "8MiB")
    found = run(invoke, here, "sdd-write", *erased(device), *options)
    zero = found.figures.streams[0].zero
    assert zero is not None
    assert zero.bytes == 8 * MIB
    os.sync()
    after = image.read_bytes()
    assert after[8 * MIB : 16 * MIB] == bytes(8 * MIB)
    assert after[: 8 * MIB] == before[: 8 * MIB]
    assert after[16 * MIB :] == before[16 * MIB :]
    assert not [each for each in found.verdicts if each.check == "cache-below" and "writes" in each.evidence]


def test_a_mix_has_figures_of_each_operation(filled: tuple[str, Path], invoke: Invoke, here: Path) -> None:
    device, _ = filled
    found = run(
        invoke,
        here,
        *("randomio", *erased(device), "--write-fraction", "0.3", "--trim-fraction", "0.2"),
        *("--zero-fraction", "0.2", "--requests", "2000", "--workers", "2"),
    )
    counts = {name: op.requests for name, op in found.figures.streams[0].ops()}
    assert set(counts) == {"read", "write", "trim", "zero"}
    assert sum(counts.values()) == 2000
    assert 250 < counts["trim"] < 550


def test_freeing_needs_the_consent_that_writing_does(filled: tuple[str, Path], invoke: Invoke) -> None:
    device, image = filled
    for option in ("--trim-fraction", "--zero-fraction"):
        ended = invoke("run", "seeker", device, option, "1", "--seconds", "0.1")
        assert ended.status == 3, ended.err
        assert "--erase" in ended.err
    assert allocated(image) >= SIZE
