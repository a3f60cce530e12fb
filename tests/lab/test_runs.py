"""Workloads on modelled machines under the real kernel. They need the lab's kernel and spindle-agent (`make lab`)."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

import spindle as library
from spindle.result.record import KneeRecord, PhasesRecord, RunRecord
from tests.program import inside, spindle, started, wait_until


@pytest.fixture
def machine(four: Path, agent: None) -> Path:
    """Four drives as RAID5."""
    return four


def ran(machine: Path, workload: str = "randomio", **keys: Any) -> RunRecord:
    """One second of it."""
    record = library.run(workload, machine, kernel=True, **{"seconds": 1, "workers": 2, "size": "4KiB", **keys}).record
    assert isinstance(record, RunRecord)
    return record


def test_a_run_gives_the_record_of_a_real_one(machine: Path) -> None:
    record = ran(machine)
    assert record.target.traits.has_kernel
    assert record.target.words.startswith(f"{machine} (Linux 6.1.")
    assert record.figures.streams[0].read is not None
    names = {device.name: device.role for device in record.devices}
    assert names == {"md0": "target", "vda": "below", "vdb": "below", "vdc": "below", "vdd": "below"}
    settings = record.settings.before
    assert (settings["md0.md.level"], settings["md0.md.chunk_size"]) == ("raid5", "524288")
    assert settings["vda.scheduler"] == "mq-deadline"
    assert any("md0" in line for line in record.target.detail["kernel_log"])
    checks = {verdict.check for verdict in record.verdicts}
    assert {"cache-share", "other-io", "settings", "littles-law"} <= checks


def test_equal_commands_give_equal_records_and_other_seeds_others(machine: Path) -> None:
    first = ran(machine, seed=3)
    assert ran(machine, seed=3) == first
    other = ran(machine, seed=4)
    assert other.id != first.id
    assert other.figures != first.figures


def test_the_file_is_shown_and_compared(machine: Path, tmp_path: Path) -> None:
    result = tmp_path / "r.json"
    options = ("--seconds", "1", "--size", "4KiB", "-o", str(result))
    assert spindle("run", "randomio", str(machine), "--kernel", *options).status == 0
    assert "on modelled drives" in spindle("show", str(result)).out
    fast = tmp_path / "fast.json"
    assert spindle("run", "randomio", str(machine), *options[:-1], str(fast)).status == 0
    assert "kind model against kernel" in spindle("compare", str(fast), str(result)).out
    assert "--kernel" in spindle("report", str(result)).out


def test_cpu_time_of_a_request_is_a_part_of_its_latency(machine: Path) -> None:
    text = machine.read_text()
    free = ran(machine, workers=1, write_fraction=0).figures.streams[0].read
    machine.write_text(f"[host]\ncpu_per_request = '300us'\n{text}")
    costly = ran(machine, workers=1, write_fraction=0).figures.streams[0].read
    assert free is not None
    assert costly is not None
    assert costly.latency.min_ns - free.latency.min_ns == pytest.approx(300_000, abs=2000)


def test_degraded_and_rebuilt(machine: Path) -> None:
    text = machine.read_text()
    machine.write_text(text.replace('"raid5"', '"raid5"\nmissing = 2'))
    record = ran(machine, write_fraction=0)
    assert record.settings.before["md0.md.degraded"] == "1"
    assert "vdc" not in {device.name for device in record.devices}
    machine.write_text(text.replace('"raid5"', '"raid5"\nrebuild = 2\nsync_speed_min = "20 MB/s"'))
    record = ran(machine, write_fraction=0)
    rebuilt = next(device for device in record.devices if device.name == "vdc")
    assert rebuilt.delta["write_bytes"] > 10_000_000


def test_buffered_reads_of_a_file_system_come_from_the_page_cache(machine: Path) -> None:
    with machine.open("a") as file:
        file.write('[filesystem]\ntype = "xfs"\nsize = "16MiB"\n')
    record = ran(machine, "sdd-read", direct=False, bytes="32MiB")
    assert record.target.detail["file_system"] == "xfs"
    assert record.target.size_bytes == 16 << 20
    assert any(layer["name"] == "xfs" for layer in record.target.detail["stack"])


def test_phases_are_one_boot(machine: Path, tmp_path: Path) -> None:
    workload = tmp_path / "two.toml"
    phases = [f'[[phase]]\nname = "{name}"\nseconds = 0.5\nsize = "4KiB"\n' for name in ("one", "two")]
    workload.write_text("direct = true\n" + "".join(phases))
    record = library.run(workload, machine, kernel=True).record
    assert isinstance(record, PhasesRecord)
    assert [run.workload.name for run in record.runs] == ["one", "two"]
    assert record.runs[0].id != record.runs[1].id
    assert record.target.traits.has_kernel


def test_a_search_boots_for_each_step(machine: Path) -> None:
    knee = library.run("randomio", machine, kernel=True, find_knee=True, seconds=0.2, size="4KiB").record
    assert isinstance(knee, KneeRecord)
    assert len(knee.runs) > 2


def test_a_campaign_varies_the_array(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPINDLE_STORE", str(tmp_path / "store.db"))
    plan = tmp_path / "levels.toml"
    plan.write_text(
        f'target = "{machine}"\nworkload = "randomio"\nkernel = true\n[options]\nseconds = 0.5\n'
        '[factors.level]\nsets = "machine.array.level"\nvalues = ["raid0", "raid5"]\n'
        '[factors.read_ahead]\nsets = "knobs.read_ahead_kb"\nvalues = [64]\n[trials]\ncount = 1\n'
    )
    ended = spindle("campaign", "run", str(plan), "--jobs", "2")
    assert ended.status == 0, ended.err
    assert "2 trials done" in ended.out


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_end_in_the_middle_leaves_nothing(
    machine: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = machine.parent / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    process = started("run", "randomio", str(machine), "--kernel", "--seconds", "600", cwd=machine.parent)
    try:
        wait_until(lambda: bool(inside(folder)))
        time.sleep(0.5)
    finally:
        process.send_signal(how)
        process.communicate()
    assert process.returncode != 0
    wait_until(lambda: not inside(folder) and not list(folder.iterdir()))
