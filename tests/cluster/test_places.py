"""The same bytes in this process, in one worker and in two; workers that die."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spindle
from spindle import _core
from spindle.cluster import workers
from spindle.cluster.choice import choice_of
from spindle.cluster.kept import ResultFile, place
from spindle.cluster.place import HERE, Place
from spindle.cluster.sharing import opened
from spindle.cluster.simulation import ONE_INTERVAL_NS, Simulated, Simulation, simulate
from spindle.cluster.workers import Dispatcher, OtherBuild, Workers
from spindle.run.errors import RunFailed
from spindle.run.resolve import resolve
from spindle.run.watch import SilentWatch
from tests.campaigns import small
from tests.design.test_design import NEED, PRICES
from tests.program import wait_until

pytestmark = pytest.mark.usefixtures("shared")
ROWS = "setup,drives,read_mb_s,write_mb_s,note\nraid10_3w,6xHitachi,173,,\n"


def pieces(count: int, seconds: float = 2.0) -> list[Simulation]:
    """Runs that differ in their seed."""
    machine = _core.machine_text("one-sata")
    loads = [
        resolve("randomio", [("seconds", str(seconds)), ("seed", str(seed))]).core.to_json() for seed in range(count)
    ]
    return [Simulation(machine, load, ONE_INTERVAL_NS, kind="test") for load in loads]


def at(workers: int | None, use: Callable[[Place], Any]) -> Any:
    with opened(choice_of(workers=workers), SilentWatch()) as where:
        return use(where)


def test_simulations_have_the_same_bytes_in_the_order_that_was_asked_for() -> None:
    asked = pieces(40)
    here = HERE.figures(asked, SilentWatch(), "")
    assert len(set(here)) == 40
    for count in (1, 2):
        assert at(count, lambda where: where.figures(asked, SilentWatch(), "")) == here
    mixed = asked[::-1] + asked[:3]
    assert at(2, lambda where: where.figures(mixed, SilentWatch(), "")) == here[::-1] + here[:3]


def test_a_design_has_the_same_bytes(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(PRICES)
    assert spindle.design(NEED, prices, workers=2).to_json() == spindle.design(NEED, prices).to_json()


def test_a_campaign_has_the_same_records(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(small.SIXTY)
    found = {}
    for count in (None, 1, 2):
        with spindle.open_store(tmp_path / f"{count}.db") as store:
            made = spindle.campaign(plan, changes={"trials.count": 2}, store=store, workers=count)
            trials = store.raw.campaigns.trials(made.name)
            found[count] = [store.raw.record(one.run_id) for one in trials if one.run_id is not None]
    assert len(found[None]) == 24
    assert found[1] == found[None]
    assert found[2] == found[None]


def test_a_search_has_the_same_decision(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "trials": 8, "confirm": 3, "changes": {"options.seconds": "0.5"}, "only": True,
        "knobs": {"scheduler": "none,mq-deadline", "nr_requests": "32,64,128"},
    }  # fmt: skip
    found = []
    for count in (None, 2):
        with spindle.open_store(tmp_path / f"{count}.db") as store:
            tuned = spindle.tune("one-sata", "randomio", store=store, workers=count, **options)
            found.append(
                [(one.levels, one.value) for one in tuned.tuning.trials] + [tuned.tuning.sentence, tuned.tuning.reason]
            )
    assert found[0] == found[1]


def test_published_arrays_have_the_same_figures(tmp_path: Path) -> None:
    from spindle.library.validation import validate_published, validate_sensitivity

    (tmp_path / "sequential_2008.csv").write_text(ROWS)
    assert validate_published(tmp_path, choice_of(workers=2)) == validate_published(tmp_path)
    assert validate_sensitivity(tmp_path, choice_of(workers=2)) == validate_sensitivity(tmp_path)


def test_an_error_is_the_one_that_this_process_would_raise() -> None:
    bad = Simulation("[[drive]]\nmodel = 'none'\n", pieces(1)[0].workload)
    texts = []
    for count in (None, 2):
        with pytest.raises(_core.ConfigError) as raised:
            at(count, lambda where: where.figures([*pieces(2), bad], SilentWatch(), ""))
        texts.append(str(raised.value))
    assert texts[0] == texts[1]


def test_a_worker_that_is_killed_costs_its_chunk_only(clients: dict[int, Any]) -> None:
    asked = pieces(60, seconds=20.0)
    here = HERE.figures(asked, SilentWatch(), "")
    before = clients[2].run(os.getpid)
    with opened(choice_of(workers=2), SilentWatch()) as where:
        assert isinstance(where, Workers)
        coming = where.begin(asked)
        first = where.wait(coming[0], SilentWatch(), "")
        os.kill(next(iter(before.values())), signal.SIGKILL)
        assert [where.wait(one, SilentWatch(), "").read() for one in coming] == here
        assert first.read() == here[0]
    # Dask's nanny may fail to start another one on a busy machine: not promised.
    clients[2].wait_for_workers(1, timeout=120)
    assert set(clients[2].run(os.getpid).values()) != set(before.values())


def end_this_worker(piece: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return piece


class Nothing:
    """Keeps nothing."""

    def find(self, keys: object) -> dict[str, Any]:
        return {}

    def add(self, results: object) -> None:
        pass

    def forget(self, keys: object) -> None:
        pass

    def close(self) -> None:
        pass


class Slow(Nothing):
    """Takes the first result only when another is lost with its worker."""

    def __init__(self, client: Any) -> None:
        self._client, self.has_lost = client, False

    def add(self, results: object) -> None:
        if self.has_lost:
            return
        self.has_lost = True
        wait_until(lambda: self._count("finished") > 1, 60)
        for pid in self._client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self._count("lost") > 0, 60)

    def _count(self, status: str) -> int:
        return [state.status for state in list(self._client.futures.values())].count(status)


def doubled(piece: int) -> int:
    return 2 * piece


def test_a_result_that_is_lost_with_its_worker_is_computed_again(clients: dict[int, Any]) -> None:
    keeper = Slow(clients[2])
    dispatcher: Dispatcher[int, int] = Dispatcher(clients[2], doubled, str, lambda piece: "", lambda: keeper)
    found = [future.result(120) for future in dispatcher.begin(range(8))]
    dispatcher.end(is_complete=True)
    assert found == [doubled(piece) for piece in range(8)]
    assert keeper.has_lost
    clients[2].wait_for_workers(1, timeout=120)


def test_a_chunk_that_ends_every_worker_is_given_up_with_one_line(clients: dict[int, Any]) -> None:
    clients[1].run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 1))
    dispatcher: Dispatcher[str, str] = Dispatcher(clients[1], end_this_worker, str, str, Nothing)
    coming = dispatcher.begin(["a", "b"])
    for future in coming:
        with pytest.raises(RunFailed, match="has ended every worker"):
            future.result(60)
    with pytest.raises(RunFailed, match="has ended every worker"):
        dispatcher.begin(["c"])[0].result(60)
    dispatcher.end(is_complete=False)
    with pytest.raises(RunFailed, match="the workers have ended"):
        dispatcher.begin(["d"])
    clients[1].wait_for_workers(1, timeout=120)


def test_another_build_on_a_worker_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "build", lambda: "9.9 (another)")
    with pytest.raises(
        OtherBuild, match=r"a worker has spindle .*, this computer has 9\.9 \(another\); install the same"
    ):
        at(1, lambda where: where.figures(pieces(1), SilentWatch(), ""))


def rows() -> int:
    with sqlite3.connect(place()) as file:
        return int(file.execute("SELECT count(*) FROM simulation").fetchone()[0])


def test_results_are_kept_until_the_run_is_complete() -> None:
    asked = pieces(12)

    def stopped(where: Place) -> None:
        where.figures(asked[:8], SilentWatch(), "")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        at(2, stopped)
    assert rows() == 8
    with opened(choice_of(workers=2), SilentWatch()) as where:
        assert isinstance(where, Workers)
        again = where.figures(asked, SilentWatch(), "")
        assert again == HERE.figures(asked, SilentWatch(), "")
        assert sum(one.pieces for one in where._dispatcher.chunks) == 4, "those that were kept are not computed again"
    assert rows() == 0


def test_kept_results_are_not_those_of_another_simulation(cache: Path) -> None:
    one, other = pieces(2)
    kept = ResultFile(cache / "kept.sqlite")
    kept.add({one.key: simulate(one)})
    assert set(kept.find([one.key, other.key])) == {one.key}
    again = Simulation(one.machine, one.workload, one.interval_ns, kind="of another kind")
    assert kept.find([again.key])[one.key] == simulate(one)
    longer = Simulation(one.machine, one.workload, one.interval_ns // 2)
    changed = Simulation(one.machine, one.workload, one.interval_ns, (("drive", "queue_depth", "1"),))
    assert kept.find([longer.key, changed.key]) == {}
    kept.close()


def test_kept_results_that_cannot_be_read_are_one_line(cache: Path) -> None:
    place().parent.mkdir(parents=True)
    place().write_text("this is not a database " * 100)
    with pytest.raises(RunFailed, match="results cannot be kept"):
        at(1, lambda where: where.figures(pieces(1), SilentWatch(), ""))


def test_an_error_of_a_simulation_is_kept_as_such() -> None:
    bad = Simulation("[[drive]]\nmodel = 'none'\n", pieces(1)[0].workload)
    found = simulate(bad)
    assert isinstance(found, Simulated)
    assert found.is_config
    assert not found.figures
