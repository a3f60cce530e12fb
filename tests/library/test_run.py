"""`spindle.run`, `sweep` and `simulate`: what the command line measures, a Python program measures too."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import spindle
from tests.program import spindle as program


@pytest.fixture(scope="module")
def modelled() -> spindle.Result:
    return spindle.run("oltp", "one-sata", workers=4, seconds=5)


def test_a_modelled_run_is_the_record_that_the_command_line_writes(modelled: spindle.Result, tmp_path: Path) -> None:
    modelled.save(tmp_path / "here.json")
    done = program("run", "oltp", "one-sata", "--workers=4", "--seconds=5", "-q", "-o", "there.json", cwd=tmp_path)
    assert done.err == ""
    assert (tmp_path / "here.json").read_bytes() == (tmp_path / "there.json").read_bytes()
    assert spindle.read(tmp_path / "here.json").to_dict() == modelled.to_dict()


def test_figures_are_attributes_with_their_units(modelled: spindle.Result) -> None:
    assert modelled.iops == pytest.approx(modelled["iops"])
    assert modelled.read.p99 == modelled["read.p99_ns"]
    assert modelled.read.p99.ms == pytest.approx(modelled["read.p99_ns"] / 1e6)
    assert str(modelled.read.p99).endswith(" ms")
    assert modelled.read.p50 <= modelled.read.p99 <= modelled.read.max
    assert set(modelled.operations) >= {"read", "write"}
    assert modelled.intervals["start_s"][-1] == 4.0
    assert sum(modelled.intervals["read_iops"]) == pytest.approx(5 * modelled.read.iops)
    assert {verdict.check for verdict in modelled.verdicts} >= {"steady", "errors"}


def test_a_figure_that_was_not_measured_is_an_error_of_one_line(modelled: spindle.Result) -> None:
    with pytest.raises(spindle.Error, match=r"^trim\.p99_ns: the result does not have it"):
        _ = modelled.operation("trim").p99
    with pytest.raises(spindle.Error, match="not a recorded percentile"):
        modelled.read.percentile(98)


def test_a_notebook_shows_a_table_with_the_warnings(modelled: spindle.Result) -> None:
    shown = modelled._repr_html_()
    assert "<td>read</td>" in shown
    assert "too-short" in shown
    assert "<script" not in shown


def test_the_null_target_measures_the_generator() -> None:
    result = spindle.run("randomio", "null:1GiB", seconds="200ms", ramp="0s", workers=1)
    assert result.target == "null:1GiB"
    assert result.iops > 1000


def test_a_file_is_made_for_the_run_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    file = folder / "test.dat"
    result = spindle.run("randomio", file, create="16MiB", seconds="300ms", workers=2)
    assert result.write.iops > 0
    assert list(folder.iterdir()) == []


def test_a_file_that_is_there_is_not_written_to(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(bytes(1 << 20))
    before = hashlib.sha256(file.read_bytes()).digest(), file.stat().st_mtime_ns
    with pytest.raises(spindle.Error) as refused:
        spindle.run("randomio", file, seconds="300ms")
    assert refused.value.exit_code == 3
    assert (hashlib.sha256(file.read_bytes()).digest(), file.stat().st_mtime_ns) == before


def test_a_result_file_does_not_replace_one_that_is_not_spindle_s(modelled: spindle.Result, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(spindle.Error, match="exists, and is not a result of Spindle"):
        modelled.save(tmp_path / "notes")
    with pytest.raises(spindle.Error, match="exists, and is not a completion log"):
        spindle.run("randomio", "null:1GiB", seconds="200ms", log=tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workerz": 4}, "did you mean `workers`"),
        ({"create": "1GiB"}, "`create=`: a modelled machine does not have this"),
        ({"find_knee": True, "curve": True}, "`find_knee=` and `curve=`: each is a search of its own"),
        ({"precondition_time": "5m"}, "`precondition_time=`: nothing is preconditioned"),
        ({"tags": ["a"]}, "`tags=`: tags are of stored results"),
        ({"section": "a"}, "`section=`: oltp is not a job file"),
    ],
)
def test_errors_name_the_arguments_of_the_caller(options: dict[str, object], words: str) -> None:
    with pytest.raises(spindle.Error) as error:
        spindle.run("oltp", "one-sata", **options)  # type: ignore[arg-type]
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_errors_of_the_core_are_caught_by_the_one_root() -> None:
    from spindle import _core

    assert issubclass(_core.ConfigError, spindle.Error)
    assert issubclass(_core.ConfigError, ValueError)
    assert issubclass(_core.RunError, spindle.Error)
    with pytest.raises(spindle.Error, match="unknown preset"):
        spindle.run("oltpp", "one-sata")


def test_a_search_gives_a_result_of_several_runs() -> None:
    found = spindle.run("randomio", "one-sata", find_knee=True, seconds=1)
    assert found.kind == "knee"
    assert len(found.runs) > 3
    assert found["knee.iops"] > 0
    assert "knee.iops" in found._repr_html_()


def test_runs_work_in_a_thread_that_cannot_handle_signals() -> None:
    found: list[spindle.Result] = []
    thread = Thread(target=lambda: found.append(spindle.run("randomio", "null:1GiB", seconds="200ms")))
    thread.start()
    thread.join()
    assert found[0].iops > 0


def test_simulate_shows_the_times_inside_the_drives() -> None:
    found = spindle.simulate("seeker", "one-sata", seconds=5)
    assert found.drives[0].seek_ns > 0
    assert found.run.iops == pytest.approx(spindle.run("seeker", "one-sata", seconds=5).iops)


def test_functions_keep_their_names_when_rooms_of_the_same_name_are_imported() -> None:
    import spindle.run.order
    from spindle.run import order

    function: Any = spindle.run
    assert function.order is order
    assert callable(spindle.run)
    assert "create" in inspect.signature(spindle.run).parameters
    assert "Raises `spindle.Error`" in str(inspect.getdoc(inspect.unwrap(spindle.run)))


def test_the_version_and_every_public_name_are_there() -> None:
    assert spindle.__version__ in program("--version").out
    assert all(getattr(spindle, name) is not None for name in spindle.__all__)
