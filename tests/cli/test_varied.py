"""`--vary`: one workload with each combination of values, in one record."""

from __future__ import annotations

import json
import os
import shlex
import signal
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest

from spindle.report.document.recipe import recipe_of
from spindle.report.terminal.page import page
from spindle.report.terminal.progress import SparseLines
from spindle.report.terminal.style import Style
from spindle.result.document import decode, encode, schema
from spindle.result.record import Level, PhasesRecord, Variation
from spindle.result.workload import FixedSize
from spindle.run.errors import Usage
from spindle.run.varied import combinations, parse
from spindle.run.watch import Moment
from spindle.stats.metric import values
from tests.program import Invoke
from tests.workbench import Workbench

KIB, MIB = 1 << 10, 1 << 20
QUICK = ("run", "seeker", "null:64MiB", "--seconds", "0.1")


def record_of(out: str) -> PhasesRecord:
    found = decode(out.encode(), "stdout")
    assert isinstance(found, PhasesRecord)
    return found


def test_each_combination_runs_once_and_the_last_key_changes_fastest(invoke: Invoke) -> None:
    found = record_of(invoke(*QUICK, "--vary", "depth=1,4", "--vary", "size=4KiB,64KiB", "--json").out)
    asked = [(1, 4 * KIB), (1, 64 * KIB), (4, 4 * KIB), (4, 64 * KIB)]
    ran = [run.workload.streams[0] for run in found.runs]
    assert [(stream.depth, stream.size.bytes) for stream in ran if isinstance(stream.size, FixedSize)] == asked
    assert [phase.varied for phase in found.phases] == list(combinations(found.varied))
    assert [phase.run for phase in found.phases] == [run.id for run in found.runs]
    assert len({phase.label for phase in found.phases}) == 4
    assert found.workload.streams[0].depth == 1  # as it is where nobody varies it


def test_the_table_has_a_row_and_the_metrics_a_name_for_each(invoke: Invoke, here: Path) -> None:
    done = invoke(*QUICK, "--vary", "depth=1,4", "--vary", "size=4KiB,64KiB", "-o", "v.json")
    rows = [line.split()[:3] for line in done.out.splitlines() if " read " in line]
    assert rows == [[depth, size, "read"] for depth in "14" for size in ("4KiB", "64KiB")]
    assert "4 of 4 combinations of depth x size" in done.out
    found = values(record_of(invoke("show", "v.json", "--json").out))
    assert "seeker@depth=4+size=64KiB/iops" in found


def test_iozones_matrix_is_one_table_and_every_file_is_of_its_size(invoke: Invoke, here: Path) -> None:
    done = invoke("run", "iozone", ".", "--vary", "filesize=1MiB,2MiB", "--vary", "size=4KiB..8KiB", "--json")
    found = record_of(done.out)
    shown = [line.split() for line in page(found, Style())]
    rows = [cells for cells in shown if len(cells) == 10 and cells[0].isdigit()]
    assert [(int(cells[0]), int(cells[1])) for cells in rows] == [
        (size, record) for size in (1024, 2048) for record in (4, 8)
    ]
    for phase, run in zip(found.phases, found.runs, strict=True):
        size = int(phase.varied["filesize"].removesuffix("MiB")) * MIB
        record = int(phase.varied["size"].removesuffix("KiB")) * KIB
        laps = size // record if phase.name != "stride-read" else -(-(size // record) // 17)
        assert run.figures.requests == laps
        assert run.target.size_bytes == size
    assert not list(here.glob("spindle-test-*"))


def test_workloads_with_a_table_of_their_own_show_it_for_each_combination(invoke: Invoke, here: Path) -> None:
    done = invoke("run", "metadata", ".", "--nrfiles", "50", "--directories", "5", "--vary", "workers=1,2")
    assert done.status == 0, done
    heads = [at for at, line in enumerate(done.out.splitlines()) if line in ("workers 1", "workers 2")]
    assert len(heads) == 2
    tables = [at for at, line in enumerate(done.out.splitlines()) if line.startswith("phase ")]
    assert heads[0] < tables[0] < heads[1] < tables[1]


def test_the_record_fits_the_schema_and_is_shown_stored_compared_and_reported(invoke: Invoke, here: Path) -> None:
    varied = ("--vary", "depth=1,4")
    for name in ("a.json", "b.json"):
        assert invoke(*QUICK, *varied, "-o", name, "--store", "s.db").status == 0
    text = (here / "a.json").read_bytes()
    jsonschema.Draft202012Validator(schema("result")).validate(json.loads(text))
    assert encode(decode(text, "a.json")) == text
    compared = invoke("compare", "a.json", "b.json")
    assert compared.status == 0, compared
    assert "seeker@depth=4/iops" in compared.out
    listed = json.loads(invoke("store", "ls", "--store", "s.db", "--json").out)
    assert [(row["kind"], row["workload"]) for row in listed] == [("phases", "seeker")] * 2
    for ending in ("html", "md", "csv", "json"):
        done = invoke("report", "a.json", "--output", f"r.{ending}")
        assert done.status == 0, done
    assert len(json.loads(invoke("show", "a.json", "--output-format", "fio-json").out)["jobs"]) == 2


def test_the_recipe_of_combinations_gives_the_same_runs(invoke: Invoke) -> None:
    found = record_of(invoke(*QUICK, "--vary", "size=4KiB:70,64KiB:30;8KiB", "--json").out)
    recipe = recipe_of(found)
    assert recipe is not None
    again = record_of(invoke(*shlex.split(recipe.command)[1:], "--json").out)
    assert again.varied == found.varied == [Variation(key="size", values=["4KiB:70,64KiB:30", "8KiB"])]
    assert [run.workload for run in again.runs] == [run.workload for run in found.runs]


def test_a_modelled_machine_is_varied_as_well(invoke: Invoke) -> None:
    done = invoke("run", "randomio", "six-sata-f2", "--seconds", "5", "--vary", "workers=1..16", "--json")
    rates = [phase.iops for phase in record_of(done.out).phases]
    assert len(rates) == 5
    assert all(before < after for before, after in pairwise(rates))


def test_a_combination_that_does_not_fit_its_file_is_left_out_and_reported(invoke: Invoke, here: Path) -> None:
    done = invoke("run", "iozone", ".", "--vary", "filesize=64KiB,1MiB", "--vary", "size=4KiB,128KiB", "-o", "r.json")
    assert done.status == 0, done
    assert "combinations: 3 of 4 combinations could be carried out; left out: filesize=64KiB, size=128KiB" in done.out
    found = decode((here / "r.json").read_bytes(), "r.json")
    assert found.level is Level.WARN
    none = invoke("run", "iozone", ".", "--vary", "filesize=64KiB,32KiB", "--vary", "size=128KiB,256KiB")
    assert (none.status, none.out) == (2, "")
    assert "hold no request" in none.complaint


def test_ctrl_c_keeps_finished_combinations_and_leaves_no_file(
    invoke: Invoke, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []

    def in_the_second(self: SparseLines, text: str) -> None:
        if text.startswith("2 of 3"):
            began.append(text)

    def stop(self: SparseLines, moment: Moment) -> None:
        if began and moment.phase == "measure":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SparseLines, "step", in_the_second)
    monkeypatch.setattr(SparseLines, "moment", stop)
    done = invoke(
        "run", "seeker", "t.bin", "--create", "8MiB", "--seconds", "1", "--vary", "depth=1,2,4", "-o", "r.json"
    )
    assert began == ["2 of 3: depth=2"]
    assert done.status == 1, done
    assert "invalid interrupted: depth=2: stopped" in done.out
    assert "1 of 3 combinations are complete" in " ".join(done.out.split())
    found = decode((here / "r.json").read_bytes(), "r.json")
    assert isinstance(found, PhasesRecord)
    assert [phase.varied for phase in found.phases] == [{"depth": "1"}, {"depth": "2"}]
    assert not (here / "t.bin").exists()


def test_a_device_is_written_with_one_consent(invoke: Invoke, bench: Workbench) -> None:
    device = bench.loop(size=16 * MIB)
    write = ("run", "seeker", str(device), "--write-fraction", "1", "--seconds", "0.1", "--vary", "depth=1,2", "--json")
    assert invoke(*write).status == 3
    found = record_of(invoke(*write, "--erase", str(device), "--yes").out)
    assert all(run.figures.total_write_bytes > 0 for run in found.runs)


@pytest.mark.parametrize("region", ["0%-100%", "50%-100%"])
def test_a_signature_is_named_once_whether_or_not_the_first_run_wrote_over_it(
    invoke: Invoke, bench: Workbench, region: str
) -> None:
    device = bench.loop(size=16 * MIB)
    bench.run("mkfs.ext4", "-q", device)
    write = ("run", "sdd-write", str(device), "--seconds", "0.2", "--region", region, "--vary", "depth=1,2", "--json")
    found = record_of(invoke(*write, "--erase", str(device), "--erase-signature", "ext4", "--yes").out)
    assert [phase.varied["depth"] for phase in found.phases] == ["1", "2"]
    assert found.verdicts[0].check == "combinations"


def test_values_are_lists_ranges_and_lists_of_lists() -> None:
    assert parse(["depth=1..8"]) == [Variation(key="depth", values=["1", "2", "4", "8"])]
    assert parse(["size=3KiB..20KiB,1MiB"]) == [Variation(key="size", values=["3KiB", "6KiB", "12KiB", "1MiB"])]
    assert parse(["size= 4KiB , 4KiB,8KiB"]) == [Variation(key="size", values=["4KiB", "8KiB"])]
    assert parse(["direct=true,false", "log.priority=idle,best-effort:4"]) == [
        Variation(key="direct", values=["true", "false"]),
        Variation(key="log.priority", values=["idle", "best-effort:4"]),
    ]


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (["depth"], "'depth' is not KEY=VALUE,VALUE"),
        (["=1,2"], "'=1,2' is not KEY=VALUE,VALUE"),
        (["depth="], "'depth=' is not KEY=VALUE,VALUE"),
        (["depth=1,,2"], "depth has an empty value in '1,,2'"),
        (["depth=1,2", "depth=4,8"], "depth is varied twice"),
        (["depth=8..1"], "begin with the smaller"),
        (["depth=0..8"], "begin with the smaller"),
        (["depth=1..x"], "depth: 1..x is no range"),
        (["size=4KiB:70,64KiB:30"], "separate them by ;"),
        (["depth=1..1024", "workers=1..1024", "size=1..1024"], "1331 combinations are too many"),
    ],
)
def test_a_wrong_list_of_values_is_reported(given: list[str], reported: str) -> None:
    with pytest.raises(Usage, match="`vary=`: ") as raised:
        parse(given)
    assert reported in str(raised.value)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["--vary", "depht=1,2"], "unknown key `depht`; did you mean `depth`?"),
        (["--vary", "depth=1,many"], "--depth: expected a whole number from 1 to 65536, found `many`"),
        (["--vary", "depth=1,2", "--find-knee"], "--vary: --find-knee is many runs already"),
        (["--vary", "depth=1,2", "--log", "l.csv"], "leave --log out"),
    ],
)
def test_a_wrong_variation_is_one_line_before_the_first_run(invoke: Invoke, options: list[str], reported: str) -> None:
    done = invoke(*QUICK, *options)
    assert (done.status, done.out) == (2, "")
    assert reported in done.complaint
    assert len(done.complaint.splitlines()) == 1
