"""kill -9 at any point: nothing that was measured is lost, nothing is measured twice, and the end is the same."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
from killed import NAME, run_until
from server import Server

from spindle.store import open_store

TRIALS = 60


def disturbed(place: str, lines: int, kills: int, seed: int) -> int:
    """Killed so often, at points spread over the whole campaign, each time resumed; then left alone to its end."""
    chance = random.Random(seed)
    done = 0
    while done < kills:
        # Lines of the beginning, and of some two trials in the mean: the points are spread over all of it.
        if run_until(place, chance.randint(1, 2 * lines // kills)) is not None:
            break
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
        assert store.campaigns.fingerprint(NAME) == other.campaigns.fingerprint(NAME)
        for one, same in zip(trials, other.campaigns.trials(NAME), strict=True):
            assert one.run_id is not None
            assert same.run_id is not None
            assert store.document(one.run_id) == other.document(same.run_id)


def test_killed_thirty_times_a_campaign_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    undisturbed, place = str(tmp_path / "undisturbed.db"), str(tmp_path / "store.db")
    lines = run_until(undisturbed, None)
    assert lines is not None
    assert disturbed(place, lines, 30, seed=1) == 30
    check(place, undisturbed)


def test_the_same_on_a_server_that_is_restarted_in_the_middle(tmp_path: Path, server: Server) -> None:
    undisturbed, place = str(tmp_path / "undisturbed.db"), server.new_database()
    lines = run_until(undisturbed, None)
    assert lines is not None
    assert disturbed_server(place, lines, server) > 0
    check(place, undisturbed)


def disturbed_server(place: str, lines: int, server: Server) -> int:
    """Killed ten times; then the server is stopped hard under a campaign that is being carried out, and started."""
    chance = random.Random(2)
    kills = sum(run_until(place, chance.randint(1, lines // 8)) is None for _ in range(10))

    def restart() -> None:
        deadline = time.monotonic() + 60
        with open_store(place) as store:
            before = sum(one.state == "done" for one in store.campaigns.trials(NAME))
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
    import killed

    fewer = killed.SIXTY.replace("[1, 16, 64]", "[1, 64]")
    text = fewer.replace("count = 5", f"count = 2\nwithin = '5%'\nat_most = 4\norder = '{order}'")
    original = killed.SIXTY
    killed.SIXTY = text
    try:
        undisturbed, place = str(tmp_path / "undisturbed.db"), str(tmp_path / "store.db")
        lines = run_until(undisturbed, None)
        assert lines is not None
        disturbed(place, lines, 5, seed=3)
    finally:
        killed.SIXTY = original
    with open_store(place) as store, open_store(undisturbed) as other:
        assert 16 < len(store.campaigns.trials(NAME)) < 32  # some cells needed more, others did not
        assert store.campaigns.fingerprint(NAME) == other.campaigns.fingerprint(NAME)
