"""`spindle validate drives`: how near models come to real drives, and what is said without anything to compare."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest


def slow_down(described: dict) -> None:
    """Half as many revolutions per minute, wherever they stand."""
    for key, value in described.items():
        if key == "Rotation speed (in rpms)":
            described[key] = value / 2
        elif isinstance(value, dict):
            slow_down(value)


def test_no_figure_is_worse_than_the_reference(invoke, measured_drives: Path) -> None:
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


def test_every_drive_and_all_together_have_their_lines(invoke, measured_drives: Path) -> None:
    said = invoke("validate", "drives", str(measured_drives))
    assert said.status == 0
    for name in [*json.loads((measured_drives / "drives.json").read_text()), "all"]:
        assert re.search(rf"(?m)^\s*{re.escape(name)}\b", said.out), name


def test_a_worse_figure_is_named_without_a_failing_exit_status(invoke, measured_drives: Path, tmp_path: Path) -> None:
    (tmp_path / "traces").symlink_to(measured_drives / "traces")
    described = json.loads((measured_drives / "drives.json").read_text())
    for drive in described.values():
        slow_down(drive)
    (tmp_path / "drives.json").write_text(json.dumps(described))
    said = invoke("validate", "drives", str(tmp_path), "--json")
    assert said.status == 0
    assert all(drive["worse"] for drive in json.loads(said.out)["drives"])


def test_a_folder_without_drives_is_not_a_success(invoke, tmp_path: Path) -> None:
    said = invoke("validate", "drives", str(tmp_path))
    assert said.status == 2
    assert "drives.json" in said.err
    assert len(said.err.splitlines()) == 1
    assert invoke("validate", "drives", str(tmp_path / "none")).status == 2


def test_a_broken_description_is_one_line(invoke, tmp_path: Path) -> None:
    (tmp_path / "drives.json").write_text("{ not json")
    said = invoke("validate", "drives", str(tmp_path))
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    assert "drives.json" in said.err


@pytest.mark.promise(25)
def test_without_a_folder_it_says_what_to_give(invoke) -> None:
    said = invoke("validate", "drives")
    assert said.status == 2
    assert "drives.json" in said.complaint
