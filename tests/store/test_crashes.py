"""kill -9, and a server that loses its power: what was acknowledged is there, once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.host.signals import Stopped, unwinding
from spindle.result.document import encode
from spindle.store import Store, StoreError, database, open_store
from tests.store import killer
from tests.store.made import record
from tests.store.server import Server

ROUNDS = 30
HERE = Path(__file__).parent


def killed(what: str, where: str, seed: int) -> list[str]:
    """The ids that the killed processes reported."""
    done = subprocess.run(
        [sys.executable, str(HERE / "killer.py"), what, where, str(ROUNDS), str(seed)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), *sys.path])},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def assert_whole(store: Store) -> None:
    assert [str(problem) for problem in store.check().problems] == []


def test_what_was_acknowledged_before_a_kill_is_there_once_and_whole(where: str) -> None:
    reported = killed("append", where, seed=1)
    assert len(reported) > ROUNDS
    with open_store(where) as store:
        assert_whole(store)
        there = Counter(line.id for line in store.ls())
        assert {run_id: there[run_id] for run_id in reported} == dict.fromkeys(reported, 1)
        assert len(there) - len(reported) <= ROUNDS  # stored, but killed before it was reported
        for run_id in reported[:: len(reported) // 5]:
            assert store.document(run_id) == encode(record(int(run_id[-6:], 16)))


def test_a_campaign_killed_again_and_again_ends_as_an_undisturbed_one(where: str, tmp_path: Path) -> None:
    reported = killed("campaign", where, seed=2)
    undisturbed = str(tmp_path / "undisturbed.db")
    killer.plan(undisturbed)
    for place in (where, undisturbed):
        killer.campaign(place, 0, reported.append if place == where else lambda run_id: None)
    assert Counter(reported).most_common(1)[0][1] == 1  # none was measured twice once it was acknowledged
    with open_store(where) as store, open_store(undisturbed) as other:
        for each in (store, other):
            assert_whole(each)
            trials = each.campaigns.trials(killer.CAMPAIGN)
            assert [(trial.number, trial.state) for trial in trials] == [
                (at + 1, "done") for at in range(killer.TRIALS)
            ]
            assert [found.run_id for found in each.select(f"campaign:{killer.CAMPAIGN}")] == [
                record(at + 1).id for at in range(killer.TRIALS)
            ]
        assert store.campaigns.fingerprint(killer.CAMPAIGN) == other.campaigns.fingerprint(killer.CAMPAIGN)
        assert [line.id for line in store.ls()] == [line.id for line in other.ls()]


def test_a_server_that_loses_its_power_in_the_middle_costs_nothing_that_was_acknowledged(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer waits for it and goes on."""
    monkeypatch.setattr(database, "PATIENCE_S", 600)  # a slow machine takes its time to recover
    where = server.new_database()
    killer.plan(where)
    reported: list[str] = []
    at_twenty = threading.Event()

    def hear(run_id: str) -> None:
        reported.append(run_id)
        if len(reported) == 20:
            at_twenty.set()

    failed: list[BaseException] = []

    def carry_out(work: Callable[[str, int, Callable[[str], None]], None]) -> None:
        try:
            work(where, 0, hear)
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=carry_out, args=(killer.campaign,))
    writer.start()
    try:
        assert at_twenty.wait(60)
        server.stop("immediate")
        server.start()
    finally:
        writer.join(600)
    assert not writer.is_alive()
    assert failed == []
    assert len(reported) == killer.TRIALS
    with open_store(where) as store:
        assert_whole(store)
        assert [each.run_id for each in store.select(f"campaign:{killer.CAMPAIGN}")] == reported


def test_a_server_that_stays_away_costs_one_line(server: Server) -> None:
    where = server.new_database()
    with open_store(where) as store:
        store.add(record(1))
        store._database.patience_s = 0.5
        server.stop("fast")
        try:
            with pytest.raises(StoreError, match="the server cannot be reached"):
                store.add(record(2))
        finally:
            server.start()
        assert store.add(record(2)) == record(2).id
        assert_whole(store)


def test_a_signal_amid_a_write_leaves_nothing_open(where: str) -> None:
    """Who stops a campaign writes once more: that it was stopped. An open transaction would lock it out."""
    draw = random.Random(3)
    records = [record(number) for number in range(40)]  # a run that is stopped ends early and is no error
    stops: list[Stopped] = []  # kept, as an error that is handled keeps the frames of its traceback
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with open_store(where) as store, unwinding():
            for made in records:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-4, 2e-2))
                try:
                    while True:
                        store.add(made)
                except Stopped as stop:
                    stops.append(stop)
                store.add(made)
            assert len(store.ls()) == len(stops) == 40
            assert_whole(store)
    finally:
        signal.signal(signal.SIGALRM, before)
