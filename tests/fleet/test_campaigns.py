"""Campaigns on two hosts in network namespaces: the same trials on each, and every way to lose one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from spindle.base.errors import SpindleError
from spindle.result.record import RunRecord
from spindle.store import Trial, open_store
from tests.conftest import checksum
from tests.fleet.conftest import Namespace, nothing_runs
from tests.program import Invoke, ended, spindle, started, wait_until
from tests.workbench import Workbench

Pair = tuple[Namespace, Namespace]

PLAN = """\
workload = "randomio"

[options]
seconds = 0.2
workers = 1
write-fraction = {writes}

[factors.size]
sets = "options.size"
values = ["4KiB", "16KiB"]

[trials]
count = {count}
metric = "iops"
"""


@pytest.fixture
def plan(here: Path) -> Path:
    write_plan(here)
    return here


def write_plan(folder: Path, *, count: int = 2, writes: float = 0, more: str = "") -> None:
    text = PLAN.format(count=count, writes=writes).replace("write-fraction", "write_fraction")
    (folder / "sizes.toml").write_text(text + more)


def write_hosts(folder: Path, *entries: str) -> None:
    (folder / "hosts.toml").write_text("".join(entries))


def command(binary: Path, verb: str, *arguments: str) -> list[str]:
    means = ["--hosts", "hosts.toml", "--store", "store.db", "--agent", str(binary), "--quiet"]
    return ["campaign", verb, *arguments, *means]


def trials(folder: Path) -> list[Trial]:
    with open_store(folder / "store.db", read_only=True) as store:
        return store.campaigns.trials("sizes")


def begun(folder: Path) -> list[int]:
    """Numbers of the trials that run."""
    try:
        return [one.number for one in trials(folder) if one.state == "running"]
    except SpindleError:
        return []  # not there yet


def order_of(found: list[Trial], host: str) -> list[tuple[int, str]]:
    return [(one.block, one.cell["size"]) for one in found if one.cell["host"] == host]


def test_every_host_has_the_same_trials_in_the_same_order_and_they_are_compared(
    two: Pair, plan: Path, binary: Path
) -> None:
    alpha, beta = two
    write_hosts(plan, alpha.entry("null:1GiB"), beta.entry("null:1GiB"))
    done = spindle(*command(binary, "run", "sizes.toml", "--json"), cwd=plan)
    assert done.status == 0, done.err
    found = trials(plan)
    assert len(found) == 8
    assert order_of(found, "alpha") == order_of(found, "beta")
    assert {(one.state, one.attempts) for one in found} == {("done", 1)}
    assert done.json["factors"]["host"] == ["alpha", "beta"]
    assert [(one["cell"]["size"], one["cell"]["host"], one["done"]) for one in done.json["cells"]] == [
        ("4KiB", "alpha", 2), ("4KiB", "beta", 2), ("16KiB", "alpha", 2), ("16KiB", "beta", 2),
    ]  # fmt: skip
    side_by_side = spindle("compare", "campaign:sizes", "--store", "store.db", cwd=plan)
    assert "host" in side_by_side.out.split("Effect of each factor")[1], side_by_side.err
    with open_store(plan / "store.db", read_only=True) as store:
        records = [store.record(one.run_id or "") for one in found if (one.block, one.cell["size"]) == (1, "4KiB")]
    seeds = [record.workload.seed for record in records if isinstance(record, RunRecord)]
    assert len(seeds) == 2
    assert len(set(seeds)) == 1
    assert nothing_runs(alpha, beta)


def test_a_host_that_cannot_be_reached_is_named_and_its_trials_are_left_to_resume(
    two: Pair, plan: Path, binary: Path
) -> None:
    alpha, beta = two
    write_plan(plan, count=1)
    gone = (
        beta.entry("null:1GiB")
        .replace(f"root@{beta.address}", "nobody@127.0.0.1")
        .replace("options = [", 'options = ["-p", "9", ')
    )
    write_hosts(plan, alpha.entry("null:1GiB"), gone)
    done = spindle(*command(binary, "run", "sizes.toml"), cwd=plan)
    assert done.status == 1
    assert "campaign sizes: lost beta; beta: the connection ended: " in done.err
    assert {(one.cell["host"], one.state) for one in trials(plan)} == {("alpha", "done"), ("beta", "planned")}
    write_hosts(plan, alpha.entry("null:1GiB"), beta.entry("null:1GiB"))
    again = spindle(*command(binary, "resume"), cwd=plan)
    assert again.status == 0, again.err
    assert {(one.state, one.attempts) for one in trials(plan)} == {("done", 1)}


def test_an_agent_that_is_killed_costs_one_attempt_and_the_other_host_none(two: Pair, plan: Path, binary: Path) -> None:
    alpha, beta = two
    write_plan(plan, count=1)
    write_hosts(plan, alpha.entry("null:1GiB"), beta.entry("null:1GiB"))
    process = started(*command(binary, "run", "sizes.toml", "--set", "seconds=1"), cwd=plan)
    wait_until(lambda: bool(begun(plan)))
    time.sleep(0.5)
    beta.kill("session")
    done = ended(process)
    assert done.status == 0, done.err
    assert "beta: trial " in done.err
    assert sorted(one.attempts for one in trials(plan) if one.cell["host"] == "beta") == [1, 2]
    assert {one.attempts for one in trials(plan) if one.cell["host"] == "alpha"} == {1}


def test_a_killed_campaign_stops_everywhere_and_no_load_that_destroys_begins_twice(
    two: Pair, plan: Path, binary: Path, bench: Workbench
) -> None:
    alpha, beta = two
    device = bench.loop()
    write_plan(plan, count=1, writes=1)
    write_hosts(plan, alpha.entry(device), beta.entry("null:1GiB"))
    consent = ("--erase", f"alpha:{device}", "--erase-content", "alpha")
    process = started(*command(binary, "run", "sizes.toml", "--set", "seconds=20", *consent), cwd=plan)
    before = checksum(device)
    wait_until(lambda: checksum(device) != before)
    process.kill()
    ended(process)
    wait_until(lambda: nothing_runs(alpha, beta), seconds=10)
    before_kill = begun(plan)
    (first,) = [one for one in trials(plan) if one.number in before_kill and one.cell["host"] == "alpha"]
    again = started(*command(binary, "resume", *consent), cwd=plan)
    wait_until(lambda: trials(plan)[first.number - 1].state == "failed" and bool(begun(plan)))
    time.sleep(0.3)
    again.terminate()
    stopped = ended(again)
    assert (stopped.status, "stopped by SIGTERM" in stopped.err) == (1, True), stopped.err
    found = {one.number: one for one in trials(plan)}
    assert (found[first.number].state, found[first.number].attempts) == ("failed", 1)
    assert "whether the load ran is not known" in found[first.number].reason
    assert {one.state for one in found.values()} <= {"failed", "planned"}
    assert nothing_runs(alpha, beta)


def test_a_host_that_refuses_is_lost_and_the_others_go_on(
    two: Pair, plan: Path, binary: Path, bench: Workbench
) -> None:
    alpha, beta = two
    used = bench.loop()
    bench.run("mkfs.ext4", "-q", used)
    kept = bench.mount(used) / "kept"
    kept.write_bytes(bytes(range(256)) * 4096)
    write_plan(plan, count=1, writes=1)
    write_hosts(plan, alpha.entry("null:1GiB"), beta.entry(used))
    done = spindle(
        *command(binary, "run", "sizes.toml", "--erase", f"beta:{used}", "--erase-content", "beta"), cwd=plan
    )
    assert done.status == 3
    assert f"beta: {used}: is " in done.err
    assert {(one.cell["host"], one.state) for one in trials(plan)} == {("alpha", "done"), ("beta", "planned")}
    bench.run("blockdev", "--flushbufs", used)
    assert kept.read_bytes() == bytes(range(256)) * 4096


CPUS = '[factors.clock]\nsets = "knobs.cpu.governor"\nvalues = ["performance", "powersave"]\n'
EACH = '[factors.clock]\nsets = "knobs.loop0.scheduler"\nvalues = ["none", "bfq"]\n'
WRONG = '[factors.ahead]\nsets = "knobs.read_ahead_kb"\nvalues = [128, -1]\n'
TARGETS = '[factors.where]\nsets = "target"\nvalues = ["/dev/sda", "/dev/sdb"]\n'


@pytest.mark.parametrize(
    ("more", "writes", "arguments", "said"),
    [
        (CPUS, 0, (), "knobs.cpu.governor: hosts change settings of their target, of vm and of raid"),
        (EACH, 0, (), "no knob `loop0.scheduler`"),
        (WRONG, 0, (), "factors.ahead.sets: read_ahead_kb=-1: not a value of read_ahead_kb"),
        (TARGETS, 0, (), "sizes.toml: factors.where: target: the file of hosts says the target of each"),
        ("", 0, ("--target", "/dev/sdc"), "--target: the file of hosts says the target of each"),
        ("", 0, ("--strict",), "--strict: is for trials on this machine"),
        ("", 0, ("--jobs", "2"), "--jobs: is for trials on this machine"),
        ("", 1, (), "db1: the workload writes to /dev/sdb; agree with --erase db1:/dev/sdb"),
        ("", 1, ("--erase", "db1:/dev/sdc"), "its target is /dev/sdb"),
        ("", 1, ("--erase", "db1:/dev/sdb"), "agree with --erase-content db1 too"),
        ("", 0, ("--erase-signature", "ext4"), "--erase-signature: is for a device of this machine"),
    ],
)
def test_what_hosts_cannot_do_is_refused_before_any_is_asked(
    here: Path, invoke: Invoke, more: str, writes: float, arguments: tuple[str, ...], said: str
) -> None:
    write_plan(here, writes=writes, more=more)
    write_hosts(here, '[[host]]\nname = "db1"\ntarget = "/dev/sdb"\n')
    done = invoke(*command(Path("/bin/true"), "run", "sizes.toml", *arguments))
    assert done.status == 2
    assert said in done.complaint
    with open_store(here / "store.db") as store:
        assert store.campaigns.all() == []


def test_options_of_hosts_need_their_file(here: Path, invoke: Invoke) -> None:
    write_plan(here)
    target = ("--target", "null:1GiB", "--store", "store.db")
    for options, said in ((("--erase-content", "a"), "--erase-content"), (("--erase", "a", "--erase", "b"), "--erase")):
        done = invoke("campaign", "run", "sizes.toml", *target, *options)
        assert done.status == 2
        assert said in done.complaint
