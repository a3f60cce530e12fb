"""`spindle quick`: its steps, its words, what it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from spindle.library.predicting import beside_look, machine_of
from spindle.prediction.beside import Side
from spindle.report.terminal.page import page
from spindle.report.terminal.style import Style
from spindle.result.document import decode, encode, schema
from spindle.result.record import QuickRecord
from spindle.run.errors import RunFailed
from spindle.run.quick import Lengths, quick
from spindle.run.watch import SilentWatch
from tests.program import Invoke
from tests.workbench import Workbench

SHORT = Lengths(step_s=0.3, sweep_step_s=0.1, zone_s=0.2, file_bytes=32 << 20)


Look = tuple[QuickRecord, list[str]]
"""A record, and the files left in the directory."""


def look(target: str | None) -> QuickRecord:
    found = quick(target, SilentWatch(), lengths=SHORT)
    assert all(run.figures.requests for run in found.runs)
    return found


@pytest.fixture(scope="module")
def own_file(tmp_path_factory: pytest.TempPathFactory) -> Look:
    """A look with no target, and what it left in the directory."""
    folder = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        return look(None), [path.name for path in folder.iterdir()]


def topics(found: QuickRecord) -> list[str]:
    return [finding.topic for finding in found.assessment.findings]


def test_without_a_target_quick_makes_a_file_here_and_removes_it(own_file: Look) -> None:
    found, left = own_file
    assert left == []
    assert [step.name for step in found.steps] == ["sequential-read", "random-read", "random-read-rising", "mix"]
    assert topics(found)[:5] == ["sequential read", "random read", "rising concurrency", "read/write mix", "limit"]
    assert found.target.created
    assert any("first against last part" in text for text in found.skipped)
    assert found.sweep is not None
    assert found.sweep.points[0].outstanding == 1


def test_the_record_of_quick_matches_the_schema_and_reads_back_the_same(
    own_file: Look,
) -> None:
    found, _ = own_file
    jsonschema.Draft202012Validator(schema("result")).validate(json.loads(encode(found)))
    assert decode(encode(found), "q.json") == found


def test_a_file_that_is_given_is_only_read(here: Path) -> None:
    data = bytes(range(256)) * (4096 * 4)
    (here / "mine.bin").write_bytes(data)
    found = look("mine.bin")
    assert "mix" not in [step.name for step in found.steps]
    assert any("read/write mix" in text for text in found.skipped)
    assert (here / "mine.bin").read_bytes() == data


def test_a_device_is_only_read_and_its_two_ends_are_compared(
    bench: Workbench, content: Callable[..., str], here: Path
) -> None:
    image = bench.image()
    image.write_bytes(bytes(range(256)) * (32 << 12))
    device = bench.loop(image)
    before = content(device)
    found = look(device)
    assert [step.name for step in found.steps][-2:] == ["first-part", "last-part"]
    assert "first against last part" in topics(found)
    assert found.assessment.device_class == "loop"
    assert found.assessment.comparison == []
    assert content(device) == before


def test_the_page_fits_a_terminal(own_file: Look) -> None:
    found, _ = own_file
    for width in (60, 80, 120):
        assert max(len(line) for line in page(found, Style(width=width))) <= width


def test_without_room_for_a_test_file_it_says_so_and_makes_none(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    real = os.statvfs(here)

    class Full:
        f_blocks = 100_000
        f_bavail = 1000
        f_frsize = real.f_frsize

    monkeypatch.setattr("spindle.run.files.os.statvfs", lambda path: Full)
    with pytest.raises(RunFailed, match="free"):
        quick(None, SilentWatch())
    assert list(here.glob("*.bin")) == []


def test_a_missing_folder_is_an_error_of_one_line(invoke: Invoke, here: Path) -> None:
    ended = invoke("quick", "no/such/thing")
    assert ended.status == 2
    assert "no/such/thing" in ended.complaint


def test_each_step_is_put_beside_its_prediction(own_file: Look, tmp_path: Path) -> None:
    found, _ = own_file
    file = tmp_path / "slow.toml"
    file.write_text('[[drive]]\nservice = "20ms"\ncapacity = "1TiB"\nflush = "0s"\n')
    machine = machine_of(str(file), False, False)
    compared = beside_look(found, machine, False)
    assert [step.about for step in compared.steps] == [step.about for step in found.steps]
    # Whatever this machine has is faster.
    for step in compared.steps:
        assert step.run.operations
        assert {of.side for of in step.run.operations} == {Side.ABOVE}
        assert step.run.hints
    # One at a time, 20 ms each.
    [single] = compared.steps[1].run.operations
    assert single.predicted.value == pytest.approx(50, rel=0.1)
    lines = compared.page(Style())
    assert lines[0] == "measured beside predicted from its machine file"
    assert sum("above the band" in line for line in lines) == 5


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--predict", "nothing.toml"], "no such file"),
        (["--predict", "nothing.toml", "--json"], "leave --json out"),
        (["--calibrate"], "--calibrate needs --predict"),
    ],
)
def test_a_prediction_that_cannot_be_made_stops_before_the_look(
    invoke: Invoke, tmp_path: Path, options: list[str], complaint: str
) -> None:
    status, out, err = invoke("quick", str(tmp_path), *options)
    assert (status, out) == (2, "")
    assert complaint in err
    assert list(tmp_path.iterdir()) == []
