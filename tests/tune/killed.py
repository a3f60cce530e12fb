"""Searches that are killed (SIGKILL) again and again while another process reads their store, and that go on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import spindle
from spindle.store import open_store
from tests.program import Ended, ended, started

TUNER, LOAD = "tuner", "load"
"""Victims of a kill."""
DEADLINE_S = 300.0
LOOK_S = 0.05
READER_S = 0.3
"""Pause of the process that reads the store."""


def search(place: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start `spindle tune`, in a process group of its own."""
    words = ["tune", *arguments, "--store", str(place / "store.db"), "-q", "--json"]
    return started(*words, cwd=place)


def trials_done(place: Path, name: str) -> int:
    """Trials of the search that are done: opens the store and closes it, as any reader does."""
    try:
        with open_store(place / "store.db", create=False) as store:
            return sum(one.state == "done" for one in store.campaigns.trials(name))
    except spindle.Error:  # it is not there yet
        return 0


@contextmanager
def reader(place: Path, name: str) -> Iterator[None]:
    """Meanwhile the store is opened and closed again and again; a trial that was done stays done."""
    over, seen = threading.Event(), [0]

    def read() -> None:
        while not over.wait(READER_S):
            seen.append(trials_done(place, name))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert seen == sorted(seen), "trials that were done were lost"


@dataclass
class Killed:
    """The end of a search that was killed."""

    ended: Ended
    kills: int
    """Kills of the search itself while it was running."""
    loads: int
    """Kills of the load alone."""


def killed(
    place: Path,
    name: str,
    begin: Sequence[str],
    points: Sequence[float],
    check: Callable[[], None] = lambda: None,
    victims: Sequence[str] = (TUNER,),
) -> Killed:
    """Begin the search `name` and kill it so many trials (and their fractions) after each start, then resume it. Each
    point has one of the `victims` in turn; `check` follows the kill of a tuner. Returns its end, once left alone.
    """
    process, kills, loads = search(place, *begin, "--name", name), 0, 0
    with reader(place, name):
        for point, victim in zip(points, cycle(victims)):
            if not _wait_for_trials(process, place, name, point):
                break  # it has ended
            if victim == LOAD:
                loads += _end_load(process)
                continue
            kills += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate()
            check()
            process = search(place, *(["--resume", name] if exists(place, name) else [*begin, "--name", name]))
        return Killed(ended(process, DEADLINE_S), kills, loads)


def _end_load(process: subprocess.Popen[str]) -> bool:
    load = child_of(process)
    if load is not None:
        with suppress(ProcessLookupError):
            os.kill(load, signal.SIGKILL)
            return True
    return False


def exists(place: Path, name: str) -> bool:
    """True if the search is in the store: killed before that, it begins anew."""
    return _state(place, name) != ""


def _state(place: Path, name: str) -> str:
    try:
        with open_store(place / "store.db", create=False) as store:
            found = store.campaigns.find(name)
            return found.state if found is not None else ""
    except spindle.Error:
        return ""


def _wait_for_trials(process: subprocess.Popen[str], place: Path, name: str, point: float) -> bool:
    """Until as many trials as `point` says were done by this process, and its fraction of a trial's time has passed.
    False: the search has ended.
    """
    before, begin, last = trials_done(place, name), time.monotonic(), 0.2
    while trials_done(place, name) < before + int(point):
        if process.poll() is not None or _state(place, name) == "done":
            return False
        assert time.monotonic() < begin + DEADLINE_S
        time.sleep(LOOK_S)
    if int(point):
        last = (time.monotonic() - begin) / int(point)
    time.sleep((point % 1) * last)
    return _state(place, name) != "done"


def points(kills: int, trials: int, seed: int) -> list[float]:
    """Random points of a search of so many trials; one in five is before the first trial of its process."""
    chance = random.Random(seed)
    share = 1.6 * trials / kills
    return [chance.random() if chance.random() < 0.2 else chance.uniform(0, share) for _ in range(kills)]


def child_of(process: subprocess.Popen[str]) -> int | None:
    """A child process of it: the load."""
    try:
        found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    except FileNotFoundError:
        return None
    return int(found[0]) if found else None


def twice(place: Path, name: str) -> list[str]:
    """Combinations that ran twice in a block, or that have more than one attempt with a result."""
    with open_store(place / "store.db") as store:
        trials = store.campaigns.trials(name)
        attempts = store.campaigns.attempts(name)
    seen: set[str] = set()
    found = []
    for one in trials:
        word = f"block {one.block}: {sorted(one.cell.items())}"
        if word in seen:
            found.append(word)
        seen.add(word)
    done = [one.trial for one in attempts if one.state == "done"]
    return found + [f"trial {number}" for number in sorted(set(done)) if done.count(number) > 1]


READS = """import mmap, os, random, sys
fd, buffer = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
while True:
    os.preadv(fd, [buffer], random.randrange(4096) * 4096)
"""


def on_loop(place: Path, device: str) -> list[str]:
    """A search on a real queue, with a command as the load."""
    script = place / "load.py"
    script.write_text(READS)
    keys = ("load.interval=0.2s", "load.settle=50ms", "load.sample=50ms", f"trials.tolerate={TOLERATED}",
            "search.race=3", "search.finalists=2")  # fmt: skip
    return [device, "--load", f"{sys.executable} {script} {{target}}", "--maximise", "device.r/s", "--only", "--knob",
            "read_ahead_kb=64..1024", "--knob", "scheduler=none,mq-deadline", "--trials", "8", "--confirm", "3",
            *(word for key in keys for word in ("--set", key))]  # fmt: skip


TOLERATED = "settings,other-io,before-other-io,before-jobs,before-cpu,during-cpu,steady,too-short,late"
"""Verdicts that a busy machine and short trials may cause."""
