"""`spindle run` on modelled machines: the same verbs, the same record, the same bytes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import spindle as package
from spindle import _core
from spindle.result.document import decode
from spindle.result.record import KneeRecord, Level, RunRecord
from tests.program import spindle

F2 = ("randomio", "six-sata-f2", "--workers", "48", "--size", "64KiB")


def test_the_six_drive_example_is_within_15_percent_of_what_was_measured() -> None:
    done = spindle("run", *F2, "--seconds", "120", "--json")
    assert done.status == 0, done.err
    record = decode(done.out.encode(), "stdout")
    assert isinstance(record, RunRecord)
    assert record.figures.iops == pytest.approx(454.6, rel=0.15)
    assert record.target.kind == "model"
    assert record.level is not Level.INVALID


def test_the_same_run_gives_the_same_bytes() -> None:
    first, second = (spindle("run", *F2, "--json").out for _ in range(2))
    assert first
    assert first == second
    other = spindle("run", *F2, "--seed", "2", "--json").out
    assert json.loads(other)["id"] != json.loads(first)["id"]


def test_any_number_of_threads_gives_the_same_bytes() -> None:
    machine = _core.Machine.parse(_core.machine_text("six-sata-raid5"), "six-sata-raid5")
    loads = [
        _core.Workload.parse(_core.preset_text("randomio"), "preset", "randomio", [("seed", str(seed))])
        for seed in range(6)
    ]
    runs = [(machine, load) for load in loads]
    assert _core.simulate_many(runs, threads=1) == _core.simulate_many(runs, threads=2)


def test_the_knee_is_found_on_a_model() -> None:
    done = spindle("run", "oltp", "one-sata", "--find-knee", "--json")
    record = decode(done.out.encode(), "stdout")
    assert isinstance(record, KneeRecord)
    assert record.sweep.levelled_off
    assert record.sweep.knee is not None
    assert 8 <= record.sweep.knee <= 64


def test_the_trace_holds_every_command(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = spindle("run", "randomio", "six-sata-raid5", "--seconds", "5", "--trace", out, "--json")
    record = decode(done.out.encode(), "stdout")
    assert isinstance(record, RunRecord)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    served = sum(drive.delta["reads"] + drive.delta["writes"] + drive.delta["flushes"] for drive in record.devices)
    assert len(rows) == served
    for row in rows[:1000]:
        parts = ("queue_ns", "overhead_ns", "seek_ns", "rotation_ns", "transfer_ns")
        assert sum(int(row[part]) for part in parts) == int(row["total_ns"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[queue]\nschedular = 'cfq'\n[[drive]]\nmodel = 'WD10EACS'\n", "bad.toml:2: unknown key `schedular`"),
        ("[array]\nlevel = 'raid5'\nchunk = '48KiB'\n[[drive]]\nmodel = 'WD10EACS'\ncount = 4\n", "bad.toml:3: "),
        ("[array]\nlevel = 'raid6'\n[[drive]]\nmodel = 'WD10EACS'\ncount = 3\n", "bad.toml:2: "),
        ("[[drive]]\nmodel = 'WD10EACS'\nregion = '0-2TB'\n", "bad.toml:3: "),
    ],
)
def test_bad_machine_files_are_one_line_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    done = spindle("run", "randomio", "bad.toml", cwd=tmp_path)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert words in done.err


@pytest.mark.promise(26)
@pytest.mark.parametrize(
    "path", ["foo/bar/six-sata-f2.toml", "machines/six-sata-f2.toml", "six-sata-f2.toml", "./six-sata-f2"]
)
def test_a_path_is_never_taken_for_a_name_of_the_catalogue(tmp_path: Path, path: str) -> None:
    done = spindle("run", "randomio", path, "--seconds", "1", cwd=tmp_path)
    assert done.status in (1, 2)
    assert path in done.complaint
    assert done.out == ""


@pytest.mark.promise(26)
def test_a_job_file_runs_on_a_machine_of_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[reads]\nrw=randread\nsize=1g\ndirect=1\nruntime=5\n")
    done = spindle("run", "job.fio", "one-sata", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "HDS725050KLA360" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("randomio", "one-sata", "--buffered", "--mapped"), "mapping"),
        (("randomio", "nowhere/machine.toml"), "no such file"),
        (("randomio", "six-sata-f2.toml"), "the catalogue's is `six-sata-f2`"),
        (("randomio", "one-sata", "--create", "1GiB"), "--create"),
        (("randomio", "one-sata", "--erase", "/dev/sda"), "--erase"),
        (("randomio", "null:1GiB", "--trace", "x.csv"), "--trace"),
    ],
)
def test_what_makes_no_sense_on_a_model_is_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = spindle("run", *arguments, cwd=tmp_path)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert words in done.err


def test_python_runs_models_too() -> None:
    simulated = package.simulate("seeker", "one-sata", seconds=30)
    assert 60 < simulated.run.iops < 90
    assert simulated.drives[0].reads >= simulated.run.requests
    machine = package.Machine.parse("[[drive]]\nmodel = 'ST3600057SS'\n", "mine.toml")
    faster = package.simulate("seeker", machine, seconds=30)
    assert faster.run.iops > 1.5 * simulated.run.iops
    with pytest.raises(_core.ConfigError, match="mapping"):
        package.simulate("randomio", machine, direct=False, mapped=True)


def test_buffered_streams_are_compared_with_what_the_page_cache_moved() -> None:
    often = package.run("randomio", "one-sata", direct=False, write_fraction=0, region="0-64MiB", requests=100_000)
    share = next(verdict for verdict in often.verdicts if verdict.check == "cache-share")
    assert share.level is Level.INVALID
    assert share.numbers["device_bytes"] <= 65 << 20  # read-ahead goes beyond the region
    once = package.run("randomio", "one-sata", direct=False, write_fraction=0, seconds=60)
    assert next(verdict for verdict in once.verdicts if verdict.check == "cache-share").level is Level.OK
    direct = package.run("randomio", "one-sata", seconds=1)
    assert not [verdict for verdict in direct.verdicts if verdict.check == "cache-share"]
