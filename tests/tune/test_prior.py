"""A model of the target screens the settings: where it is right, wrong, or knows nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from spindle.campaign.adaptive import SearchSchedule, Step
from spindle.campaign.execution import made_ready, search_of
from spindle.campaign.prior import stored_of
from spindle.campaign.source import read_plan
from spindle.run.errors import Usage
from spindle.search.prior import Expected, Prior
from spindle.search.space import Point
from spindle.store import open_store
from tests.program import Ended
from tests.tune.killed import TOLERATED
from tests.tune.landscapes import noisy, plan, searched
from tests.tune.test_search import truth

FEW = "trials = 12\nscreen = 3"
MODEL = """
target = "six-sata-raid10"
workload = "randomio"

[options]
seconds = 2

[factors.depth]
sets = "knobs.queue_depth"
values = [1, 4, 31]

[factors.layout]
sets = "machine.array.layout"
values = ["n2", "f2"]

[design]
kind = "search"
baseline = { depth = "31" }

[trials]
metric = "iops"

[search]
prior = "six-sata-raid10"
"""


def prior(schedule: SearchSchedule, factor: float = 1.0, slope: float = 1.0) -> Prior:
    """A model whose values are off by a factor, and whose differences by a slope."""

    def expect(points: Sequence[Point]) -> list[Expected]:
        return [(factor * truth(schedule.levels(point)) ** slope,) for point in points]

    return Prior(list(schedule.space.every()), expect)


@pytest.mark.parametrize(("factor", "slope"), [(1.0, 1.0), (1.5, 0.7), (0.6, 1.3)])
def test_with_a_model_few_trials_find_the_best(factor: float, slope: float) -> None:
    regrets = []
    for seed in range(4):
        asked = plan(seed, search=FEW)
        model = prior(SearchSchedule(asked), factor, slope)
        found = searched(asked, lambda levels, noise: noisy(truth(levels), noise, 0.03), prior=model)
        assert found.winner is not None
        regrets.append(1 - truth(found.schedule.levels(found.winner)) / (1000 * 1.1 * 1.15 * 1.03))
    assert np.mean(regrets) < 0.03, regrets


def test_a_model_that_is_wrong_does_not_make_a_winner() -> None:
    """The model promises 30 %, and no setting does anything."""
    wrong = 0
    for seed in range(10):
        asked = plan(seed, search=FEW)
        found = searched(asked, lambda _, noise: noisy(1000, noise, 0.03), prior=prior(SearchSchedule(asked)))
        wrong += found.recommended
    assert wrong <= 1


def test_the_best_of_a_wrong_model_is_left_once_it_was_measured() -> None:
    """Its best elevator is the worst one."""

    def measured(levels: object, noise: random.Random) -> float:
        return noisy(2e6 / truth(levels), noise, 0.02)  # type: ignore[arg-type]

    asked = plan(search="trials = 24\nscreen = 3")
    found = searched(asked, measured, prior=prior(SearchSchedule(asked)))
    assert found.winner is not None
    assert found.schedule.levels(found.winner)["scheduler"] == "bfq"


def test_the_simulator_screens_every_setting_of_a_small_space_once() -> None:
    asked = read_plan(MODEL, "model.toml", "model")
    ready = made_ready(asked)
    found = ready.search.prior
    assert found is not None
    assert len(found.screened) == 6
    values = {point: value[0] for point, value in zip(found.screened, found.expect(found.screened), strict=True)}
    assert all(value is not None and value > 0 for value in values.values())
    axis = {one.name: at for at, one in enumerate(ready.search.space.axes)}
    best = max(values, key=lambda point: values[point] or 0)
    assert ready.search.levels(best)["layout"] == "f2"
    assert all((values[point] or 0) < 0.8 * (values[best] or 0) for point in values if point[axis["depth"]] == 0)
    first = [ready.search.point(one.levels) for one in ready.search.next([])]
    assert best in first


def test_a_search_goes_on_with_the_stored_values_of_its_model() -> None:
    ready = made_ready(read_plan(MODEL, "model.toml", "model"))
    stored = stored_of(ready.search.prior)
    assert stored is not None
    stored["values"] = [[1000 + at] for at in range(len(stored["values"]))]
    again = search_of(ready.plan, ready.sources, stored).prior
    assert again is not None
    assert [one[0] for one in again.expect(again.screened)] == [1000 + at for at in range(6)]
    steps = [Step(one.stage, one.block, one.levels, 500.0) for one in ready.search.next([])]
    assert search_of(ready.plan, ready.sources, stored).next(steps)


def test_settings_that_the_model_does_not_have_are_no_error() -> None:
    """RAID5 has no layout `n2`."""
    text = MODEL.replace("machine.array.layout", "machine.array.level").replace('"n2", "f2"', '"raid10", "raid5"')
    asked = read_plan(text, "model.toml", "model")
    with pytest.raises(Usage):
        made_ready(asked)
    schedule = search_of(asked, made_ready(read_plan(MODEL, "model.toml", "model")).sources, None)
    assert schedule.prior is not None
    values = schedule.prior.expect(schedule.prior.screened)
    assert sum(one[0] is None for one in values) == 3
    assert schedule.next([])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [('prior = "/dev/null"', "is not a modelled machine"), ('prior = "no-such.toml"', "no such file")],
)
def test_a_wrong_model_is_one_line(line: str, complaint: str) -> None:
    text = MODEL.replace('prior = "six-sata-raid10"', line)
    with pytest.raises(Usage, match=complaint):
        made_ready(read_plan(text, "model.toml", "model")).search.next([])


def test_a_model_of_a_real_target_screens_its_settings(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """The model has no read-ahead: the search moves it without help."""
    file = tmp_path / "file"
    file.write_bytes(bytes(16 << 20))
    words = [
        str(file), "randomio", "--machine", "one-nvme", "--only", "--knob", "options.workers=1,4",
        "--set", "options.seconds=0.2", "--set", "options.write_fraction=0", "--set", "options.fsync_fraction=0",
        "--set", f"trials.tolerate={TOLERATED},working-set,cache-share,littles-law,saturated,generator-bound",
        "--trials", "4", "--confirm", "3", "--store", str(tmp_path / "store.db"), "-q",
    ]  # fmt: skip
    plan = invoke("tune", *words, "--plan")
    assert 'prior = "one-nvme"' in plan.out
    done = invoke("tune", *words, "--json")
    assert done.status == 0, done.err
    with open_store(tmp_path / "store.db") as store:
        screened = store.campaigns.get("tune").detail["screened"]
    values = [value for (value,) in screened["values"]]
    assert len(values) == 3
    assert max(values) > 1.5 * min(values), "four workers are faster than one"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("one-nvme", "randomio", "--machine", "one-nvme", "--no-model"), "one of them"),
        (("one-nvme", "--load", "true", "--maximise", "device.r/s", "--machine", "one-nvme"), "cannot run a command"),
    ],
)
def test_a_model_that_cannot_be_used_is_one_line(
    invoke: Callable[..., Ended], arguments: tuple[str, ...], complaint: str
) -> None:
    done = invoke("tune", *arguments, "--knob", "nr_requests=64,128", "--only", "--plan")
    assert done.status == 2
    assert complaint in done.complaint
