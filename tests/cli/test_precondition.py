"""Flash is filled twice and written at random until steady before it is measured, behind the guard of any write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from spindle.result.document import decode
from spindle.result.record import Level, Precondition, RunRecord
from spindle.result.rules import judged
from spindle.run import classes, precondition
from spindle.run.precondition import Preconditioning
from spindle.run.resolve import resolve
from tests.cli.records import quiet_read
from tests.program import Invoke
from tests.workbench import Workbench

MIB = 1 << 20
QUICKLY = ("--precondition-time", "1s", "--seconds", "0.5")
"""Too short to be steady: what is tested is what is done."""


def preconditioned(invoke: Any, here: Path, *options: str) -> RunRecord:
    ended = invoke("run", *options, "--precondition", *QUICKLY, "-o", "r.json", "-q")
    assert (here / "r.json").exists(), ended.err
    found = decode((here / "r.json").read_bytes(), "r.json")
    assert isinstance(found, RunRecord)
    return found


def test_a_test_file_is_filled_twice_and_written_at_random_by_the_workload_itself(invoke: Invoke, here: Path) -> None:
    found = preconditioned(invoke, here, "randomio", "t.bin", "--create", "8MiB", "--workers", "2")
    done = found.preparation.precondition
    assert done is not None
    assert (done.region_bytes, done.passes, done.fill_bytes) == (8 * MIB, 2, 16 * MIB)
    assert done.load == "the workload itself"
    assert done.load_bytes > 0
    assert done.steady is False
    assert "preconditioned" in [each.check for each in found.verdicts]


def test_a_reading_workload_is_preceded_by_random_writes_in_its_region(
    bench: Workbench, invoke: Invoke, here: Path
) -> None:
    image = bench.image(16 * MIB)
    device = bench.loop(image)
    found = preconditioned(
        *(invoke, here, "seeker", device, "--erase", device, "--erase-stacked", "--yes", "--region", "0MiB-8MiB"),
    )
    done = found.preparation.precondition
    assert done is not None
    assert (done.region_bytes, done.fill_bytes, done.load) == (8 * MIB, 16 * MIB, "random writes of 4 KiB")
    assert found.figures.total_write_bytes == 0
    content = image.read_bytes()
    assert content[8 * MIB :] == bytes(8 * MIB)
    assert all(any(content[at : at + MIB]) for at in range(0, 8 * MIB, MIB))


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ("seeker null:1GiB --precondition", 2, "keeps nothing"),
        ("seeker one-sata --precondition", 2, '`state = "used"`'),
        ("seeker f.bin --precondition", 3, "is not a file that Spindle made"),
        ("seeker f.bin --precondition-time 3m", 2, "--precondition"),
        ("seeker f.bin --precondition --precondition-time soon", 2, "--precondition-time"),
        ("seeker f.bin --precondition --precondition-time 0s", 2, "above 0"),
    ],
)
def test_a_target_that_cannot_be_preconditioned_is_one_line(
    arguments: str, status: int, says: str, invoke: Invoke, here: Path
) -> None:
    (here / "f.bin").write_bytes(bytes(MIB))
    ended = invoke("run", *arguments.split())
    assert (ended.status, ended.err.count("\n")) == (status, 1), ended.err
    assert says in ended.err
    assert (here / "f.bin").read_bytes() == bytes(MIB)


def test_a_device_is_not_preconditioned_without_consent(bench: Workbench, invoke: Invoke) -> None:
    device = bench.loop(bench.image(8 * MIB))
    ended = invoke("run", "seeker", device, "--precondition")
    assert ended.status == 3
    assert "--erase" in ended.err


class Turning:
    """An open target on a disk that turns."""

    def __init__(self) -> None:
        self.device = object()
        self.said: list[str] = []
        self.watch = self

    def say(self, text: str) -> None:
        self.said.append(text)


def test_a_rotating_disk_needs_none_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Turning()
    opened.device = type("Disk", (), {"name": "sda"})()
    monkeypatch.setattr(classes, "is_rotating", lambda device: True)
    done = precondition.carry_out(opened, Preconditioning(), resolve("randomio"))  # type: ignore[arg-type]
    assert "rotating" in done.skipped
    assert done.steady is None
    assert "`precondition_anyway=`" in opened.said[0]


def test_flash_that_did_not_become_steady_is_warned_about() -> None:
    done = Precondition(region_bytes=MIB, passes=2, fill_bytes=2 * MIB, load="the workload itself", load_seconds=1500.0)
    record = quiet_read()
    prepared = replace(record.preparation, precondition=replace(done, steady=False))
    found = next(
        each for each in judged(replace(record, preparation=prepared)).verdicts if each.check == "preconditioned"
    )
    assert found.level is Level.WARN
    assert "25 min" in found.evidence
