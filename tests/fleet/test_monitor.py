"""Two hosts watched at the same time, and every way to lose one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.conftest import Namespace, nothing_runs
from tests.program import Ended, ended, spindle, started, wait_until
from tests.workbench import Workbench

Pair = tuple[Namespace, Namespace]


@pytest.fixture
def files(here: Path, two: Pair) -> Path:
    (here / "hosts.toml").write_text("".join(one.entry("null:1GiB") for one in two))
    return here


def monitor(binary: Path, *arguments: str) -> list[str]:
    return ["monitor", *arguments, "--hosts", "hosts.toml", "--agent", str(binary), "--output", "rows.csv"]


def intervals_in(files: Path) -> int:
    """Intervals that are over."""
    rows = files / "rows.csv"
    times = {line.partition(",")[0] for line in rows.read_text().splitlines()[1:]} if rows.exists() else set()
    return len(times)


def objects(done: Ended) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_devices_of_all_hosts_stand_side_by_side(files: Path, two: Pair, binary: Path, bench: Workbench) -> None:
    """The namespaces share the kernel, so both hosts must count the same requests of a device."""
    device, other = bench.loop(), bench.loop()
    name = device.removeprefix("/dev/")
    names = (f"alpha:{device}", f"beta:{name}", f"beta:{other}")
    process = started(*monitor(binary, *names, "--interval", "0.5", "--json"), cwd=files)
    wait_until(lambda: intervals_in(files) > 0)
    subprocess.run(["dd", f"if={device}", "of=/dev/null", "bs=4k", "count=512", "iflag=direct"], check=True,
                   capture_output=True)  # fmt: skip
    before = intervals_in(files)
    wait_until(lambda: intervals_in(files) > before + 1)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert done.status == 0, done.err
    *intervals, last = objects(done)
    for one in intervals:
        assert set(one["devices"]) == {f"alpha:{name}", f"beta:{name}", f"beta:{other.removeprefix('/dev/')}"}
        assert set(one["hosts"]) == {"alpha", "beta"}
        assert one["hosts"]["alpha"]["id"] is not None
    totals = [
        sum(one["devices"][f"{host}:{name}"]["r/s"] * one["elapsed_s"] for one in intervals)
        for host in ("alpha", "beta")
    ]
    assert totals[0] == pytest.approx(512, rel=0.05)
    assert totals[1] == pytest.approx(512, rel=0.05)
    assert last["summary"]["hosts"].keys() == {"alpha", "beta"}
    rows = (files / "rows.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * len(intervals)
    assert nothing_runs(*two)


def test_rows_name_the_hosts_and_without_names_all_disks_are_there(files: Path, binary: Path, bench: Workbench) -> None:
    device = bench.loop()
    Path(device).read_bytes()
    done = spindle(*monitor(binary, "--count", "1", "--interval", "0.3"), cwd=files)
    assert done.status == 0, done.err
    name = device.removeprefix("/dev/")
    for host in ("alpha", "beta"):
        assert any(line.startswith(f"{host}:{name} ") for line in done.out.splitlines())
        assert any(line.startswith(f"{host} mean ") for line in done.out.splitlines())


def test_a_host_that_is_lost_is_named_and_the_other_goes_on(files: Path, two: Pair, binary: Path) -> None:
    _, beta = two
    process = started(*monitor(binary, "--interval", "0.3", "--json"), cwd=files)
    wait_until(lambda: intervals_in(files) > 0)
    beta.kill("session")
    before = intervals_in(files)
    wait_until(lambda: intervals_in(files) > before + 3)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    *intervals, _ = objects(done)
    assert done.status == 1
    assert [list(one["lost"]) for one in intervals if one["lost"]] == [["beta"]]
    assert set(intervals[-1]["hosts"]) == {"alpha"}


def test_no_host_is_one_line(files: Path, two: Pair, binary: Path) -> None:
    process = started(*monitor(binary, "--interval", "0.5"), cwd=files)
    wait_until(lambda: intervals_in(files) > 0)
    for host in two:
        host.kill("session")
    done = ended(process)
    assert done.status == 1
    assert len(done.err.splitlines()) == 1
    assert "the connection ended" in done.err


@pytest.mark.parametrize(
    ("name", "says"),
    [("gamma:sda", "no such host"), ("alpha:nowhere", "no block device of alpha"), ("nowhere", "of any host")],
)
def test_wrong_names_are_one_line(name: str, says: str, files: Path, two: Pair, binary: Path) -> None:
    done = spindle(*monitor(binary, name, "--count", "1"), cwd=files)
    assert done.status == 2
    assert len(done.err.splitlines()) == 1
    assert says in done.err
    wait_until(lambda: nothing_runs(*two))


def test_a_store_is_refused(files: Path, binary: Path) -> None:
    done = spindle(*monitor(binary, "--count", "1"), "--store", "store.db", cwd=files)
    assert done.status == 2
    assert "a recording is of one machine" in done.err
    assert "give --output" in done.err


def test_nothing_runs_on_the_hosts_after_a_kill(files: Path, two: Pair, binary: Path) -> None:
    process = started(*monitor(binary, "--interval", "0.5"), cwd=files)
    wait_until(lambda: intervals_in(files) > 0)
    os.kill(process.pid, signal.SIGKILL)
    ended(process)
    wait_until(lambda: nothing_runs(*two))


def test_an_ending_signal_ends_with_the_summary(files: Path, two: Pair, binary: Path) -> None:
    process = started(*monitor(binary, "--interval", "0.2", "--json"), cwd=files)
    wait_until(lambda: intervals_in(files) > 0)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert done.status == 0, done.err
    assert "summary" in objects(done)[-1]
    assert nothing_runs(*two)
