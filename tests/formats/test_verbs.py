"""Imported files in the verbs: shown, stored, selected, written as fio's JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.program import Invoke

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The samples in the working directory, with a separate store."""
    shutil.copytree(SAMPLES, tmp_path / "s")
    monkeypatch.chdir(tmp_path / "s")
    monkeypatch.setenv("SPINDLE_STORE", str(tmp_path / "store.db"))
    return tmp_path / "s"


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir()))
def test_every_sample_is_shown(sample: str, files: Path, invoke: Invoke) -> None:
    ended = invoke("show", sample)
    assert (ended.status, ended.err) == (0, "")
    assert f"from {sample}" in ended.out
    assert "the conditions are unknown, Spindle checked nothing" in ended.out


def test_several_results_of_a_file_are_shown_one_after_another_or_as_a_list(files: Path, invoke: Invoke) -> None:
    assert invoke("show", "bonnie-1.98.csv").out.count("from bonnie-1.98.csv") == 3
    assert [each["kind"] for each in json.loads(invoke("show", "bonnie-1.98.csv", "--json").out)] == ["imported"] * 3
    assert json.loads(invoke("show", "fio-2.json", "--json").out)["source"]["version"] == "fio-2.2.10"


def test_a_file_of_two_formats_is_shown_if_the_format_is_given(files: Path, invoke: Invoke) -> None:
    (files / "both.txt").write_text((files / "sdd.txt").read_text() + (files / "iostat-2006.txt").read_text())
    assert "looks like dd or iostat; say which with --from" in invoke("show", "both.txt").complaint
    assert "sda" in invoke("show", "both.txt", "--from", "iostat").out


def test_imported_results_are_stored_once_and_found_again(files: Path, invoke: Invoke) -> None:
    assert invoke("store", "import", "fio-randrw.json", "fio-2.json", "--tag", "fio").status == 0
    assert "already stored" in invoke("store", "import", "fio-2.json").out
    listed = invoke("store", "ls", "tag:fio")
    assert (listed.status, listed.out.count(" warn ")) == (0, 2)
    assert invoke("store", "check").status == 0


def test_a_run_is_written_in_fios_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    monkeypatch.chdir(tmp_path)
    ended = invoke(
        "run", "randomio", "one-sata", "--seconds", "1", "--output", "r.json", "--output-format", "fio-json", "-q"
    )
    [job] = json.loads(ended.out)["jobs"]
    assert job["jobname"] == "randomio"
    again = invoke("show", "r.json", "--output-format", "fio-json")
    assert again.out == ended.out
    (tmp_path / "fio.json").write_text(ended.out)
    assert "spindle's randomio" in invoke("show", "fio.json").out
    assert "only Spindle's own runs" in invoke("show", "fio.json", "--output-format", "fio-json").complaint
