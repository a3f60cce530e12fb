"""kill -9 at any point: nothing that was measured is lost, nothing is measured twice, and the end is the same."""

from __future__ import annotations

import random
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from spindle.store import open_store
from tests.campaigns import small
from tests.campaigns.killed import NAME, run_until
from tests.store.server import Server

TRIALS = 60


class Points:
    """Where to kill: one time in five while the campaign is begun or resumed, else after some of its trials."""

    def __init__(self, undisturbed: str, kills: int, seed: int) -> None:
        whole, nothing_left = run_until(undisturbed, None), run_until(undisturbed, None)
        assert whole is not None
        assert nothing_left is not None
        self._beginning, self._chance = nothing_left, random.Random(seed)
        # Parts of the work: together less than all of it, so that the campaign does not end before the last kill.
        work = round(0.9 * (whole - nothing_left))
        cuts = sorted(self._chance.sample(range(1, work), kills))
        self._parts = [to - since for since, to in pairwise([0, *cuts])]

    def next(self) -> int:
        """A number of lines."""
        part = self._parts.pop()
        if self._chance.random() < 0.2:
            return self._chance.randint(1, self._beginning)
        return self._beginning + part


def disturbed(place: str, points: Points, kills: int) -> int:
    """Killed so often, at points spread over the whole campaign, each time resumed; then left alone to its end."""
    done = 0
    while done < kills and run_until(place, points.next()) is None:
        done += 1
    run_until(place, None)
    return done


def check(place: str, undisturbed: str) -> None:
    """Each trial exactly once, and the same as if nothing had happened, bit for bit."""
    with open_store(place) as store, open_store(undisturbed) as other:
        trials = store.campaigns.trials(NAME)
        assert [(one.number, one.state, one.attempts) for one in trials] == [
            (number, "done", 1) for number in range(1, TRIALS + 1)
        ]
        assert len(store.ls()) == TRIALS
        assert store.check().problems == []
        assert store.campaigns.fingerprint(NAME) == other.campaigns.fingerprint(NAME)
        for one, same in zip(trials, other.campaigns.trials(NAME), strict=True):
            assert one.run_id is not None
            assert same.run_id is not None
            assert store.document(one.run_id) == other.document(same.run_id)


def test_killed_thirty_times_a_campaign_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    undisturbed, place = str(tmp_path / "undisturbed.db"), str(tmp_path / "store.db")
    assert disturbed(place, Points(undisturbed, 30, seed=1), 30) == 30
    check(place, undisturbed)


def test_the_same_on_a_server_that_is_restarted_in_the_middle(tmp_path: Path, server: Server) -> None:
    undisturbed, place = str(tmp_path / "undisturbed.db"), server.new_database()
    assert disturbed_server(place, Points(undisturbed, 20, seed=2), server) == 10
    check(place, undisturbed)


def disturbed_server(place: str, points: Points, server: Server) -> int:
    """Killed ten times; then the server is stopped hard under a campaign that is being carried out, and started."""
    kills = sum(run_until(place, points.next()) is None for _ in range(10))

    def restart() -> None:
        deadline = time.monotonic() + 60
        with open_store(place) as store:
            before = sum(one.state == "done" for one in store.campaigns.trials(NAME))
            assert 0 < before < TRIALS
            while time.monotonic() < deadline:
                if sum(one.state == "done" for one in store.campaigns.trials(NAME)) != before:
                    break
                time.sleep(0.01)
        server.stop("immediate")
        server.start()

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        run_until(place, None)
    finally:
        thread.join()
    return kills


@pytest.mark.parametrize("order", ["blocks", "sequential"])
def test_a_campaign_that_goes_on_until_it_knows_enough_is_resumed_where_it_was(tmp_path: Path, order: str) -> None:
    fewer = small.SIXTY.replace("[1, 16, 64]", "[1, 64]")
    text = fewer.replace("count = 5", f"count = 2\nwithin = '25%'\nat_most = 4\norder = '{order}'")
    original = small.SIXTY
    small.SIXTY = text
    try:
        undisturbed, place = str(tmp_path / "undisturbed.db"), str(tmp_path / "store.db")
        disturbed(place, Points(undisturbed, 5, seed=3), 5)
    finally:
        small.SIXTY = original
    with open_store(place) as store, open_store(undisturbed) as other:
        # Of eight cells, with two to four trials each, some needed more than they begin with, and some not all.
        assert 16 < len(store.campaigns.trials(NAME)) < 32
        assert store.campaigns.fingerprint(NAME) == other.campaigns.fingerprint(NAME)
