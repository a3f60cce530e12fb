"""`spindle store`, `spindle sql` and `--store`, as people use them."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.result.document import encode
from spindle.store import PlannedTrial, open_store
from tests.program import Ended
from tests.store.made import modelled, record

Invoke = Callable[..., Ended]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of our own, and a store in it with three results."""
    monkeypatch.delenv("SPINDLE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data/spindle/store.db"


@pytest.fixture
def filled(home: Path) -> Path:
    with open_store() as store:
        store.add_all([modelled(), record(1)], tags=["a"])
        store.add(record(2), tags=["b"])
    return home


def test_a_run_is_stored_with_its_tags_where_the_user_keeps_data(invoke: Invoke, home: Path) -> None:
    said = invoke("run", "randomio", "one-sata", "--seconds", "2", "-q", "--json", "--store", "--tag", "x")
    run_id = json.loads(said.out)["id"]
    assert f"stored as {run_id} in {home}" in said.err
    assert json.loads(invoke("store", "ls", "--json").out)[0]["tags"] == ["x"]
    assert invoke("store", "show", "tag:x", "--json").out == said.out


def test_a_store_that_cannot_be_written_is_an_error_before_the_run(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    said = invoke("run", "randomio", "one-sata", "--seconds", "2", "-q", "--store", "./text")
    assert said.status == 2
    assert "not a store" in said.complaint
    assert said.out == ""
    assert "add --store" in invoke("run", "randomio", "one-sata", "--tag", "x").complaint


def test_a_word_after_store_that_may_be_meant_for_something_else_is_not_taken_for_a_file(
    invoke: Invoke, tmp_path: Path
) -> None:
    said = invoke("run", "--store", "randomio", "one-sata")
    assert said.status == 2
    assert "put --store at the end" in said.complaint
    assert not (tmp_path / "randomio").exists()


def test_what_monitor_sees_is_recorded_interval_by_interval(invoke: Invoke, home: Path) -> None:
    said = invoke("monitor", "-n", "3", "-i", "0.05", "--cgroups", "0", "--json", "--store")
    assert said.status == 0
    assert "recorded as" in said.err
    reports = [json.loads(line) for line in said.out.splitlines()][:3]
    [line] = json.loads(invoke("store", "ls", "--recordings", "--json").out)
    assert (line["about"], line["interval_s"]) == ("monitor", 0.05)
    rows = json.loads(invoke("sql", "SELECT seconds, us, idle FROM machine_samples ORDER BY start_ns", "--json").out)
    assert len(rows) == len(reports) == 3
    devices = json.loads(invoke("sql", "SELECT count(*) AS n FROM iostat", "--json").out)
    assert devices == [{"n": line["samples"]}]
    assert invoke("store", "rm", f"recording:{line['id']}", "--yes").out == "1 recording removed\n"
    assert json.loads(invoke("sql", "SELECT count(*) AS n FROM samples", "--json").out) == [{"n": 0}]


def test_ls_prints_one_line_for_each_record_in_the_order_of_storing(invoke: Invoke, filled: Path) -> None:
    lines = invoke("store", "ls").out.splitlines()
    assert [line.split()[0] for line in lines] == ["run", modelled().id, record(1).id, record(2).id]
    assert [each["id"] for each in json.loads(invoke("store", "ls", "tag:b", modelled().id, "--json").out)] == [
        record(2).id,
        modelled().id,
    ]
    assert [each["id"] for each in json.loads(invoke("store", "ls", "-n", "1", "--json").out)] == [record(2).id]
    assert json.loads(invoke("store", "ls", "--tags", "--json").out) == [
        {"tag": "a", "results": 2},
        {"tag": "b", "results": 1},
    ]


def test_show_prints_what_the_run_printed(invoke: Invoke, filled: Path) -> None:
    said = invoke("store", "show", record(1).id)
    assert said.out.startswith("randomio on one-sata")
    assert "tags: a" in said.out


def test_tags_are_given_and_taken(invoke: Invoke, filled: Path) -> None:
    assert invoke("store", "tag", "tag:a", "c").status == 0
    assert invoke("store", "tag", "tag:a", "a", "--remove").status == 0
    assert [each["tag"] for each in json.loads(invoke("store", "ls", "--tags", "--json").out)] == ["b", "c"]


def test_rm_asks_and_leaves_campaigns_alone(invoke: Invoke, filled: Path) -> None:
    with open_store() as store:
        store.campaigns.create("c", plan="", seed=1, trials=[PlannedTrial(block=0, cell={"x": "1"})])
        with store.campaigns.hold("c") as held:
            trial = held.next()
            assert trial is not None
            held.finish(trial, record(9))
    assert invoke("store", "rm", "tag:a").status == 3  # nobody is there to ask
    assert "a run of campaign c" in invoke("store", "rm", record(9).id, "--yes").complaint
    assert "a part of a campaign" in invoke("store", "rm", "campaign:c/x=1", "--yes").complaint
    assert invoke("store", "rm", "tag:a", "--yes").out == "2 results removed\n"
    assert invoke("store", "rm", "campaign:c", "--yes").status == 0
    assert [each["id"] for each in json.loads(invoke("store", "ls", "--json").out)] == [record(2).id]
    assert invoke("store", "check").status == 0
    assert invoke("sql", "SELECT count(*) FROM settings_sets", "--csv").out == "count(*)\n1\n"


def test_what_is_exported_as_json_is_imported_again_byte_for_byte(invoke: Invoke, filled: Path) -> None:
    assert invoke("store", "export", "tag:a", "-o", "saved").status == 0
    assert invoke("store", "export", "last", "-o", "one.json").status == 0
    assert invoke("store", "import", "saved", "one.json", "--store", "other.db", "--tag", "in").status == 0
    with open_store("other.db") as store:
        for one in (modelled(), record(1), record(2)):
            assert store.document(one.id) == encode(one)
        assert store.tags() == {"in": 3}
    assert "3 results (0 new)" in invoke("store", "import", str(filled), "--store", "other.db").out


def test_a_file_that_is_no_result_leaves_the_store_as_it_was(invoke: Invoke, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed/a.json").write_bytes(encode(record(7)))
    (tmp_path / "mixed/b.json").write_text("{}")
    said = invoke("store", "import", "mixed")
    assert said.status == 2
    assert "nothing of mixed was stored" in said.complaint
    assert len(json.loads(invoke("store", "ls", "--json").out)) == 3


def test_csv_has_a_row_for_each_result_and_every_metric(invoke: Invoke, filled: Path, tmp_path: Path) -> None:
    assert invoke("store", "export", "tag:a", "-o", "flat.csv").status == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "flat.csv").read_text())))
    assert [row["run"] for row in rows] == [modelled().id, record(1).id]
    assert float(rows[0]["iops"]) == modelled().figures.iops


def test_parquet_has_the_tables(invoke: Invoke, filled: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert invoke("store", "export", "tag:a", "-o", "tables", "--format", "parquet", "--tables").status == 0
    table = parquet.read_table(tmp_path / "tables/runs.parquet")
    assert table.column("iops").to_pylist() == [modelled().figures.iops, record(1).figures.iops]
    intervals = parquet.read_table(tmp_path / "tables/intervals.parquet")
    assert intervals.num_rows == 2 * len(modelled().figures.series)


def test_fio_json_has_the_figures_where_fio_puts_them(invoke: Invoke, filled: Path, tmp_path: Path) -> None:
    assert invoke("store", "export", "last", "-o", "fio.json", "--format", "fio").status == 0
    [job] = json.loads((tmp_path / "fio.json").read_text())["jobs"]
    read = record(2).figures.streams[0].read
    assert read is not None
    assert (job["read"]["iops"], job["read"]["io_bytes"]) == (read.iops, read.bytes)
    assert job["read"]["total_ios"] == job["read"]["lat_ns"]["N"] == read.requests
    assert job["read"]["clat_ns"]["percentile"]["99.000000"] == read.latency.percentile(99.0)
    assert job["job options"]["rw"] == "randrw"
    assert job["trim"]["total_ios"] == 0


def test_export_writes_nothing_over(invoke: Invoke, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    assert "is not empty" in invoke("store", "export", "tag:a", "-o", "full").complaint


def test_files_go_with_a_result(invoke: Invoke, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("all of it")
    assert invoke("store", "attach", record(1).id, "log.txt").status == 0
    assert invoke("store", "attach", record(2).id, "log.txt", "--by-path").status == 0
    assert "file: log.txt (9 bytes, in the store)" in invoke("store", "show", record(1).id).out
    with open_store() as store:
        assert store.artefact(record(1).id, "log.txt") == b"all of it"
    (tmp_path / "log.txt").write_text("another")
    said = invoke("store", "check")
    assert said.status == 1
    assert f"{record(2).id}, file log.txt: {tmp_path}/log.txt was changed since it was attached" in said.out


def test_sql_answers_as_table_csv_and_json_and_changes_nothing(invoke: Invoke, filled: Path) -> None:
    query = "SELECT count(*) AS n, 'x' AS word FROM records"
    assert invoke("sql", query).out.split() == ["n", "word", "3", "x"]
    assert invoke("sql", query, "--csv").out == "n,word\n3,x\n"
    assert json.loads(invoke("sql", query, "--json").out) == [{"n": 3, "word": "x"}]
    assert "not a query" in invoke("sql", "DELETE FROM records").complaint
    assert "no such table" in invoke("sql", "SELECT * FROM nowhere").complaint
    assert "exclude each other" in invoke("sql", query, "--csv", "--json").complaint


def test_info_prints_its_place_and_size(invoke: Invoke, filled: Path) -> None:
    found = json.loads(invoke("store", "info", "--json").out)
    assert (found["place"], found["journal"], found["counts"]["records"]) == (str(filled), "wal", 3)


def test_check_names_the_place_of_each_damage(invoke: Invoke, filled: Path) -> None:
    assert "whole (3 results" in invoke("store", "check").out
    damaged = sqlite3.connect(filled)
    damaged.execute("UPDATE operations SET iops = iops + 1 WHERE run_key = 1 AND operation = 'read'")
    damaged.execute("UPDATE records SET body = zeroblob(10) WHERE key = 2")
    damaged.execute("DELETE FROM metrics WHERE record_key = 3 AND name = 'iops'")
    damaged.commit()
    damaged.close()
    said = invoke("store", "check", "--json")
    assert said.status == 1
    places = {each["where"]: each["what"] for each in json.loads(said.out)["problems"]}
    assert "table operations: iops is" in places[modelled().id]
    assert places[record(1).id] == "its document cannot be decompressed"
    assert places[record(2).id].startswith("table metrics has")


def test_a_file_with_bytes_overwritten_is_reported_not_trusted(invoke: Invoke, filled: Path) -> None:
    with filled.open("r+b") as file:
        file.seek(4096 * 8)
        file.write(os.urandom(4096 * 10))
    said = invoke("store", "check")
    assert said.status == 1
    assert "the database:" in said.out or "damaged" in said.err


@pytest.mark.parametrize(
    ("where", "status", "complaint"),
    [
        ("nothing.db", 2, "no such store"),
        (".", 2, "a folder"),
        ("text", 2, "not a store"),
        ("mysql://x/y", 2, "is not a store"),
        ("postgresql://spindle@localhost:1/none", 1, "the server cannot be reached"),
        ("postgresql://u:secret@localhost:port/none", 2, "not a URL"),
    ],
)
def test_a_store_that_cannot_be_opened_costs_one_line(
    invoke: Invoke, tmp_path: Path, where: str, status: int, complaint: str
) -> None:
    (tmp_path / "text").write_text("no database at all")
    said = invoke("store", "ls", "--store", where)
    assert said.status == status
    assert complaint in said.complaint
    assert "secret" not in said.complaint


@pytest.mark.parametrize(
    "verb", [("info",), ("vacuum",), ("tag", "last", "x"), ("rm", "last", "--yes"), ("check",), ("attach", "last", "f")]
)
def test_only_what_brings_results_makes_a_store(invoke: Invoke, tmp_path: Path, verb: tuple[str, ...]) -> None:
    assert "no such store" in invoke("store", *verb, "--store", "new.db").complaint
    assert not (tmp_path / "new.db").exists()


def test_a_database_of_something_else_is_left_alone(invoke: Invoke, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE runs (x)")
    other.commit()
    other.close()
    said = invoke("run", "randomio", "one-sata", "--seconds", "2", "-q", "--store", "other.db")
    assert said.status == 3
    assert "a database of something else" in said.complaint
    assert "not a store" in invoke("store", "ls", "--store", "other.db").complaint


def test_an_old_log_of_iostat_can_be_asked_like_a_new_one(invoke: Invoke, home: Path) -> None:
    samples = Path(__file__).parents[1] / "formats/samples"
    assert invoke("store", "import", str(samples / "iostat-2006.txt"), str(samples / "randomio.txt")).status == 0
    query = "SELECT r_s, await, svctm, avgrq_sz, util FROM run_iostat WHERE device = 'sda' AND number = 1"
    assert json.loads(invoke("sql", query, "--json").out) == [
        {"r_s": 100.0, "await": 16.0, "svctm": 8.0, "avgrq_sz": 56.0, "util": 96.0}
    ]
    lines = json.loads(invoke("store", "ls", "--json").out)
    assert [(line["kind"], line["runs"]) for line in lines] == [("imported", 0)] * 2
    assert lines[1]["iops"] > 0
    assert invoke("store", "check").status == 0


@pytest.mark.promise(27)
def test_the_list_shows_no_date_where_there_is_none_and_a_dash_for_nothing(invoke: Invoke, tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    with open_store(place) as store:
        store.add(modelled())
    line = invoke("store", "ls", "--store", str(place)).out.splitlines()[-1]
    assert "modelled" in line
    assert "1970" not in line
    assert " model-" in f" {line}"


@pytest.mark.promise(27)
def test_the_list_names_workloads_of_several_phases(invoke: Invoke, here: Path) -> None:
    phase = '[[phase]]\nname = "{}"\nrequests = 20\n[[phase.stream]]\n'
    (here / "two.toml").write_text(phase.format("a") + phase.format("b"))
    ids = []
    for place in ("one.db", "other.db"):
        assert invoke("run", "two.toml", "one-sata", "--quiet", "--store", f"./{place}").status in (0, 1)
        line = json.loads(invoke("store", "ls", "--store", f"./{place}", "--json").out)[0]
        assert (line["kind"], line["workload"]) == ("phases", "two")
        ids.append(line["id"])
    assert ids[0] == ids[1]
    assert ids[0].startswith("model-")
    assert invoke("store", "show", ids[0][:12], "--store", "./one.db").status in (0, 1)
