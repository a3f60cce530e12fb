"""Settings that campaigns change on hosts: put back after each trial, whatever is killed in the middle of one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from spindle.store import open_store
from tests.fleet.conftest import Namespace, nothing_runs
from tests.fleet.test_campaigns import Pair, begun, command, trials, write_hosts, write_plan
from tests.program import ended, spindle, started, wait_until
from tests.queue import Queue
from tests.workbench import Workbench

SCHEDULERS = '[factors.scheduler]\nsets = "knobs.scheduler"\nvalues = ["mq-deadline", "bfq"]\n'
CHANGED = "mq-deadline"


@pytest.fixture
def disks(two: Pair, here: Path, bench: Workbench) -> tuple[Queue, Queue]:
    """The queues of both hosts' devices; the plan changes their scheduler."""
    alpha, beta = two
    devices = bench.loop(), bench.loop()
    write_plan(here, count=1, more='[knobs]\nscheduler = "mq-deadline"\n')
    write_hosts(here, alpha.entry(devices[0]), beta.entry(devices[1]))
    return Queue(Path(devices[0]).name), Queue(Path(devices[1]).name)


def scheduler(queue: Queue) -> str:
    return queue["scheduler"]


def journals(host: Namespace) -> list[Path]:
    return list((host.folder / "state").glob("spindle/knobs/*.journal"))


@contextmanager
def in_a_trial(here: Path, binary: Path, *queues: Queue) -> Iterator[subprocess.Popen[str]]:
    """A campaign in the middle of its first load, with the settings changed."""
    process = started(*command(binary, "run", "sizes.toml", "--set", "seconds=4"), cwd=here)
    wait_until(lambda: bool(begun(here)) and all(scheduler(one) == CHANGED for one in queues))
    time.sleep(0.7)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def test_a_host_changes_settings_for_a_trial_and_puts_them_back(
    two: Pair, here: Path, binary: Path, bench: Workbench
) -> None:
    devices = bench.loop(), bench.loop()
    queues = [Queue(Path(one).name) for one in devices]
    before = [one.settings() for one in queues]
    write_plan(here, count=1, more=SCHEDULERS)
    write_hosts(here, *(host.entry(device) for host, device in zip(two, devices, strict=True)))
    done = spindle(*command(binary, "run", "sizes.toml"), cwd=here)
    assert done.status == 0, done.err
    found = trials(here)
    assert {(one.state, one.attempts) for one in found} == {("done", 1)}
    with open_store(here / "store.db", read_only=True) as store:
        for one in found:
            text = msgspec.json.encode(store.record(one.run_id or "")).decode()
            name = Path(devices[one.cell["host"] == "beta"]).name
            assert f'"{name}.scheduler":"{one.cell["scheduler"]}"' in text, one.cell
    assert [one.settings() for one in queues] == before
    assert not journals(two[0])
    assert nothing_runs(*two)


@pytest.mark.parametrize("victim", ["session", "spindle-agent keep"])
def test_settings_are_back_after_the_agent_or_its_keeper_is_killed(
    victim: str, two: Pair, here: Path, binary: Path, disks: tuple[Queue, Queue]
) -> None:
    before = disks[1].settings()
    with in_a_trial(here, binary, *disks) as process:
        two[1].kill(victim)
        if victim == "session":
            wait_until(lambda: disks[1].settings() == before, seconds=10)
        done = ended(process)
        assert done.status == 0, done.err
        if victim == "session":
            assert "beta: its settings are back, although its agent was lost" in done.err
    assert disks[1].settings() == before
    assert not journals(two[1])
    assert nothing_runs(*two)


def test_settings_are_put_back_by_the_next_session_if_agent_and_keeper_are_killed(
    two: Pair, here: Path, binary: Path, disks: tuple[Queue, Queue]
) -> None:
    before = disks[1].settings()
    with in_a_trial(here, binary, *disks) as process:
        for victim in ("spindle-agent keep", "session"):
            two[1].kill(victim)
        wait_until(lambda: disks[1].settings() == before, seconds=10)
        done = ended(process)
    assert f"beta: restored after its agent was killed: {disks[1].name}.scheduler: none again" in done.err
    assert disks[1].settings() == before


@pytest.mark.parametrize("victim", ["ssh", "spindle"])
def test_settings_are_back_10_s_after_ssh_or_the_campaign_is_killed(
    victim: str, two: Pair, here: Path, binary: Path, disks: tuple[Queue, Queue]
) -> None:
    before = [one.settings() for one in disks]
    with in_a_trial(here, binary, *disks) as process:
        if victim == "ssh":
            for pid in subprocess.check_output(["pgrep", "--parent", str(process.pid), "ssh"], text=True).split():
                os.kill(int(pid), signal.SIGKILL)
        process.kill()
        wait_until(lambda: [one.settings() for one in disks] == before, seconds=10)
    wait_until(lambda: nothing_runs(*two), seconds=10)
    assert not journals(two[0])


def test_a_host_that_is_cut_off_puts_its_settings_back_and_the_campaign_tells(
    two: Pair, here: Path, binary: Path, disks: tuple[Queue, Queue]
) -> None:
    alpha, beta = two
    before = disks[1].settings()
    cut = ["ip", "-n", beta.namespace, "link", "set", "eth0"]
    with in_a_trial(here, binary, *disks) as process:
        subprocess.run([*cut, "down"], check=True)
        try:
            wait_until(lambda: disks[1].settings() == before, seconds=10)
            done = ended(process, timeout=90)
        finally:
            subprocess.run([*cut, "up"], check=True)
    assert "beta: lost while settings of it were changed" in done.err
    assert "`spindle-agent restore` there says so" in done.err
    assert {one.state for one in trials(here) if one.cell["host"] == "alpha"} == {"done"}
    wait_until(lambda: nothing_runs(alpha, beta), seconds=10)


def killed_with_everything(two: Pair, here: Path, binary: Path, disks: tuple[Queue, Queue]) -> None:
    """Leaves the settings of beta changed."""
    with in_a_trial(here, binary, *disks) as process:
        process.send_signal(signal.SIGSTOP)
        for victim in ("spindle-agent keep", "session"):
            two[1].kill(victim)
        process.kill()
    assert scheduler(disks[1]) == CHANGED


def test_spindle_agent_restore_undoes_what_everything_killed_has_left(
    two: Pair, here: Path, binary: Path, disks: tuple[Queue, Queue]
) -> None:
    killed_with_everything(two, here, binary, disks)
    state = {**os.environ, "XDG_STATE_HOME": str(two[1].folder / "state")}
    said = subprocess.check_output([binary, "restore"], text=True, env=state)
    assert f"{disks[1].name}.scheduler: none again" in said
    assert scheduler(disks[1]) == "none"
    assert "nothing to put back" in subprocess.check_output([binary, "restore"], text=True, env=state)


def test_spindle_restore_understands_the_agents_journal(
    two: Pair, here: Path, binary: Path, disks: tuple[Queue, Queue], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_with_everything(two, here, binary, disks)
    monkeypatch.setenv("XDG_STATE_HOME", str(two[1].folder / "state"))
    done = spindle("restore")
    assert f"{disks[1].name}.scheduler: none again" in done.out, done.err
    assert scheduler(disks[1]) == "none"
    assert not journals(two[1])


def test_a_value_that_somebody_else_sets_during_a_trial_is_told_and_left(
    two: Pair, here: Path, binary: Path, bench: Workbench
) -> None:
    device = bench.loop()
    ahead = Path(f"/sys/block/{Path(device).name}/queue/read_ahead_kb")
    write_plan(here, count=1, more="[knobs]\nread_ahead_kb = 256\n")
    write_hosts(here, two[0].entry(device), two[1].entry("null:1GiB"))
    refused = spindle(*command(binary, "run", "sizes.toml"), cwd=here)
    assert (refused.status, "knobs.read_ahead_kb: null:1GiB is no device" in refused.err) == (2, True), refused.err
    write_hosts(here, two[0].entry(device))
    process = started(*command(binary, "run", "sizes.toml", "--set", "seconds=2"), cwd=here)
    wait_until(lambda: ahead.read_text() == "256\n")
    time.sleep(0.5)
    ahead.write_text("512")
    done = ended(process)
    assert "read_ahead_kb: conflict: 512 now" in done.err
    assert not journals(two[0])


@pytest.mark.parametrize(
    ("knobs", "status", "said"),
    [
        ("md/stripe_cache_size = 256", 2, "has no `stripe_cache_size`"),
        ("iosched.fifo_batch = 1", 2, "the scheduler `none` has no such parameter"),
        ("nomerges = 2\nvm.min_free_kbytes = 99999999999", 3, "more than a tenth of the memory"),
    ],
)
def test_settings_that_a_host_cannot_have_are_one_line_and_change_nothing(
    knobs: str, status: int, said: str, two: Pair, here: Path, binary: Path, bench: Workbench
) -> None:
    device = bench.loop()
    queue = Queue(Path(device).name)
    before = queue.settings()
    lines = "\n".join(f'"{line.split(" = ")[0]}" = {line.split(" = ")[1]}' for line in knobs.splitlines())
    write_plan(here, count=1, more=f"[knobs]\n{lines}\n")
    write_hosts(here, two[0].entry(device))
    done = spindle(*command(binary, "run", "sizes.toml"), cwd=here)
    assert done.status == status, done.err
    assert said in done.err
    assert queue.settings() == before
    assert {one.state for one in trials(here)} == {"planned"}
