"""Campaigns on real queues of loop devices: knobs turned and put back, a command as the load, scratch file systems."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spindle.campaign.leftovers import TOKEN
from spindle.host.devices import HERE, DevNumber
from spindle.host.mounts import devices_of, own_mounts
from spindle.store import Store, open_store
from tests.program import Ended, started
from tests.queue import Queue
from tests.workbench import Workbench

Invoke = Callable[..., Ended]
DEADLINE_S = 60.0
LOAD = """import os, random, sys
random.seed(1)
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
import mmap
buffer = mmap.mmap(-1, 4096)
while True:
    os.preadv(fd, [buffer], random.randrange(4096) * 4096)
"""
TOLERATE = [
    "achieved-depth", "before-cpu", "before-dirty-pages", "before-other-io", "before-swap", "cache-share", "during-cpu",
    "generator-bound", "late", "littles-law", "other-io", "saturated", "settings", "steady", "too-short",
    "working-set",
]  # fmt: skip
"""Verdicts that a busy machine and a small device may cause; they are not tested here."""
INTERVALS = ("load.interval=0.3s", "load.settle=50ms", "load.sample=100ms", "trials.tolerate=settings")


FAILS = "import sys; sys.exit('no table')"


def sets(*assignments: str) -> list[str]:
    return [word for one in assignments for word in ("--set", one)]


def load(tmp_path: Path, text: str = LOAD) -> str:
    script = tmp_path / "load.py"
    script.write_text(text)
    return f"{sys.executable} {script} {{target}}"


def alive(token_of: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if (
                folder.name.isdigit()
                and token_of in (folder / "cmdline").read_text(errors="replace")
                and TOKEN in (folder / "environ").read_text(errors="replace")
            ):
                found.append(folder.name)
        except OSError:
            continue
    return found


@pytest.mark.promise(13)
def test_elevators_are_switched_under_a_command_that_runs_on_and_put_back(
    invoke: Invoke, queue: Queue, tmp_path: Path, store: Store
) -> None:
    done = invoke(
        "run", "sched-shootout", "--target", f"/dev/{queue.name}", "--load", load(tmp_path),
        *sets(*INTERVALS, "trials=2"), "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["metric"] == "device.r/s"
    assert found["done"] == 8
    assert all(cell["mean"] > 0 for cell in found["cells"])
    assert queue["scheduler"] == "none"
    assert not alive(str(tmp_path))
    for one in store.select("campaign:sched-shootout"):
        settings = one.record.settings.before  # type: ignore[union-attr]
        assert settings[f"{queue.name}.scheduler"] == one.cell["scheduler"]
        checks = {verdict.check for verdict in one.record.verdicts}
        assert {"load", "settings", "before-cpu", "before-jobs", "before-swap"} <= checks
        assert not {"before-other-io", "other-io"} & checks


def test_a_load_that_ends_is_started_again_and_its_interval_does_not_count(
    invoke: Invoke, queue: Queue, tmp_path: Path, store: Store
) -> None:
    brief = LOAD.replace("while True", "import time\nend = time.monotonic() + 0.1\nwhile time.monotonic() < end")
    done = invoke(
        "run", "sched-shootout", "--target", f"/dev/{queue.name}", "--load", load(tmp_path, brief),
        *sets("load.interval=1s", "load.settle=0s", "trials=1", "trials.repeats=0", "scheduler=none"),
    )  # fmt: skip
    assert done.status == 1
    assert store.campaigns.trials("sched-shootout")[0].state == "invalid"
    assert "the load ended in the interval" in done.err


def test_a_load_that_fails_is_reported_with_its_output(invoke: Invoke, queue: Queue, tmp_path: Path) -> None:
    done = invoke(
        "run", "sched-shootout", "--target", f"/dev/{queue.name}", "--load", load(tmp_path, FAILS),
        *sets(*INTERVALS, "trials=1", "trials.repeats=0", "scheduler=none"),
    )  # fmt: skip
    assert done.status == 1
    assert "exit status 1: no table" in done.err


def test_killed_while_a_knob_is_turned_the_campaign_puts_it_back_before_it_goes_on(
    invoke: Invoke, queue: Queue, tmp_path: Path, place: Path
) -> None:
    arguments = ["sched-shootout", "--target", f"/dev/{queue.name}", "--load", load(tmp_path)]
    process = started(
        "campaign",
        "run",
        *arguments,
        *sets("scheduler=bfq", "load.settle=0s", "load.interval=2s", "trials=2", "trials.tolerate=settings"),
        cwd=tmp_path,
    )
    deadline = time.monotonic() + DEADLINE_S
    while queue["scheduler"] != "bfq" and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert queue["scheduler"] == "bfq"
    resumed = invoke("resume", "sched-shootout", "--json")
    assert resumed.status == 0, resumed.err
    assert "restored after a campaign was killed" in resumed.err
    assert queue["scheduler"] == "none"
    assert not alive(str(tmp_path))
    with open_store(place) as store:
        assert [one.state for one in store.campaigns.trials("sched-shootout")] == ["done", "done"]


def test_what_knobs_set_changed_is_left_alone_by_a_campaign(invoke: Invoke, queue: Queue, tmp_path: Path) -> None:
    from spindle.cli.main import invoke as run

    assert run(["knobs", "set", queue.name, "read_ahead_kb=512"]) == 0
    done = invoke(
        "run", "sched-shootout", "--target", f"/dev/{queue.name}", "--load", load(tmp_path),
        *sets(*INTERVALS, "trials=1", "scheduler=bfq,none"),
    )  # fmt: skip
    assert done.status == 0, done.err
    assert queue["read_ahead_kb"] == "512"
    assert run(["restore"]) == 0


def test_a_value_that_the_kernel_makes_another_of_is_not_measured(
    invoke: Invoke, queue: Queue, store: Store, tmp_path: Path
) -> None:
    done = invoke(
        "run", "readahead-sweep", "--target", f"/dev/{queue.name}",
        *sets("trials=1", "seconds=0.2", "read-ahead=129", "streams=1", "trials.tolerate=[]"),
    )  # fmt: skip
    trial = store.campaigns.trials("readahead-sweep")[0]
    if trial.state == "done":
        pytest.skip("this kernel takes any read-ahead")
    assert (trial.state, trial.attempts) == ("failed", 1), done.err
    assert "129" in trial.reason
    assert "the kernel adjusted the value" in trial.reason


@pytest.mark.parametrize("name", ["readahead-sweep", "untuned-vs-tuned", "outer-vs-inner"])
def test_presets_run_on_a_real_queue(invoke: Invoke, queue: Queue, name: str, store: Store) -> None:
    done = invoke(
        "run", name, "--target", f"/dev/{queue.name}",
        *sets("trials=1", "trials.repeats=0", "seconds=0.2", f"trials.tolerate={','.join(TOLERATE)}",
              *(["read-ahead=32,512", "streams=1"] if name == "readahead-sweep" else []),
              *(["options.region=0%-100%", "zone=0%-50%,50%-100%"] if name == "outer-vs-inner" else [])),
        "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert json.loads(done.out)["done"] == 2
    assert queue["scheduler"] == "none"


SCRATCH = """
workload = "randomio"
options = { seconds = 0.1, workers = 1 }
[filesystem]
size = "8MiB"
[factors.type]
sets = "filesystem.type"
values = ["ext4", "xfs"]
[trials]
count = 1
repeats = 0
tolerate = TOLERATE
""".replace("TOLERATE", repr(TOLERATE))


@pytest.fixture
def scratch(bench: Workbench) -> Iterator[str]:
    device = bench.loop(size=400 << 20)
    yield device
    for point in mounts_of(device):
        subprocess.run(["umount", "--lazy", point], check=False)


def mounts_of(device: str) -> list[str]:
    """Where it is mounted, by whatever name."""
    number = DevNumber.of(os.stat(device).st_rdev)
    return [one.point for one in own_mounts(HERE) if number in devices_of(one, HERE)]


def types_on(device: str) -> str:
    return subprocess.run(["blkid", "-p", device], capture_output=True, text=True, check=False).stdout


def test_file_systems_are_made_on_a_device_given_to_be_erased_and_taken_away(
    invoke: Invoke, scratch: str, tmp_path: Path, store: Store
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(SCRATCH)
    refused = invoke("run", str(plan), "--target", scratch)
    assert refused.status == 3
    assert "--erase" in refused.complaint
    assert store.campaigns.all() == []
    preview = invoke("run", str(plan), "--target", scratch, "--dry-run").out
    assert f"{scratch}: all data on it is lost; ext4 is made on it for each trial" in preview
    done = invoke("run", str(plan), "--target", scratch, "--erase", scratch, "--yes", "--json")
    assert done.status == 0, done.err
    found = {one.cell["type"]: one.record.target.detail["file_system"] for one in store.select("campaign:plan")}  # type: ignore[union-attr]
    assert found == {"ext4": "ext4", "xfs": "xfs"}
    assert types_on(scratch) == ""
    assert not mounts_of(scratch)


def test_a_device_that_holds_something_is_not_made_a_file_system_on(
    invoke: Invoke, scratch: str, tmp_path: Path
) -> None:
    subprocess.run(["mkfs.ext4", "-q", scratch], check=True)
    before = types_on(scratch)
    plan = tmp_path / "plan.toml"
    plan.write_text(SCRATCH)
    refused = invoke("run", str(plan), "--target", scratch, "--erase", scratch, "--yes")
    assert refused.status == 3
    assert "has a signature: ext4" in refused.complaint
    assert types_on(scratch) == before
    done = invoke("run", str(plan), "--target", scratch, "--erase", scratch, "--erase-signature", "ext4", "--yes")
    assert done.status == 0, done.err


def test_a_file_system_that_a_killed_campaign_left_is_taken_away_at_resume(
    invoke: Invoke, scratch: str, tmp_path: Path, place: Path
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(SCRATCH.replace("seconds = 0.1", "seconds = 30").replace('"xfs"', '"ext3"'))
    process = started(
        "campaign", "run", str(plan), "--target", scratch, "--erase", scratch, "--yes", "--quiet",
        cwd=tmp_path,
    )  # fmt: skip
    deadline = time.monotonic() + DEADLINE_S
    while not mounts_of(scratch) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert mounts_of(scratch)
    refused = invoke("resume", "plan")
    assert refused.status == 3  # nobody has agreed again to lose what is on the device
    assert "the file system that a killed campaign made on it was removed" in refused.err
    assert types_on(scratch) == ""
    assert not mounts_of(scratch)
