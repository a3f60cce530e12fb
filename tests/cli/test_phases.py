"""Workloads of phases: one after another on one target, in one record."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import jsonschema
import pytest

from spindle.report.document.recipe import recipe_of
from spindle.report.terminal.progress import SparseLines
from spindle.result.document import decode, encode, schema
from spindle.result.record import Level, PhasesRecord
from spindle.result.workload import FixedSize
from spindle.run.resolve import resolve
from spindle.run.watch import Moment
from spindle.stats.metric import main_metrics, values
from tests.program import Invoke

TWO = """
table = "streams"
size = "64KiB"
seconds = "0.3"

[[phase]]
name = "fill"
write_fraction = 1
pattern = "sequential"
end_fsync = true

[[phase]]
name = "serve"
seconds = "0.2"

[[phase.stream]]
name = "readers"
workers = 2

[[phase.stream]]
name = "log"
size = "4KiB"
write_fraction = 1
"""


@pytest.fixture
def two(here: Path) -> str:
    (here / "two.toml").write_text(TWO)
    return "two.toml"


def record_of(out: str) -> PhasesRecord:
    found = decode(out.encode(), "stdout")
    assert isinstance(found, PhasesRecord)
    return found


def test_phases_run_one_after_another_on_one_file_which_is_gone_afterwards(
    invoke: Invoke, two: str, here: Path
) -> None:
    done = invoke("run", two, "t.bin", "--create", "8MiB", "--json")
    assert done.status == 0, done
    found = record_of(done.out)
    assert [phase.name for phase in found.phases] == ["fill", "serve"]
    assert [run.workload.name for run in found.runs] == ["fill", "serve"]
    assert [phase.run for phase in found.phases] == [run.id for run in found.runs]
    fill, serve = found.runs
    assert fill.figures.total_write_bytes > 0
    assert fill.figures.total_read_bytes == 0
    assert [stream.name for stream in serve.figures.streams] == ["readers", "log"]
    assert {run.target.size_bytes for run in found.runs} == {8 << 20}
    assert fill.started <= serve.started
    assert not (here / "t.bin").exists()


def test_the_figures_of_a_phase_are_those_of_its_run(invoke: Invoke, two: str) -> None:
    found = record_of(invoke("run", two, "null:1GiB", "--json").out)
    for phase, run in zip(found.phases, found.runs, strict=True):
        cpu_ns = run.figures.cpu.user_ns + run.figures.cpu.system_ns
        assert phase.cpu_percent == pytest.approx(100 * cpu_ns / run.figures.elapsed_ns)
        assert phase.seconds == pytest.approx(run.figures.elapsed_ns / 1e9)
        worst = [op.latency.max_ns for stream in run.figures.streams for _, op in stream.ops()]
        assert phase.max_latency_ns == max(worst)
        assert phase.bytes_per_s == run.figures.bytes_per_s
    assert found.level is Level.OK


def test_the_record_of_phases_matches_the_schema_and_reads_back_the_same(invoke: Invoke, two: str) -> None:
    done = invoke("run", two, "null:1GiB", "--json")
    jsonschema.Draft202012Validator(schema("result")).validate(json.loads(done.out))
    assert encode(record_of(done.out)) == done.out.encode()


def test_the_table_has_a_row_for_each_operation_of_each_phase(invoke: Invoke, two: str) -> None:
    done = invoke("run", two, "t.bin", "--create", "8MiB")
    table = re.split(r"^(?:warn|ok) ", done.out, flags=re.M)[0]
    rows = [line[:19].split() for line in table.splitlines() if re.match(r"(phase|fill|serve| {5,}\S)", line)]
    assert [[word for word in row if not word[0].isdigit()] for row in rows] == [
        ["phase", "op"],
        ["fill", "write"],
        ["fsync"],
        ["serve", "readers", "read"],
        ["log", "write"],
    ]
    assert "2 of 2 phases" in done.out


def test_a_saved_record_is_shown_reported_stored_and_compared(invoke: Invoke, two: str, here: Path) -> None:
    for name in ("a.json", "b.json"):
        assert invoke("run", two, "null:1GiB", "--output", name, "--store", "s.db").status == 0
    assert invoke("show", "a.json").out.startswith("two on null target of 1 GiB")
    assert [row["kind"] for row in json.loads(invoke("store", "ls", "--store", "s.db", "--json").out)] == ["phases"] * 2
    shown = invoke("compare", "a.json", "b.json")
    assert shown.status == 0, shown
    assert "fill/bytes_per_s" in shown.out
    assert "serve/iops" in shown.out
    assert invoke("check", "a.json", "--baseline", "a.json").status == 0
    counted = invoke("sql", "SELECT count(*) FROM runs", "--store", "s.db")
    assert "4" in counted.out
    for ending in ("html", "md", "csv", "json"):
        done = invoke("report", "a.json", "--output", f"r.{ending}")
        assert done.status == 0, done
        text = (here / f"r.{ending}").read_text()
        assert "fill" in text
        assert "serve" in text
    jobs = json.loads(invoke("show", "a.json", "--output-format", "fio-json").out)["jobs"]
    assert [(job["jobname"], job["groupid"]) for job in jobs] == [("fill", 0), ("readers", 1), ("log", 1)]


def test_metrics_are_named_by_phase_and_the_main_ones_are_the_phases_own(invoke: Invoke, two: str) -> None:
    found = values(record_of(invoke("run", two, "null:1GiB", "--json").out))
    assert {"fill/write.bytes_per_s", "fill/cpu_percent", "serve/log/write.iops", "serve/p99_ns"} <= found.keys()
    rates = ["fill/bytes_per_s", "serve/bytes_per_s"]
    tails = ["fill/write.p99_ns", "serve/read.p99_ns", "serve/write.p99_ns"]
    assert main_metrics(sorted(found)) == rates + tails


def test_the_recipe_of_phases_gives_the_same_workload(invoke: Invoke, two: str, here: Path) -> None:
    found = record_of(invoke("run", two, "null:1GiB", "--json").out)
    recipe = recipe_of(found)
    assert recipe is not None
    [(name, text)] = recipe.files
    assert recipe.command.startswith(f"spindle run {name} null:1GiB")
    (here / "again.toml").write_text(text)
    assert resolve("again.toml").spec.phases == found.workload.phases


def test_options_reach_one_phase(invoke: Invoke, two: str) -> None:
    done = invoke("run", two, "null:1GiB", "--set", "serve.log.size=8KiB", "--set", "fill.size=1MiB", "--json")
    sizes = [stream.size for run in record_of(done.out).runs for stream in run.workload.streams]
    assert sizes == [FixedSize(bytes=size) for size in (1 << 20, 64 << 10, 8 << 10)]


def test_a_modelled_machine_runs_phases(invoke: Invoke, here: Path) -> None:
    (here / "p.toml").write_text('seconds = 1\n[[phase]]\nname = "a"\n[[phase]]\nname = "b"\npattern = "sequential"\n')
    found = record_of(invoke("run", "p.toml", "one-sata", "--json").out)
    assert [phase.name for phase in found.phases] == ["a", "b"]
    assert found.phases[1].iops > 5 * found.phases[0].iops


@pytest.mark.parametrize(
    ("option", "reported"),
    [
        (["--find-knee"], "--find-knee: two is made of phases; give a workload of one load"),
        (["--set", "sevre.size=4KiB"], "--set sevre.size: unknown phase `sevre`; did you mean `serve`?"),
    ],
)
def test_wrong_combinations_with_phases_are_one_line(
    invoke: Invoke, two: str, option: list[str], reported: str
) -> None:
    done = invoke("run", two, "null:1GiB", *option)
    assert (done.status, done.complaint) == (2, f"spindle: {reported}")


def test_ctrl_c_keeps_the_finished_phases(
    invoke: Invoke, two: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []

    def in_the_second(self: SparseLines, moment: Moment) -> None:
        if "2/2" in moment.label and moment.phase == "measure" and not reported:
            reported.append(moment.label)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SparseLines, "moment", in_the_second)
    done = invoke(
        "run", two, "t.bin", "--create", "8MiB", "--set", "serve.seconds=500", "--output", "r.json", "--store", "s.db"
    )
    assert reported == ["two 2/2, serve"]
    assert done.status == 1, done
    assert "invalid interrupted: stopped in phase serve, 1 of 2 phases are complete -> run it again" in done.out
    found = decode((here / "r.json").read_bytes(), "r.json")
    assert isinstance(found, PhasesRecord)
    assert [phase.name for phase in found.phases] == ["fill", "serve"]
    assert [run.level is Level.INVALID for run in found.runs] == [False, True]
    assert not (here / "t.bin").exists()


def test_a_phase_that_cannot_start_ends_the_rest_and_keeps_the_finished_ones(
    invoke: Invoke, two: str, here: Path
) -> None:
    done = invoke(
        "run", two, "t.bin", "--create", "8MiB", "--set", "serve.readers.region=0%-0.1%", "--output", "r.json"
    )
    assert done.status == 1, done
    assert 'phase serve failed, 1 of 2 phases are complete: stream "readers": 8388 bytes' in done.complaint
    found = decode((here / "r.json").read_bytes(), "r.json")
    assert isinstance(found, PhasesRecord)
    assert [phase.name for phase in found.phases] == ["fill"]
    assert found.level is Level.INVALID
    assert not (here / "t.bin").exists()


def test_a_first_phase_that_cannot_start_is_one_line(invoke: Invoke, two: str, here: Path) -> None:
    done = invoke("run", two, "t.bin", "--create", "8MiB", "--set", "fill.region=0%-0.1%")
    assert done.status == 2
    assert 'stream "main": 8388 bytes' in done.complaint
    assert list(here.glob("t.bin")) == []


def test_pages_stay_cached_if_a_phase_says_so(invoke: Invoke, here: Path) -> None:
    (here / "p.toml").write_text(
        "direct = false\nsize = '64KiB'\npattern = 'sequential'\nbytes = '8MiB'\nseconds = 'none'\n"
        "[[phase]]\nname = 'cold'\n[[phase]]\nname = 'warm'\ndrop_caches = false\n[[phase]]\nname = 'again'\n"
    )
    found = record_of(invoke("run", "p.toml", "t.bin", "--create", "8MiB", "--json").out)
    assert [run.preparation.kept_pages for run in found.runs] == [False, True, False]
    fetched = [run.fetched_bytes for run in found.runs]
    if None in fetched or fetched[0] == 0:
        pytest.skip("what is read from devices is not counted here")
    assert fetched[1] == 0
    assert fetched[2] == fetched[0]
