"""`spindle.compare`, `report` and the store, from Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import spindle
from spindle.cli.failure import spelled
from tests.program import spindle as program


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three runs of each of two alternatives."""
    folder = tmp_path_factory.mktemp("store")
    with spindle.open_store(folder / "results.db") as store:
        for seed in (1, 2, 3):
            for tag, workers in (("old", 1), ("new", 4)):
                spindle.run("randomio", "one-sata", workers=workers, seed=seed, seconds=5, store=store, tags=[tag])
    return folder / "results.db"


@pytest.fixture
def store(place: Path) -> Iterator[spindle.Store]:
    with spindle.open_store(place, read_only=True) as opened:
        yield opened


def test_selections_are_compared_as_on_the_command_line(store: spindle.Store, place: Path) -> None:
    found = spindle.compare(store["tag:old"], store["tag:new"], metrics=["iops"])
    printed = program("compare", "tag:old", "tag:new", "--metric", "iops", "--json", "--store", place).json
    assert json.loads(json.dumps(found.to_dict())) == printed
    [row] = found.differences
    assert (row["metric"], row["significant"]) == ("iops", 1)
    assert row["low"] <= row["change"] <= row["high"]
    assert row["change"] > 0
    assert str(found) == program("compare", "tag:old", "tag:new", "--metric", "iops", "--store", place).out.rstrip("\n")


def test_texts_files_and_results_are_alternatives_too(store: spindle.Store, place: Path, tmp_path: Path) -> None:
    by_text = spindle.compare("tag:old", "tag:new", metrics=["iops"], store=place)
    lists = spindle.compare(list(store["tag:old"]), list(store["tag:new"]), metrics=["iops"])
    assert by_text.differences["change"] == lists.differences["change"]
    store["tag:old"][0].save(tmp_path / "old.json")
    assert spindle.compare(tmp_path / "old.json", store["tag:new"][0]).study.comparison.sides[0].endswith("old.json")


def test_a_comparison_is_reported_after_the_store_is_closed(place: Path, tmp_path: Path) -> None:
    found = spindle.compare("tag:old", "tag:new", store=place)
    found.report(tmp_path / "x.html")
    assert (tmp_path / "x.html").read_bytes().startswith(b"<!doctype html>")
    assert "<table>" in found._repr_html_()
    assert found.plot().charts


def test_a_report_is_the_one_that_the_command_line_writes(place: Path, tmp_path: Path) -> None:
    spindle.report("tag:old", path=tmp_path / "here.md", store=place)
    done = program("report", "tag:old", "-o", "there.md", "--store", place, cwd=tmp_path)
    assert done.err == ""
    here, there = (re.sub(r"\\([`_])", r"\1", (tmp_path / name).read_text()) for name in ("here.md", "there.md"))
    assert "`seconds=60`" in here
    assert "--seconds 60" not in here
    assert spelled(here) == there
    with pytest.raises(spindle.Error, match=r"its ending is not a format; give `format=`"):
        spindle.report("tag:old", path=tmp_path / "x.doc", store=place)


def test_a_selection_is_a_sequence_of_results_and_a_table(store: spindle.Store) -> None:
    selection = store["tag:old"]
    assert len(selection) == 3
    assert [result.workload for result in selection] == ["randomio"] * 3
    assert selection.to_table()["iops"] == [result.iops for result in selection]
    assert store.tags == {"old": 3, "new": 3}
    assert store.query("select count(*) as n from records")["n"] == [6]


def test_wrong_selections_are_errors_of_one_line(store: spindle.Store, tmp_path: Path) -> None:
    for wrong in ("tag:nobody", "tag:", str(tmp_path / "nothing.json")):
        with pytest.raises(spindle.Error) as error:
            _ = store[wrong]
        assert "\n" not in str(error.value)
    with pytest.raises(spindle.Error, match="nothing to compare"):
        spindle.compare()
    with pytest.raises(spindle.Error, match="there is only one alternative"):
        spindle.compare(store["tag:old"])
    with pytest.raises(spindle.Error, match="`by=`"):
        spindle.compare(store["tag:old"], store["tag:new"], by=["x"])
