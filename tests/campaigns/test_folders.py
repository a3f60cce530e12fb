"""Campaigns of workloads that make files of their own, and of phases."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.campaign.execution import RunOptions, begin, carry_out
from spindle.result.record import PhasesRecord
from spindle.run.watch import SilentWatch
from spindle.store import Store
from tests.campaigns.small import ready
from tests.program import Ended, started
from tests.workbench import Workbench, mounted_devices

Invoke = Callable[..., Ended]
DEADLINE_S = 60.0
NAMES = """
workload = "metadata"
options = { nrfiles = 60, directories = 4 }
[factors.workers]
sets = "options.workers"
values = [1, 2]
[trials]
count = 2
metric = "create/iops"
tolerate = ["cache-share", "littles-law", "settings"]
"""
MATRIX = """
workload = "iozone"
options = { filesize = "1MiB" }
[factors.size]
sets = "options.size"
values = ["4KiB", "64KiB"]
[trials]
count = 1
repeats = 0
tolerate = ["cache-share", "littles-law", "settings", "other-io", "late"]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(NAMES)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "here"
    found.mkdir()
    return found


def records(store: Store, name: str = "plan") -> list[PhasesRecord]:
    found = [one.record for one in store.select(f"campaign:{name}")]
    assert all(isinstance(one, PhasesRecord) for one in found)
    return found  # type: ignore[return-value]


def test_each_trial_has_files_of_its_own_in_the_folder_and_leaves_none(
    invoke: Invoke, plan: Path, folder: Path, store: Store
) -> None:
    done = invoke("run", str(plan), "--target", str(folder))
    assert done.status == 0, done
    assert "create/iops" in done.out
    found = records(store)
    assert len(found) == 4
    for record in found:
        assert {phase.name: phase.requests for phase in record.phases}["create"] == 60
        assert record.target.kind == "directory"
    assert list(folder.iterdir()) == []


def test_file_systems_are_compared_by_a_workload_of_phases(
    invoke: Invoke, bench: Workbench, tmp_path: Path, store: Store
) -> None:
    device = bench.loop(size=400 << 20)
    path = tmp_path / "plan.toml"
    path.write_text(MATRIX.replace('sets = "options.size"', 'sets = "filesystem.type"').replace("4KiB", "ext4", 1)
                    .replace("64KiB", "xfs"))  # fmt: skip
    done = invoke("run", str(path), "--target", device, "--erase", device, "--yes")
    assert done.status == 0, done
    found = {one.cell["size"]: one.record.target.detail["file_system"] for one in store.select("campaign:plan")}  # type: ignore[union-attr]
    assert found == {"ext4": "ext4", "xfs": "xfs"}
    assert device not in mounted_devices()


def test_modelled_phases_are_the_same_however_they_are_computed(store: Store) -> None:
    modelled = MATRIX.replace('"1MiB"', '"8MiB", direct = true')
    found = ready('target = "one-sata"\n' + modelled, "trials=2", name="plan")
    carry_out(begin(found, store, "one"), found, store, SilentWatch())
    carry_out(begin(found, store, "two"), found, store, SilentWatch(), RunOptions(jobs=2))
    assert store.campaigns.fingerprint("one") == store.campaigns.fingerprint("two")
    assert [len(record.phases) for record in records(store, "one")] == [8] * 4


def test_a_phase_that_is_invalid_makes_the_trial_so(invoke: Invoke, plan: Path, tmp_path: Path, store: Store) -> None:
    (tmp_path / "short.toml").write_text(
        "[[phase]]\nname = 'long'\nseconds = 1\n[[phase]]\nname = 'brief'\nseconds = 0.0001\n"
    )
    plan.write_text("target = 'one-sata'\nworkload = 'short.toml'\n[trials]\ncount = 1\nrepeats = 0\n")
    assert invoke("run", str(plan)).status == 1
    [attempt] = store.campaigns.attempts("plan")
    assert attempt.state == "invalid"
    assert attempt.reason.startswith("too-short: no request was completed")


def test_what_a_killed_trial_left_in_the_folder_is_removed_at_resume(
    invoke: Invoke, plan: Path, folder: Path, tmp_path: Path, place: Path
) -> None:
    slow = plan.read_text().replace('workload = "metadata"', f'target = "{folder}"\nworkload = "slow.toml"')
    plan.write_text(slow.replace('metric = "create/iops"\n', "").replace("nrfiles = 60, directories = 4", ""))
    (tmp_path / "slow.toml").write_text("seconds = 300\n[[files]]\nfilesize = '1MiB'\n")
    process = started("campaign", "run", str(plan), "--quiet", cwd=tmp_path)
    deadline = time.monotonic() + DEADLINE_S
    while not list(folder.glob("spindle-test-*")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    left = set(folder.iterdir())
    assert left
    again = started("campaign", "resume", "plan", "--quiet", cwd=tmp_path)
    while left & set(folder.iterdir()) and time.monotonic() < deadline:
        assert again.poll() is None
        time.sleep(0.02)
    again.send_signal(signal.SIGINT)
    again.communicate(timeout=DEADLINE_S)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            "about=small files",
            "metadata makes files of its own; name a folder as target, or a device with `filesystem`",
        ),
        ("create=1MiB", "create: makes one test file; metadata makes files of its own; leave it out"),
        ("filesystem.size=10%", "filesystem.size: metadata makes files of its own; set options.filesize"),
    ],
)
def test_a_place_that_cannot_hold_the_files_is_one_line(
    invoke: Invoke, plan: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, change: str, complaint: str
) -> None:
    monkeypatch.chdir(folder)
    (folder / "t.bin").write_bytes(b"")
    target = "t.bin" if change.startswith("about") else "."
    done = invoke("run", str(plan), "--target", target, "--set", change)
    assert done.status == 2
    assert complaint in done.complaint
    assert len(done.complaint.splitlines()) == 1


def test_one_file_in_a_folder_needs_a_size(invoke: Invoke, plan: Path, folder: Path) -> None:
    plan.write_text("workload = 'seeker'\n[options]\nseconds = 0.1\n")
    done = invoke("run", str(plan), "--target", str(folder))
    assert done.status == 2
    assert "is a folder; `create` says how large a test file to make in it" in done.complaint
