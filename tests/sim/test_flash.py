"""Modelled flash drives: their state in machine file and record, the verdict on a fresh one, discards."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

import spindle as package
from spindle.result.record import Level, RunRecord, Verdict
from spindle.result.rules import judge
from tests.program import spindle

ROOT = Path(__file__).parents[2]
MODELS = {"nvme": "970-PRO-1TB", "ssd": "860-EVO-1TB", "disk": "HDS725050KLA360"}


def machine(*drives: tuple[str, str | None]) -> str:
    text = '[array]\nlevel = "raid0"\n' if len(drives) > 1 else ""
    for model, state in drives:
        text += f'[[drive]]\nmodel = "{MODELS[model]}"\n' + (f'state = "{state}"\n' if state else "")
    return text


def run(text: str, **options: Any) -> RunRecord:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "mine.toml")
        place.write_text(text)
        settings: dict[str, Any] = {"requests": 20_000, "workers": 16, "size": "4KiB"} | options
        found = package.run("seeker", str(place), **settings).record
    assert isinstance(found, RunRecord)
    return found


def freshness(found: RunRecord) -> list[Verdict]:
    return [each for each in judge(found) if each.check == "fresh-drive"]


def test_writes_to_a_fresh_flash_drive_are_said_to_be_of_a_fresh_one() -> None:
    found = run(machine(("nvme", None)), write_fraction=1.0)
    (verdict,) = freshness(found)
    assert verdict.level is Level.WARN
    assert verdict.evidence == "the flash drive was fresh: 78.1 MiB written found erased pages"
    assert 'state = "used"' in verdict.advice
    assert verdict.numbers == {"write_bytes": 20_000 * 4096.0, "fresh_drives": 1.0, "moved_bytes": 0.0}


def test_a_fresh_drive_that_began_to_collect_in_the_run_is_still_named() -> None:
    sheet = (ROOT / "catalogue/drives/970-PRO-1TB.toml").read_text()
    keys, sources = sheet.replace("970-PRO-1TB", "small").replace("[range]", "[sheet.range]").split("[source]")
    keys = re.sub(r'capacity = "\d+"', 'capacity = "256 MiB"', keys)
    text = f'[[drive]]\nmodel = "small"\n[[sheet]]\n{keys}[sheet.source]{sources}'
    (verdict,) = freshness(run(text, write_fraction=1.0, requests=200_000))
    assert verdict.numbers["moved_bytes"] > 0
    assert "781 MiB written; erased pages ran out, and collection moved" in verdict.evidence


def test_each_fresh_drive_of_an_array_counts() -> None:
    found = run(machine(("nvme", "used"), ("ssd", "fresh")), write_fraction=0.5)
    (verdict,) = freshness(found)
    assert verdict.evidence.startswith("1 of 2 drives were fresh")


@pytest.mark.parametrize(
    ("drive", "state", "writes"),
    [("nvme", "used", 1.0), ("nvme", "filled", 1.0), ("disk", None, 1.0), ("nvme", None, 0)],
)
def test_used_drives_disks_and_reads_get_no_such_verdict(drive: str, state: str | None, writes: float) -> None:
    assert freshness(run(machine((drive, state)), write_fraction=writes, requests=2000)) == []


def test_the_record_has_the_state_and_what_collection_did() -> None:
    found = run(machine(("nvme", "used")), write_fraction=1.0, requests=100_000)
    assert found.target.detail["flash_states"] == ["used"]
    assert found.counters is not None
    delta = found.counters.delta
    assert delta["flash_written_bytes"] == 100_000 * 4096
    # 7.3 % spare: the closed form says 7.53 bytes for each byte.
    assert 1 + delta["flash_moved_bytes"] / delta["flash_written_bytes"] == pytest.approx(7.53, rel=0.02)
    assert delta["flash_erases"] > 0
    assert "flash_states" not in run(machine(("disk", None)), requests=1000).target.detail


def test_discards_are_carried_out_and_counted(tmp_path: Path) -> None:
    place = tmp_path / "used.toml"
    place.write_text('[[drive]]\nmodel = "970-PRO-1TB"\nstate = "used"\n')
    done = spindle("run", "trim", str(place), "--requests", "20000", "--json")
    found = json.loads(done.out)
    trims = found["figures"]["streams"][0]["trim"]["requests"]
    assert trims > 5000
    assert found["devices"][0]["delta"]["discards"] == trims


def test_preconditioning_is_refused_with_the_key_that_replaces_it() -> None:
    done = spindle("run", "randomio", "one-nvme", "--precondition")
    assert 'state = "used"' in done.err


def test_a_disk_that_is_asked_for_discards_refuses_in_one_line() -> None:
    done = spindle("run", "trim", "one-sata")
    assert "flash" in done.err
    assert done.err.count("\n") == 1
