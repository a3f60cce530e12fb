"""Starts processes that store results, and kills each at a random point; a program of its own, as it forks.

    killer.py append WHERE ROUNDS SEED     results, one after the other
    killer.py campaign WHERE ROUNDS SEED   the trials of a campaign, resumed each time

Prints as JSON the ids that the processes reported as stored.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable

from spindle.store import PlannedTrial, open_store
from tests.store.made import modelled, record

TRIALS = 60
CAMPAIGN = "killed"


def append(where: str, first: int, reported: Callable[[str], None]) -> None:
    """For ever."""
    with open_store(where) as store:
        number = first
        while True:
            reported(store.add(record(number), tags=["all"]))
            number += 1


def campaign(where: str, _first: int, reported: Callable[[str], None]) -> None:
    """To the end of the campaign."""
    with open_store(where) as store, store.campaigns.hold(CAMPAIGN) as held:
        while trial := held.next():
            if trial.number % 7 == 0 and trial.attempts == 1:
                held.reject(trial, "invalid", "too short", record=record(1000 + trial.number), again=True)
                continue
            reported(held.finish(trial, record(trial.number)))
        held.set_state("done")


def plan(where: str) -> None:
    """A campaign to be carried out."""
    trials = [PlannedTrial(block=at // 6, cell={"level": str(at % 6)}, detail={"seed": at}) for at in range(TRIALS)]
    with open_store(where) as store:
        store.campaigns.create(CAMPAIGN, plan="", seed=1, trials=trials)


def kill_one(work: Callable[[str, int, Callable[[str], None]], None], where: str, first: int, most: int,
             chance: random.Random) -> list[str]:  # fmt: skip
    """The ids that the process reported; it dies after up to `most` results and some time of the next."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(readable)

            def report(run_id: str) -> None:
                os.write(writable, f"{run_id}\n".encode())

            work(where, first, report)
            status = 0
        finally:
            os._exit(status)
    os.close(writable)
    reported = b""
    wanted = chance.randrange(most + 1)
    while reported.count(b"\n") < wanted and (piece := os.read(readable, 4096)):
        reported += piece
    time.sleep(chance.uniform(0, 0.01))  # any point of what follows will do
    os.kill(child, signal.SIGKILL)
    while piece := os.read(readable, 4096):
        reported += piece
    os.close(readable)
    os.waitpid(child, 0)
    return [line.decode() for line in reported.split(b"\n") if line]


def main(what: str, where: str, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    modelled()  # once, before there are children
    work, most = {"append": (append, 4), "campaign": (campaign, 2)}[what]
    if what == "campaign":
        plan(where)
    else:
        open_store(where).close()
    reported: list[str] = []
    for number in range(rounds):
        reported += kill_one(work, where, number * 100, most, chance)
    print(json.dumps(reported))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
