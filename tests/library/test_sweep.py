"""`spindle.sweep`: a table of runs that other programs read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import spindle


@pytest.fixture(scope="module")
def swept() -> spindle.Sweep:
    return spindle.sweep("randomio", "one-sata", workers=[1, 4], size=["4KiB", "64KiB"], seconds=2)


def test_each_combination_is_a_row(swept: spindle.Sweep) -> None:
    assert swept["workers"] == [1, 1, 4, 4]
    assert swept["size"] == ["4KiB", "64KiB"] * 2
    assert [result.iops for result in swept.results] == swept["iops"]
    assert [row["run"] for row in swept] == [result.id for result in swept.results]
    assert swept.results[2].iops == pytest.approx(
        spindle.run("randomio", "one-sata", workers=4, size="4KiB", seconds=2).iops
    )


def test_arrow_goes_there_and_back_through_the_capsule(swept: spindle.Sweep) -> None:
    arrow = pytest.importorskip("pyarrow")
    read = arrow.table(swept)
    assert read.schema.field("workers").type == arrow.int64()
    assert read.schema.field("p99_ns").type == arrow.float64()
    assert read.to_pydict() == swept.columns
    assert swept.to_arrow().equals(read)


def test_without_the_optional_packages_the_error_names_the_extra(
    swept: spindle.Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    for wanted in (swept.to_arrow, swept.to_pandas, swept.plot().to_altair):
        with pytest.raises(spindle.Error, match=r"pip install 'spindle\[notebook\]'"):
            wanted()


def test_pandas_has_the_same_columns(swept: spindle.Sweep) -> None:
    pandas = pytest.importorskip("pandas")
    frame = swept.to_pandas()
    assert list(frame.columns) == list(swept.columns)
    assert isinstance(frame, pandas.DataFrame)


def test_altair_takes_the_chart_over(swept: spindle.Sweep) -> None:
    pytest.importorskip("altair")
    assert swept.plot("p99_ns").to_altair().to_dict()["layer"]
    several = swept.results[0].plot().to_altair().to_dict()
    assert len(several["vconcat"]) == len(swept.results[0].plot().charts)


def test_the_chart_has_a_curve_for_each_other_value_and_is_saved(swept: spindle.Sweep, tmp_path: Path) -> None:
    plot = swept.plot()
    assert plot.specification["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["size=4KiB", "size=64KiB"]
    plot.save(tmp_path / "sweep.svg")
    assert (tmp_path / "sweep.svg").read_text() == plot._repr_mimebundle_()["image/svg+xml"]
    with pytest.raises(spindle.Error, match=r"let it end in \.png, \.svg or \.html$"):
        plot.save(tmp_path / "sweep.gif")
    with pytest.raises(spindle.Error, match="p98: not a column"):
        swept.plot("p98")


def test_a_notebook_shows_the_table(swept: spindle.Sweep) -> None:
    assert swept._repr_html_().count("<tr>") == 5


def test_it_is_stored_and_reported_like_any_result(swept: spindle.Sweep, tmp_path: Path) -> None:
    swept.report(tmp_path / "sweep.html")
    assert "size=4KiB,64KiB" in (tmp_path / "sweep.html").read_text()
    with spindle.open_store(tmp_path / "results.db") as store:
        store.add(swept.result, tags=["swept"])
        assert store["tag:swept"][0].to_dict() == swept.to_dict()


def test_nothing_to_vary_is_an_error() -> None:
    with pytest.raises(spindle.Error, match="nothing is varied"):
        spindle.sweep("randomio", "one-sata", workers=4)
    with pytest.raises(spindle.Error, match="`workers=`: the list of its values is empty"):
        spindle.sweep("randomio", "one-sata", workers=[])


def test_importing_the_package_imports_nothing_heavy() -> None:
    import subprocess

    code = "import sys, spindle; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & {"msgspec", "numpy", "sqlalchemy", "scipy", "click"}
    assert "spindle" in loaded
