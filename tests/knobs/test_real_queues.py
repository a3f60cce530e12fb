"""Real loop queues and virtual memory: reactions of the kernel, kill -9, two sessions at once, a replaced device."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.queue import Queue
from tests.workbench import Workbench

COMMAND = [sys.executable, "-m", "spindle.cli"]

LOOP_OF_CHANGES = """
import random, sys
from spindle.knobs import asking
from spindle.knobs.places import named
from spindle.knobs.session import Session
from spindle.knobs.errors import KnobRefusal

seed, memory, *devices = sys.argv[1:]
chance = random.Random(int(seed))
print("ready", flush=True)
while True:
    device = chance.choice(devices)
    words = {
        "scheduler": chance.choice(["none", "mq-deadline", "bfq", "kyber"]),
        "nr_requests": chance.choice(["32", "64", "100"]),
        "read_ahead_kb": str(4 * chance.randint(1, 2000)),
        "wbt_lat_usec": str(chance.randint(1, 9000)),
    }
    if memory == "memory":
        words["vm.dirty_expire_centisecs"] = str(chance.randint(100, 9000))
        words[chance.choice(["vm.dirty_ratio", "vm.dirty_bytes"])] = None
        words[chance.choice(["vm.dirty_background_ratio", "vm.dirty_background_bytes"])] = None
    words = [f"{k}={v or chance.randint(5, 60) * (10**7 if k.endswith('bytes') else 1)}" for k, v in words.items()]
    chosen = chance.sample(words, chance.randint(1, len(words)))
    with Session(chance.choice(["set", "with"])) as session:
        session.change(asking.settings(named(device), chosen))
        if chance.random() < 0.3:
            session.keep()
"""


def spindle(*arguments: str, check: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    if check is not None:
        assert done.returncode == check, done.stderr
    return done


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("spindle: ")
    return lines[0]


def dirty_limits() -> dict[str, str]:
    """The settings of dirty pages, which belong to the whole machine: tests that change them run `alone`."""
    return {path.name: path.read_text() for path in Path("/proc/sys/vm").glob("dirty*")}


def wait_for(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_during_a_command_sysfs_agrees_and_afterwards_everything_is_back(loop: Callable[[], Queue]) -> None:
    queue = loop()
    before = queue.values()
    process = subprocess.Popen(
        [*COMMAND, "knobs", "with", queue.name, "scheduler=mq-deadline", "nr_requests=64", "read_ahead_kb=4096",
         "--", "sleep", "1"]
    )  # fmt: skip
    wait_for(lambda: queue["read_ahead_kb"] == "4096")
    assert (queue["scheduler"], queue["nr_requests"]) == ("mq-deadline", "64")
    assert process.wait() == 0
    assert queue.values() == before


@pytest.mark.alone
def test_set_stays_until_restore(loop: Callable[[], Queue]) -> None:
    queue = loop()
    before = queue.values()
    spindle("knobs", "set", f"/dev/{queue.name}", "scheduler=mq-deadline", "nr_requests=64", "read_ahead_kb=4096",
            "vm.dirty_bytes=100000000")  # fmt: skip
    assert (queue["scheduler"], queue["nr_requests"], queue["read_ahead_kb"]) == ("mq-deadline", "64", "4096")
    shown = json.loads(spindle("knobs", "diff", "--json").stdout)
    assert {(item["knob"], item["start"], item["now"]) for item in shown["items"]} >= {
        (f"{queue.name}.scheduler", "none", "mq-deadline"),
        ("vm.dirty_bytes", "0", "100000000"),
    }
    assert json.loads(spindle("restore", "--json").stdout)["complete"]
    assert queue.values() == before
    assert "nothing to restore" in spindle("restore").stdout


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -TERM $$", 143), ("exit 0", 0)])
def test_the_exit_status_is_that_of_the_command(loop: Callable[[], Queue], script: str, status: int) -> None:
    queue = loop()
    before = queue.values()
    done = spindle("knobs", "with", queue.name, "scheduler=bfq", "--json", "--", "sh", "-c", script, check=status)
    report = json.loads(done.stdout)
    assert report["exit_status"] == status
    assert report["changes"][0]["after"] == "bfq"
    assert queue.values() == before


def test_options_of_the_command_are_the_commands(loop: Callable[[], Queue]) -> None:
    done = spindle("knobs", "with", loop().name, "read_ahead_kb=64", "--", "echo", "--json", "--", "a=b")
    assert done.stdout == "--json -- a=b\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_everything_is_back(loop: Callable[[], Queue], number: signal.Signals) -> None:
    queue = loop()
    before = queue.values()
    process = subprocess.Popen([*COMMAND, "knobs", "with", queue.name, "scheduler=bfq", "--", "sleep", "60"])
    wait_for(lambda: queue["scheduler"] == "bfq")
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(timeout=20) == 128 + number
    assert queue.values() == before


@pytest.mark.parametrize(("memory", "kills"), [("queues", 35), pytest.param("memory", 15, marks=pytest.mark.alone)])
def test_killed_at_random_moments_restore_brings_back_every_value(
    loop: Callable[[], Queue], memory: str, kills: int
) -> None:
    queues = [loop(), loop()]
    queues[1]["scheduler"] = "mq-deadline"
    queues[1]["nr_requests"] = "77"
    (queues[1].folder / "iosched/read_expire").write_text("200")
    before = [queue.values() for queue in queues]
    limits = dirty_limits()
    chance = random.Random(4)
    journalled = 0
    for kill in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", LOOP_OF_CHANGES, str(kill), memory, *(queue.name for queue in queues)],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.12))
        process.kill()
        process.wait()
        process.stdout.close()
        journalled += any((Path(os.environ["XDG_STATE_HOME"]) / "spindle/knobs").glob("*.journal"))
        if kill % 10 == 0:
            spindle("restore")
        else:
            from spindle.knobs.restore import restore

            report = restore()
            assert report.complete, (kill, [str(item) for item in report.items])
        assert [queue.values() for queue in queues] == before, kill
        assert memory == "queues" or dirty_limits() == limits, kill
    assert journalled > kills // 2, "hardly any kill hit a session"


@pytest.mark.alone
def test_a_torn_journal_and_a_value_of_another_program(loop: Callable[[], Queue]) -> None:
    queue = loop()
    before = queue.values()
    spindle("knobs", "set", queue.name, "scheduler=mq-deadline", "nr_requests=64", "read_ahead_kb=4096")
    spindle("knobs", "set", "vm.swappiness=11")
    first, second = sorted((Path(os.environ["XDG_STATE_HOME"]) / "spindle/knobs").glob("*.journal"))
    second.write_bytes(second.read_bytes()[:-7])
    queue["read_ahead_kb"] = "512"
    done = spindle("restore", check=1)
    assert "conflict" in complaint(done)
    assert f"{queue.name}.read_ahead_kb" in done.stderr
    assert queue["read_ahead_kb"] == "512"
    queue["read_ahead_kb"] = before[str(queue.folder / "read_ahead_kb")].strip()
    assert queue.values() == before
    assert not first.exists()


def test_two_at_once_cannot_fight(loop: Callable[[], Queue]) -> None:
    queue = loop()
    before = queue.values()
    process = subprocess.Popen([*COMMAND, "knobs", "with", queue.name, "scheduler=bfq", "--", "sleep", "30"])
    wait_for(lambda: queue["scheduler"] == "bfq")
    line = complaint(spindle("knobs", "set", queue.name, "nr_requests=64", check=3))
    assert "another spindle is changing it" in line
    assert str(process.pid) in line
    assert "left to a running spindle" in complaint(spindle("restore", check=3))
    assert queue["scheduler"] == "bfq"
    process.terminate()
    process.wait()
    assert queue.values() == before


def test_a_loop_device_that_is_set_up_again_is_not_mistaken_for_the_old_one(
    loop: Callable[[], Queue], bench: Workbench
) -> None:
    queue = loop()
    if not (queue.folder.parent / "diskseq").exists():
        pytest.skip("this kernel numbers no disks")
    spindle("knobs", "set", queue.name, "nomerges=2")
    device = f"/dev/{queue.name}"
    backing = (queue.folder.parent / "loop/backing_file").read_text().strip()
    bench.exchange(device, backing)
    queue["nomerges"] = "2"
    assert "another device has that name now" in complaint(spindle("restore", check=1))
    assert queue["nomerges"] == "2"
    assert spindle("restore").stdout.startswith("nothing to restore")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["LOOP", "schedular=bfq"], 2, "did you mean `scheduler`"),
        (["LOOP", "nr_requests=0"], 2, "1..65536 requests"),
        (["LOOP", "nr_requests=many"], 2, "not a value of nr_requests"),
        (["LOOP", "nr_requests=60000"], 3, "the kernel refuses it: invalid argument"),
        (["LOOP", "scheduler=cfq"], 3, "it offers none, mq-deadline"),
        (["LOOP", "max_hw_sectors_kb=4"], 2, "can only be read"),
        (["LOOP", "iosched/read_expire=5"], 2, "set scheduler=mq-deadline along with it"),
        (["LOOP", "stripe_cache_size=4096"], 2, "has no `stripe_cache_size`"),
        (["LOOP", "nr_requests"], 2, "is not KNOB=VALUE"),
        (["LOOP"], 2, "nothing to set"),
        ([], 2, "nothing to set"),
        (["nosuchdisk", "nr_requests=5"], 2, "no such block device"),
        (["/etc/passwd", "nr_requests=5"], 2, "no such block device"),
        (["../../etc", "nr_requests=5"], 2, "no such block device"),
        (["nr_requests=5"], 2, "which device?"),
        (["vm.swapiness=5"], 2, "did you mean `vm.swappiness`"),
        (["vm.swappiness=201"], 2, "0..200"),
        (["vm.dirty_bytes=0"], 2, "set that instead"),
        (["vm.min_free_kbytes=99999999999"], 3, "tenth of the memory"),
        (["irq9999.smp_affinity_list=0"], 2, "no such interrupt"),
        (["vm.swappiness=5", "--profile", "nosuch"], 2, "no profile `nosuch`"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_one_line_and_changes_nothing(
    loop: Callable[[], Queue], words: list[str], status: int, says: str
) -> None:
    queue = loop()
    before = queue.values()
    asked = [queue.name if word == "LOOP" else word for word in words]
    assert says in complaint(spindle("knobs", "set", *asked, check=status))
    assert queue.values() == before


def test_a_missing_command_changes_nothing(loop: Callable[[], Queue]) -> None:
    queue = loop()
    assert "no such command" in complaint(
        spindle("knobs", "with", queue.name, "nr_requests=5", "--", "no-such-thing", check=127)
    )
    assert "which command?" in complaint(spindle("knobs", "with", queue.name, "nr_requests=5", check=2))


def test_strict_refuses_a_value_that_the_kernel_rounds(loop: Callable[[], Queue]) -> None:
    queue = loop()
    before = queue.values()
    assert "not 5" in complaint(spindle("knobs", "set", "--strict", queue.name, "read_ahead_kb=5", check=3))
    assert queue.values() == before
    assert "2560 -> 4, not 5" in spindle("knobs", "with", queue.name, "read_ahead_kb=5", "--", "true").stderr
    assert queue.values() == before


def test_a_killed_command_is_mentioned_by_the_next(loop: Callable[[], Queue]) -> None:
    queue = loop()
    process = subprocess.Popen([*COMMAND, "knobs", "with", queue.name, "scheduler=bfq", "--", "sleep", "2"])
    wait_for(lambda: queue["scheduler"] == "bfq")
    time.sleep(0.2)
    process.kill()
    process.wait()
    said = spindle("knobs", "with", queue.name, "read_ahead_kb=64", "--", "true").stderr
    assert "was killed and its changes are still in force" in said
    spindle("restore")
    assert queue["scheduler"] == "none"


@pytest.mark.alone
def test_a_profile_contains_the_values_in_force_and_sets_them_again(
    loop: Callable[[], Queue], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    queue, other = loop(), loop()
    before = other.values()
    spindle("knobs", "set", queue.name, "scheduler=mq-deadline", "nr_requests=64", "iosched/read_expire=100")
    spindle("knobs", "profile", "save", "database", queue.name, "scheduler", "nr_requests", "iosched/read_expire",
            "vm.swappiness=12")  # fmt: skip
    spindle("restore")
    assert json.loads(spindle("knobs", "profile", "show", "database", "--json").stdout) == {
        "device": {"scheduler": "mq-deadline", "nr_requests": "64", "iosched/read_expire": "100"},
        "vm": {"swappiness": "12"},
    }
    assert "scheduler" in spindle("knobs", "diff", other.name, "--profile", "database").stdout
    spindle("knobs", "profile", "apply", "database", other.name)
    assert (other["scheduler"], other["nr_requests"], other["iosched/read_expire"]) == ("mq-deadline", "64", "100")
    assert "no difference from the profile" in spindle("knobs", "diff", other.name, "--profile", "database").stdout
    spindle("restore")
    assert other.values() == before


def test_get_prints_what_set_takes(loop: Callable[[], Queue]) -> None:
    queue = loop()
    lines = spindle("knobs", "get", queue.name).stdout.splitlines()
    assert f"{queue.name}.scheduler=none" in lines
    assert f"{queue.name}.nr_requests={queue['nr_requests']}" in lines
    assert "unchanged" not in spindle("knobs", "set", *(line for line in lines if "requests" in line)).stderr
    listed = json.loads(spindle("knobs", "list", queue.name, "--json").stdout)["knobs"]
    for one in listed:
        assert Path(one["path"]).is_file(), one
