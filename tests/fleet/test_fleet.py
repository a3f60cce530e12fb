"""Two hosts in network namespaces, by ssh: a common start, and every way to lose one."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from spindle import _core
from spindle.result.record import RunRecord
from spindle.store import open_store
from tests.conftest import checksum
from tests.fleet.conftest import Namespace, nothing_runs
from tests.program import Ended, ended, spindle, started, wait_until
from tests.workbench import Workbench

READS = ("--write-fraction", "0", "--workers", "2")
Pair = tuple[Namespace, Namespace]


@pytest.fixture
def fleet(here: Path, binary: Path, bench: Workbench) -> Path:
    return here


def write(folder: Path, *entries: str) -> None:
    (folder / "hosts.toml").write_text("".join(entries))


def command(binary: Path, *arguments: str, workload: str = "randomio") -> list[str]:
    return ["fleet", "run", workload, "--hosts", "hosts.toml", "--store", "store.db", "--agent", str(binary),
            "--name", "one", *arguments]  # fmt: skip


def states(folder: Path) -> dict[str, tuple[str, int]]:
    """State and attempts of each host's trial."""
    with open_store(folder / "store.db", read_only=True) as store:
        return {trial.cell["host"]: (trial.state, trial.attempts) for trial in store.campaigns.trials("one")}


def test_both_begin_together_on_their_own_devices_and_the_sum_is_exact(
    two: Pair, fleet: Path, binary: Path, bench: Workbench
) -> None:
    alpha, beta = two
    write(fleet, alpha.entry(bench.loop()), beta.entry(bench.loop()))
    done = spindle(*command(binary, *READS, "--seconds", "1", "--json"), cwd=fleet)
    assert done.status in (0, 1), done.err
    assert states(fleet).keys() == {"alpha", "beta"}
    with open_store(fleet / "store.db", read_only=True) as store:
        runs = [store.record(trial.run_id or "") for trial in store.campaigns.trials("one")]
        noted = store.campaigns.get("one").detail["hosts"]
    for host in noted.values():
        assert len(host["skews_ns"]) == 1
        assert abs(host["skews_ns"][0]) <= 5_000_000
        assert 0 < host["clock_error_ns"] < 50_000_000
    if done.status == 0:
        [phase] = done.json["phases"]
        counts: Counter[int] = Counter()
        for run in runs:
            assert isinstance(run, RunRecord)
            read = run.figures.streams[0].read
            assert read is not None
            counts.update(dict(_core.histogram_counts(read.latency.histogram)))
        merged = phase["merged"]["read"]
        assert dict(_core.histogram_counts(merged["histogram"])) == counts
        assert (
            merged["requests"]
            == counts.total()
            == sum(run.figures.requests for run in runs if isinstance(run, RunRecord))
        )
    again = spindle("fleet", "compare", "one", "--store", "store.db", cwd=fleet)
    assert {"alpha", "beta"} <= {line.split()[0] for line in again.out.splitlines() if line.split()} or done.status == 1


def test_a_host_that_is_killed_in_the_middle_is_named_and_does_not_spoil_the_other(
    two: Pair, fleet: Path, binary: Path
) -> None:
    alpha, beta = two
    write(fleet, alpha.entry("null:1GiB"), beta.entry("null:1GiB"))
    process = started(*command(binary, *READS, "--seconds", "3"), cwd=fleet)
    wait_until(lambda: not nothing_runs(beta))
    time.sleep(1.5)
    beta.kill("session")
    done = ended(process)
    assert done.status == 1
    assert "beta" in done.err
    assert states(fleet)["alpha"] == ("done", 1)
    assert states(fleet)["beta"] == ("failed", 1)
    assert nothing_runs(alpha, beta)


def test_another_version_is_refused_before_it_gets_a_load(two: Pair, fleet: Path, binary: Path) -> None:
    alpha, beta = two
    old = fleet / "old-agent"
    hello = json.dumps({"kind": "hello", "protocol": 2, "version": "0.0.9", "host": {}, "at_ns": 0})
    old.write_text(f"#!/bin/sh\necho '{hello}'\ncat >{fleet}/orders\n")
    old.chmod(0o755)
    write(fleet, alpha.entry("null:1GiB"), beta.entry("null:1GiB", agent=str(old)))
    done = spindle(*command(binary, *READS, "--seconds", "0.5"), cwd=fleet)
    assert done.status == 2
    assert "version 0.0.9" in done.out
    assert '"run"' not in (fleet / "orders").read_text()
    assert states(fleet)["beta"] == ("planned", 0)


def test_a_refusal_of_one_host_is_its_own(two: Pair, fleet: Path, binary: Path, bench: Workbench) -> None:
    alpha, beta = two
    free, used = bench.loop(), bench.loop()
    bench.run("mkfs.ext4", "-q", used)
    kept = bench.mount(used) / "kept"
    kept.write_bytes(bytes(range(256)) * 4096)
    os.sync()
    write(fleet, alpha.entry(free), beta.entry(used))
    consent = ("--erase", f"alpha:{free}", "--erase", f"beta:{used}", "--erase-content", "beta")
    done = spindle(*command(binary, *consent, "--seconds", "0.5"), cwd=fleet)
    assert done.status == 3
    assert f"beta: {used}: is " in done.out
    assert states(fleet)["beta"] == ("planned", 1)
    assert states(fleet)["alpha"][1] == 1
    bench.run("blockdev", "--flushbufs", used)
    assert kept.read_bytes() == bytes(range(256)) * 4096


def test_all_or_none_starts_nothing_without_every_host(two: Pair, fleet: Path, binary: Path, bench: Workbench) -> None:
    alpha, beta = two
    device = bench.loop()
    before = checksum(device)
    write(fleet, alpha.entry(device), beta.entry("/nowhere"))
    done = spindle(
        *command(binary, "--seconds", "1", "--erase", f"alpha:{device}", "--erase", "beta:/nowhere", "--all-or-none"),
        cwd=fleet,
    )
    assert done.status in (1, 2)
    assert "not started" in done.out
    assert checksum(device) == before
    assert states(fleet)["alpha"] == ("planned", 1)


def test_a_killed_run_stops_everywhere_and_no_load_begins_twice_unasked(
    two: Pair, fleet: Path, binary: Path, bench: Workbench
) -> None:
    alpha, beta = two
    device = bench.loop()
    write(fleet, alpha.entry(device), beta.entry("null:1GiB"))
    consent = ("--erase", f"alpha:{device}", "--erase-content", "alpha")
    process = started(*command(binary, *consent, "--seconds", "30"), cwd=fleet)
    wait_until(lambda: not nothing_runs(alpha) and not nothing_runs(beta))
    time.sleep(1.0)
    process.kill()
    ended(process)
    wait_until(lambda: nothing_runs(alpha, beta), seconds=10)
    written = checksum(device)
    resume = ("fleet", "resume", "one", "--hosts", "hosts.toml", "--store", "store.db", "--agent", str(binary))
    done = spindle(*resume, *consent, cwd=fleet)
    assert done.status == 1
    assert "whether the load ran is not known" in done.out
    assert states(fleet) == {"alpha": ("failed", 1), "beta": ("failed", 1)}
    assert checksum(device) == written


def test_ctrl_c_keeps_the_figures_up_to_then(two: Pair, fleet: Path, binary: Path) -> None:
    alpha, beta = two
    write(fleet, alpha.entry("null:1GiB"), beta.entry("null:1GiB"))
    process = started(*command(binary, *READS, "--seconds", "30"), cwd=fleet)
    wait_until(lambda: not nothing_runs(alpha) and not nothing_runs(beta))
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    done: Ended = ended(process)
    assert done.status == 1
    assert "interrupted" in done.out
    assert nothing_runs(alpha, beta)
    with open_store(fleet / "store.db", read_only=True) as store:
        for trial in store.campaigns.trials("one"):
            record = store.record(trial.run_id or "")
            assert isinstance(record, RunRecord)
            assert record.figures.requests > 0


def test_hosts_that_cannot_be_reached_are_named_with_the_reason_of_ssh(two: Pair, fleet: Path, binary: Path) -> None:
    alpha, _ = two
    gone = (
        '[[host]]\nname = "gone"\nssh = "nobody@127.0.0.1"\noptions = ["-F", "none", "-p", "9"]\ntarget = "/dev/null"\n'
    )
    write(fleet, alpha.entry("null:1GiB"), gone)
    done = spindle(*command(binary, *READS, "--seconds", "0.5"), cwd=fleet)
    assert done.status == 1
    assert "gone: the connection ended: " in done.out
    assert states(fleet)["gone"] == ("planned", 0)
    assert states(fleet)["alpha"] == ("done", 1)
