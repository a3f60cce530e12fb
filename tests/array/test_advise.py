"""`spindle array advise`: the choice, the alternatives, a script that a shell accepts, and that nothing is executed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import spindle
from tests.program import Invoke
from tests.workbench import Workbench


def advice(invoke: Invoke, *arguments: str) -> Any:
    said = invoke("array", "advise", *arguments, "--json")
    assert said.status == 0, said.err
    return json.loads(said.out)


def test_every_alternative_survives_what_was_asked_for(invoke: Invoke) -> None:
    for survive in (1, 2):
        found = advice(invoke, "--drives", "8x12TB", "--survive", str(survive))["alternatives"]
        assert len(found) >= 3
        assert all(each["survives"] >= survive for each in found)


def test_the_first_is_the_best_of_those_within_the_bound(invoke: Invoke) -> None:
    found = advice(invoke, "--drives", "8x12TB", "--for", "archive", "--most-loss", "0.1%")["alternatives"]
    within = [each for each in found if each["yearly_loss"] <= 0.001]
    assert found[: len(within)] == sorted(within, key=lambda each: -each["score"])
    assert found[0]["level"] == "raid6"
    assert any(each["level"] == "raid5" for each in found[len(within) :]), "RAID5 is shown, below the bound"


@pytest.mark.parametrize(("purpose", "level"), [("database", "raid10"), ("archive", "raid6")])
def test_random_writes_get_mirrors_and_an_archive_gets_parity(invoke: Invoke, purpose: str, level: str) -> None:
    assert advice(invoke, "--drives", "8x12TB", "--for", purpose)["alternatives"][0]["level"] == level


def test_performance_is_that_of_the_theory_and_capacity_that_of_the_map(invoke: Invoke) -> None:
    found = advice(invoke, "--drives", "6x12TB", "--spares", "0")["alternatives"]
    by_name = {(each["level"], each["layout"]): each for each in found}
    near, far, five = by_name["raid10", "n2"], by_name["raid10", "f2"], by_name["raid5", ""]
    assert (near["random_reads"], near["random_writes"]) == (6, 3)
    assert (near["stream_reads"], far["stream_reads"]) == (3, 6)
    assert (five["random_writes"], five["stream_writes"]) == (1.5, 5)
    assert five["usable_bytes"] == pytest.approx(60e12, rel=1e-3)
    assert near["yearly_loss"] < five["yearly_loss"]


def test_a_known_model_has_simulated_rebuilds(invoke: Invoke) -> None:
    found = advice(invoke, "--drives", "4xST18000NM000J", "--spares", "0")
    hours = {each["level"]: each["rebuild_hours"] for each in found["alternatives"]}
    assert 18e12 / 270e6 / 3600 < hours["raid10"] < 40
    assert hours["raid6"] != hours["raid10"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--drives", "6x12TB", "--for", "database", "--spares", "1"],
        ["--drives", "8x12TB", "--for", "archive", "--survive", "2", "--file-system", "ext4"],
        ["--drives", "24x12TB", "--for", "archive", "--survive", "2", "--spares", "0"],
        ["--drives", "20x12TB", "--for", "archive", "--survive", "2", "--spares", "2"],
        ["--drives", "2x1TB", "--survive", "1", "--spares", "0"],
        ["--drives", "4x870-EVO-1TB", "--file-system", "none"],
    ],
)
def test_the_script_is_accepted_by_a_shell_and_names_every_drive_once(invoke: Invoke, arguments: list[str]) -> None:
    found = advice(invoke, *arguments)
    script = "\n".join(step["command"] for step in found["steps"])
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    assert all(step["reason"].endswith(".") for step in found["steps"])
    created = "\n".join(line for line in script.splitlines() if line.startswith("mdadm --create"))
    for number in range(1, found["drives"]["count"] + 1):
        assert f"{created} ".replace("\n", " ").count(f"DRIVE-{number} ") == 1, created
    spares = found["alternatives"][0]["spares"]
    assert (f"--spare-devices={spares}" in created) == bool(spares)
    assert script.index("wipefs") < script.index("mdadm --create"), "drives with content stop the script first"


def test_the_script_stops_at_a_drive_with_content_before_anything_is_written(tmp_path: Path) -> None:
    """Carried out with programs that only write down that they were called."""
    advised = spindle.array_advice("3x12TB", spares=0)
    calls = tmp_path / "calls"
    for name in ("mdadm", "mkfs.xfs", "smartctl", "blkid", "mount"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {calls}\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / "wipefs").write_text("#!/bin/sh\necho 'offset type: xfs'\n")
    (tmp_path / "wipefs").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.defpath}"}
    done = subprocess.run(["sh"], input=advised.script, text=True, capture_output=True, env=environment, check=False)
    assert done.returncode == 1
    assert "is missing or not empty" in done.stderr
    assert not calls.exists()


@pytest.mark.promise(30)
def test_advice_carries_nothing_out(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_keywords: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "system", refuse)
    assert invoke("array", "advise", "--drives", "6x12TB").status == 0


def test_the_page_has_choice_table_reasons_and_script(invoke: Invoke) -> None:
    said = invoke("array", "advise", "--drives", "6x12TB", "--for", "mixed", "--survive", "2")
    assert said.status == 0
    for words in ("Advice: ", "Chunk:  ", "loss a year", "Nothing has been executed", "mkfs.xfs -d su="):
        assert words in said.out
    commands = [line for line in said.out.splitlines() if line.startswith("# ")]
    assert len(commands) >= 7


def test_an_impossible_bound_is_a_warning_with_what_to_do(invoke: Invoke) -> None:
    said = invoke("array", "advise", "--drives", "4x12TB", "--most-loss", "0.0000000001%")
    assert said.status == 0
    assert "Warning: no alternative keeps the yearly loss within" in said.out


@pytest.mark.promise(30)
def test_devices_are_named_in_the_script_and_refused_if_they_have_content(invoke: Invoke, bench: Workbench) -> None:
    devices = [bench.loop(size=2 << 30) for _ in range(3)]
    found = advice(invoke, "--drives", ",".join(devices))
    script = "\n".join(step["command"] for step in found["steps"])
    assert f"DRIVES='{' '.join(devices)}'" in script
    assert " ".join(devices) in script.split("--raid-devices=3 ")[1]
    subprocess.run(["mkfs.ext4", "-q", devices[1]], check=True)
    said = invoke("array", "advise", "--drives", ",".join(devices))
    assert said.status == 2
    assert f"{devices[1]} has content (ext4)" in said.err
    assert invoke("array", "advise", "--drives", f"{devices[0]},{devices[0]}").status == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--drives 1x12TB", "cannot survive"),
        ("--drives 2x12TB --survive 2", "cannot survive"),
        ("--drives six", "NUMBERxSIZE"),
        ("--drives /dev/null", "/dev/null"),
        ("--drives 6x12TB --for games", "database"),
        ("--drives 6x12TB --survive 9", "--survive"),
        ("--drives 4x12TB --spares 4", "cannot survive"),
        ("", "--drives"),
    ],
)
def test_what_cannot_be_advised_on_is_refused_in_one_line(invoke: Invoke, arguments: str, says: str) -> None:
    said = invoke("array", "advise", *arguments.split())
    assert said.status == 2
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1
