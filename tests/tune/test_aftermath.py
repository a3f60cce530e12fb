"""A search on a real queue whose best settings are known: found, left in force, undone, and set at every boot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import spindle
from spindle.library.tuning import Aftermath, used
from spindle.store import open_store
from spindle.tune.decision import tuning_of
from tests.program import spindle as program
from tests.queue import Queue
from tests.tune.killed import TOLERATED
from tests.workbench import MIB, Workbench

LARGE = """import mmap, os, sys
fd, buffer = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20)
while True:
    for at in range(64):
        os.preadv(fd, [buffer], at << 20)
"""
"""Reads of 1 MiB, which the queue splits into requests of `max_sectors_kb`, however busy the machine is."""


def test_the_known_best_is_found_applied_restored_and_persisted(bench: Workbench, tmp_path: Path) -> None:
    device = bench.loop(size=64 * MIB)
    queue = Queue(Path(device).name)
    queue["max_sectors_kb"] = "4"
    before = queue.values()
    script = tmp_path / "load.py"
    script.write_text(LARGE)
    place = tmp_path / "store.db"
    found = spindle.tune(
        device,
        load=f"{sys.executable} {script} {{target}}",
        maximise="device.rareq-sz",
        knobs={"max_sectors_kb": "4,16,64"},
        only=True,
        trials=8,
        confirm=4,
        changes={"load.interval": "0.2s", "load.settle": "50ms", "load.sample": "50ms", "search.race": 3,
                 "trials.tolerate": TOLERATED},
        apply=True,
        store=place,
    )  # fmt: skip
    assert found.tuning.state == "better", str(found)
    assert found.tuning.difference is not None
    assert found.tuning.difference.change > 1
    chosen = found.tuning.changes["max_sectors_kb"][1]
    assert chosen == "64"
    assert queue["max_sectors_kb"] == chosen
    assert "`spindle restore` puts back what was there" in found.undo
    assert program("restore").status == 0
    assert queue.values() == before

    root = tmp_path / "root"
    root.mkdir()
    with open_store(place) as store:
        tuning = tuning_of(store.campaigns.get("tune"), store)
    said = used(tuning, Aftermath(persist=("udev", "tuned"), root=root))
    rule, profile = sorted(root.rglob("*.rules")) + sorted(root.rglob("tuned.conf"))
    assert f'ATTR{{queue/max_sectors_kb}}="{chosen}"' in rule.read_text()
    assert f"max_sectors_kb={chosen}" in profile.read_text()
    assert str(rule) in said
    assert queue.values() == before, "files alone change nothing now"
    with pytest.raises(spindle.Error, match=r"`persist=` sysctl: sets none of .*max_sectors_kb; nothing was written"):
        used(tuning, Aftermath(persist=("sysctl",), root=root))


def test_a_modelled_machine_has_nothing_to_set(tmp_path: Path) -> None:
    arguments = {
        "knobs": {"array.layout": "n2,f2"},
        "only": True,
        "trials": 6,
        "confirm": 3,
        "store": tmp_path / "s.db",
    }
    found = spindle.tune("six-sata-raid10", "randomio", changes={"options.seconds": 1}, **arguments)  # type: ignore[arg-type]
    assert found.tuning.state == "better"
    assert found.undo.startswith("A modelled machine has nothing to set")
    assert "better by" in str(found)
    for wanted in ({"apply": True}, {"persist": ["udev"]}):
        with pytest.raises(spindle.Error, match="is a modelled machine; there is nothing to set"):
            spindle.tune(resume="tune", store=tmp_path / "s.db", **wanted)
    with pytest.raises(spindle.Error, match="leave them out"):
        spindle.tune("one-nvme", resume="tune")
    with pytest.raises(spindle.Error, match="tune what"):
        spindle.tune()
