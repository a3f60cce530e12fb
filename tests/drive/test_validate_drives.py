"""`spindle validate drives`: how near models come to real drives, and what is said without anything to compare."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.program import Invoke


def slow_down(described: dict[str, Any]) -> None:
    """Half as many revolutions per minute, wherever they are given."""
    for key, value in described.items():
        if key == "Rotation speed (in rpms)":
            described[key] = value / 2
        elif isinstance(value, dict):
            slow_down(value)


def test_no_figure_is_worse_than_the_reference(invoke: Invoke, measured_drives: Path) -> None:
    said = invoke("validate", "drives", str(measured_drives), "--json")
    assert said.status == 0
    report = json.loads(said.out)
    described = json.loads((measured_drives / "drives.json").read_text())
    assert [drive["drive"] for drive in report["drives"]] == sorted(described)
    for drive in report["drives"]:
        assert drive["worse"] == [], drive["drive"]
        assert drive["reference"] is not None
        assert drive["total"]["requests"] == drive["reads"]["requests"] + drive["writes"]["requests"]
    assert report["all"]["total"]["requests"] == sum(drive["total"]["requests"] for drive in report["drives"])


def test_every_drive_and_all_together_have_their_lines(invoke: Invoke, measured_drives: Path) -> None:
    said = invoke("validate", "drives", str(measured_drives))
    assert said.status == 0
    for name in [*json.loads((measured_drives / "drives.json").read_text()), "all"]:
        assert re.search(rf"(?m)^\s*{re.escape(name)}\b", said.out), name


def test_a_worse_figure_is_named_without_a_failing_exit_status(
    invoke: Invoke, measured_drives: Path, tmp_path: Path
) -> None:
    (tmp_path / "traces").symlink_to(measured_drives / "traces")
    described = json.loads((measured_drives / "drives.json").read_text())
    for drive in described.values():
        slow_down(drive)
    (tmp_path / "drives.json").write_text(json.dumps(described))
    said = invoke("validate", "drives", str(tmp_path), "--json")
    assert said.status == 0
    assert all(drive["worse"] for drive in json.loads(said.out)["drives"])


def altered(measured_drives: Path, folder: Path, described: dict[str, Any]) -> Path:
    """A copy of the data with other drives."""
    (folder / "traces").symlink_to(measured_drives / "traces")
    (folder / "drives.json").write_text(json.dumps(described))
    return folder


def test_a_bad_entry_does_not_stop_the_others(invoke: Invoke, measured_drives: Path, tmp_path: Path) -> None:
    described = json.loads((measured_drives / "drives.json").read_text())
    good = described["cheetah9LP"]
    bad = {
        "bad-key": good | {"mech": good["mech"] | {"Rotation speed (in rpms)": "fast"}},
        "bad-shape": good | {"layout": 7},
        "no-trace-file": good | {"trace": "traces/none.trace"},
        "too-small": good | {"geometry": good["geometry"] | {"Number of cylinders": 100}},
    }
    silent = {key: value for key, value in good.items() if key != "trace"}
    folder = altered(measured_drives, tmp_path, {"cheetah9LP": good, **bad, "silent": silent})
    said = invoke("validate", "drives", str(folder))
    assert said.status == 1
    assert len(said.err.splitlines()) == 1
    assert "4 of 5 drives could not be compared" in said.err
    assert re.search(r"(?m)^cheetah9LP +all +10000 ", said.out)
    for key in bad:
        assert len(re.findall(rf"(?m)^not compared: {key}: ", said.out)) == 1
    assert "not compared: silent: names no trace" in said.out
    report = json.loads(invoke("validate", "drives", str(folder), "--json").out)
    assert [failure["drive"] for failure in report["failures"]] == sorted(bad)
    assert [drive["worse"] for drive in report["drives"]] == [[]]


def test_a_drive_without_reference_is_printed_with_its_figures_and_notes(
    invoke: Invoke, measured_drives: Path, tmp_path: Path
) -> None:
    described = json.loads((measured_drives / "drives.json").read_text())
    drive = described["hp_c2247a"]
    drive["controller_cache"]["Scheduler"]["Scheduling policy"] = 5
    slower = json.loads(json.dumps(drive))
    slower["host_bus"] = {"read_ms_per_block": 0.4, "write_ms_per_block": 0.4}
    folder = altered(measured_drives, tmp_path, {"elevator": drive, "slower": slower})
    said = invoke("validate", "drives", str(folder))
    assert said.status == 0
    assert re.search(r"(?m)^elevator +all +9999 +15.298 +15.312 +0.093 ", said.out)
    assert "note: elevator: scheduling policy 5 (elevator by cylinder) is modelled as shortest seek first" in said.out
    assert "than the reference" not in said.out
    report = json.loads(invoke("validate", "drives", str(folder), "--json").out)
    as_measured, with_slower_bus = report["drives"]
    assert with_slower_bus["reads"]["modelled_mean_ms"] > as_measured["reads"]["modelled_mean_ms"] + 1


def test_a_folder_without_drives_is_not_a_success(invoke: Invoke, tmp_path: Path) -> None:
    said = invoke("validate", "drives", str(tmp_path))
    assert said.status == 2
    assert "drives.json" in said.err
    assert len(said.err.splitlines()) == 1
    assert invoke("validate", "drives", str(tmp_path / "none")).status == 2


def test_a_broken_description_is_one_line(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "drives.json").write_text("{ not json")
    said = invoke("validate", "drives", str(tmp_path))
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    assert "drives.json" in said.err


@pytest.mark.promise(25)
def test_without_a_folder_it_says_what_to_give(invoke: Invoke) -> None:
    said = invoke("validate", "drives")
    assert said.status == 2
    assert "drives.json" in said.complaint
