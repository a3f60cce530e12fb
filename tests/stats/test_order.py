"""When trials ran decides what may be claimed of them: turns, blocks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from spindle import _core
from spindle.campaign.cells import Cell
from spindle.campaign.order import Schedule
from spindle.campaign.plan import Order, Plan, Settings, Trials
from spindle.result.figures import figures_from_json
from spindle.result.record import RunRecord
from spindle.stats.arrangement import doubt
from spindle.stats.compare import compare
from spindle.stats.curves import curves
from spindle.stats.effects import effects
from spindle.stats.gate import gate
from spindle.stats.model import fit, paired, welch
from spindle.stats.ranking import rank
from spindle.stats.strata import strata
from spindle.stats.trial import Side, Trial, trial_of
from tests.stats.campaign import run
from tests.stats.noise import autoregressive

Numbers = NDArray[np.float64]
COUNT = 300
"""Campaigns of each test; the sd of a rate of 5 % is 1.3 %."""


def in_order(pattern: str, speed: Numbers, hours: float = 1.0, **changes: object) -> list[Side]:
    """A trial for each letter, one after the other."""
    found: dict[str, list[Trial]] = {letter: [] for letter in sorted(set(pattern))}
    for at, (letter, value) in enumerate(zip(pattern, speed, strict=True)):
        day, hour = divmod(at * hours, 24)
        started = f"2026-01-{1 + int(day):02}T{int(hour):02}:{round(60 * (hour % 1)):02}:00Z"
        trial = Trial(id=str(at), values={"iops": 1000 * float(value)}, order=(started, 0))
        found[letter].append(replace(trial, **changes))  # type: ignore[arg-type]
    return [Side(letter, trials) for letter, trials in found.items()]


def significant(made: Sequence[Side]) -> bool:
    return any(each.difference.significant for each in compare(made, ["iops"]).findings)


def planned(alternatives: int, blocks: int, seed: int, order: Order = Order.BLOCKS) -> list[tuple[int, int]]:
    """(alternative, block) of each trial of a campaign, in its order."""
    plan = Plan(name="", source="", text="", seed=seed, trials=Trials(count=blocks, order=order))
    cells = [Cell(number, {"a": str(number)}, Settings()) for number in range(alternatives)]
    return [(one.cell.number, one.block) for one in next(Schedule(plan, cells).batches(lambda cell, done: []))]


def carried_out(
    alternatives: int,
    blocks: int,
    speed: Callable[[int], Numbers],
    seed: int,
    loud: Mapping[int, float] | None = None,
    order: Order = Order.BLOCKS,
) -> list[Side]:
    """A campaign; `speed` is the logarithm of each trial's, `loud` how many times as noisy an alternative is."""
    plan = planned(alternatives, blocks, seed, order)
    found: list[list[Trial]] = [[] for _ in range(alternatives)]
    for at, ((number, block), value) in enumerate(zip(plan, speed(len(plan)), strict=True)):
        own = float(value) * (loud or {}).get(number, 1.0)
        found[number].append(
            Trial(
                id=str(at),
                values={"iops": 1000 * float(np.exp(own))},
                campaign="c",
                block=block,
                cell={"a": str(number)},
                order=(f"2026-01-{1 + at // 24:02}T{at % 24:02}:00:00Z", at),
            )
        )
    return [Side(chr(65 + number), trials) for number, trials in enumerate(found)]


@pytest.mark.promise(10)
@pytest.mark.parametrize("pattern", ["A" * 5 + "B" * 5, "A" * 20 + "B" * 20, "AABB", "ABBA", "AAABA"])
def test_nothing_is_claimed_of_trials_one_after_the_other_however_far_apart(pattern: str) -> None:
    draw = np.random.default_rng(1)
    speed = np.where(np.array(list(pattern)) == "B", 8.0, 1.0) * np.exp(0.01 * draw.normal(size=len(pattern)))
    made = in_order(pattern, speed)
    found = compare(made, ["iops"])
    assert found.findings[0].outcome == "unknown"
    assert found.findings[0].difference.low is None
    assert "cannot be separated" in found.findings[0].words
    assert gate(made[0], made[1], ["iops"]).outcome == "untested"


@pytest.mark.promise(10)
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("pattern", [("A" * 5 + "B" * 5) * 2, "AABB" * 4, "AB" * 8, "ABBA" * 3])
def test_equal_trials_in_turns_of_any_length_rarely_differ_significantly(pattern: str, rho: float) -> None:
    claimed = sum(
        significant(in_order(pattern, np.exp(0.03 * autoregressive(len(pattern), rho, seed)))) for seed in range(COUNT)
    )
    assert claimed / COUNT <= 0.07


@pytest.mark.promise(10)
def test_two_campaigns_one_after_the_other_are_not_taken_for_blocks_that_met() -> None:
    speed = np.concatenate([np.full(10, 1.0), np.full(10, 8.2)]) * np.exp(
        0.01 * np.random.default_rng(2).normal(size=20)
    )
    made = [
        Side(side.label, [replace(trial, campaign=side.label, block=at) for at, trial in enumerate(side.trials)])
        for side in in_order("A" * 10 + "B" * 10, speed)
    ]
    found = compare(made, ["iops"])
    assert found.findings[0].outcome == "unknown"
    assert any(note.startswith("They ran one after the other") for note in found.notes)


@pytest.mark.promise(10)
def test_a_campaign_that_ran_cell_by_cell_has_blocks_in_name_only() -> None:
    made = carried_out(3, 6, lambda n: np.linspace(0, 1, n), 1, order=Order.SEQUENTIAL)
    assert not significant(made)
    assert rank("iops", made, strata(made)) is None
    found = effects("iops", [trial for side in made for trial in side.trials])
    assert found is not None
    assert not found.tested
    assert any("one after the other" in line for line in found.not_tested)


@pytest.mark.promise(10)
def test_one_alternative_by_day_and_the_other_by_night_do_not_differ_significantly() -> None:
    """Five days, twelve hours each: the hour may be the cause."""
    pattern = ("A" * 12 + "B" * 12) * 5
    cycle = np.exp(
        0.2 * np.sin(2 * np.pi * (np.arange(120) - 0.5) / 24) + 0.005 * np.random.default_rng(3).normal(size=120)
    )
    found = compare(in_order(pattern, cycle), ["iops"])
    assert found.findings[0].outcome == "unknown"
    assert "different hours of the day" in found.findings[0].words


@pytest.mark.promise(10)
def test_runs_of_unknown_time_do_not_differ_significantly() -> None:
    made = [
        Side(label, [Trial(id="", values={"iops": level + at}, order=("", at)) for at in range(6)])
        for label, level in (("A", 100.0), ("B", 900.0))
    ]
    found = compare(made, ["iops"])
    assert found.findings[0].outcome == "unknown"
    assert "not recorded" in found.findings[0].words


def with_latency(record: RunRecord, service_ns: int) -> RunRecord:
    """With a real histogram: every request takes the same time."""
    workload = _core.Workload.parse("requests=2000\n[[stream]]\nsize='4KiB'\n", "test", "test", [])
    return structs.replace(record, figures=figures_from_json(_core.Run.null(workload, 1 << 20, service_ns).figures()))


@pytest.mark.promise(10)
def test_whole_distributions_obey_the_order_as_well() -> None:
    def side(label: str, day: int, service_ns: int) -> Side:
        records = [run(1000.0, number=at, day=day) for at in range(5)]
        return Side(label, [trial_of(with_latency(each, service_ns + at)) for at, each in enumerate(records)])

    (found,) = curves([side("A", 1, 20_000), side("B", 2, 60_000)])
    assert all(point.low is None for point in found.points)
    assert "nothing can be claimed" in found.words


def test_a_difference_that_is_there_is_found_in_turns() -> None:
    found = 0
    for seed in range(100):
        speed = np.exp(0.03 * np.random.default_rng(seed).normal(size=20)) * np.tile([1.0, 1.06], 10)
        found += significant(in_order("AB" * 10, speed))
    assert found >= 90


DRIFTS: dict[str, Callable[[Numbers], Numbers]] = {
    "linear": lambda at: at,
    "quadratic": lambda at: 4 * (at - 0.5) ** 2,
    "step": lambda at: (at > 0.4).astype(np.float64),
    "decay": lambda at: np.exp(-4 * at),
}


@pytest.mark.promise(11)
@pytest.mark.parametrize("blocks", range(2, 9))
@pytest.mark.parametrize("kind", DRIFTS)
def test_few_blocks_under_a_drift_rarely_differ_significantly(kind: str, blocks: int) -> None:
    claimed = 0
    for seed in range(COUNT // 2):
        draw = np.random.default_rng(seed)
        speed = lambda n: 0.1 * DRIFTS[kind](np.linspace(0, 1, n)) + 0.003 * draw.normal(size=n)  # noqa: B023, E731
        claimed += significant(carried_out(2, blocks, speed, seed))
    assert claimed / (COUNT // 2) <= 0.08


@pytest.mark.promise(11)
@pytest.mark.parametrize(("blocks", "cycles"), [(3, 2), (3, 3), (4, 2), (4, 3), (10, 3)])
def test_few_blocks_under_a_cycle_of_any_phase_rarely_differ_significantly(blocks: int, cycles: int) -> None:
    claimed = 0
    for seed in range(COUNT):
        draw = np.random.default_rng(seed)
        wave = 0.05 * np.sin(2 * np.pi * (cycles * np.linspace(0, 1, 2 * blocks) + draw.random()))
        claimed += significant(carried_out(2, blocks, lambda n: wave + 0.005 * draw.normal(size=n), seed))  # noqa: B023
    assert claimed / COUNT <= 0.07


@pytest.mark.promise(11)
def test_a_large_difference_is_found_in_three_blocks() -> None:
    found = 0
    for seed in range(50):
        a, b = carried_out(2, 3, lambda n: 0.02 * np.random.default_rng(seed).normal(size=n), seed)  # noqa: B023
        faster = [replace(trial, values={"iops": 1.5 * trial.values["iops"]}) for trial in b.trials]
        found += significant([a, Side(b.label, faster)])
    assert found >= 45


@pytest.mark.promise(11)
@pytest.mark.parametrize("blocks", [3, 4, 5])
def test_the_test_is_as_much_surer_as_there_are_few_orders(blocks: int) -> None:
    orders = {tuple(number for number, _ in planned(2, blocks, seed)) for seed in range(400)}
    assert doubt(blocks) == pytest.approx(1 + 2 / len(orders) / 0.05)


@pytest.mark.promise(11)
def test_no_alternative_goes_first_again_and_again() -> None:
    for alternatives in (2, 3, 8):
        for seed in range(100):
            later = np.zeros(alternatives)
            plan = planned(alternatives, 8, seed)
            for block in range(8):
                for place, (number, _) in enumerate(plan[block * alternatives : (block + 1) * alternatives]):
                    later[number] += place - (alternatives - 1) / 2
                assert np.abs(later).max() <= alternatives - 1


@pytest.mark.promise(11)
def test_two_blocks_claim_nothing_and_say_so() -> None:
    found = compare(carried_out(2, 2, lambda n: np.resize([0.0, 1.0], n), 1), ["iops"])
    assert found.findings[0].outcome == "unknown"
    assert "fewer than 3 blocks" in found.findings[0].words


@pytest.mark.promise(11)
def test_blocks_of_the_same_order_each_time_do_not_make_a_drift_a_difference() -> None:
    made = in_order("AB" * 12, np.exp(np.linspace(0, 0.5, 24)), campaign="c")
    made = [Side(s.label, [replace(t, block=at) for at, t in enumerate(s.trials)]) for s in made]
    assert not significant(made)


@pytest.mark.promise(12)
@pytest.mark.parametrize("noisy", [0, 7])
@pytest.mark.parametrize("times", [5.0, 20.0])
def test_the_true_best_stays_among_those_that_may_be_beside_a_noisy_one_and_as_the_noisy_one(
    noisy: int, times: float
) -> None:
    missed = 0
    for seed in range(COUNT // 3):
        draw = np.random.default_rng(seed)
        made = carried_out(8, 3, lambda n: 0.01 * draw.normal(size=n), seed, {noisy: times})  # noqa: B023
        best = [replace(t, values={"iops": 1.02 * t.values["iops"]}) for t in made[7].trials]
        made = [*made[:7], Side("H", best)]
        ranking = rank("iops", made, strata(made))
        missed += ranking is not None and "H" not in ranking.best
    assert missed / (COUNT // 3) <= 0.07


@pytest.mark.promise(12)
def test_a_noisy_third_does_not_hide_what_a_pair_shows() -> None:
    draw = np.random.default_rng(5)
    made = carried_out(3, 5, lambda n: 0.01 * draw.normal(size=n), 5, {2: 20.0})
    made[1] = Side("B", [replace(t, values={"iops": 1.1 * t.values["iops"]}) for t in made[1].trials])
    assert significant(made[:2])
    ranking = rank("iops", made, strata(made))
    assert ranking is not None
    assert "A" not in ranking.best


@pytest.mark.promise(12)
@pytest.mark.parametrize("times", [5.0, 20.0])
def test_a_noisy_cell_makes_no_effect_of_a_factor(times: float) -> None:
    claimed = unequal = 0
    for seed in range(COUNT):
        draw = np.random.default_rng(seed)
        made = carried_out(6, 4, lambda n: 0.01 * draw.normal(size=n), seed, {0: times})  # noqa: B023
        trials = [
            replace(trial, cell={"a": str(at // 2), "b": str(at % 2)})
            for at, s in enumerate(made)
            for trial in s.trials
        ]
        found = effects("iops", trials)
        assert found is not None
        claimed += any(effect.significant for effect in found.effects)
        unequal += found.unequal
    assert claimed / COUNT <= 0.07
    assert unequal / COUNT >= (0.5 if times == 20 else 0.1)


def test_the_short_forms_are_the_model() -> None:
    draw = np.random.default_rng(7)
    a, b = draw.normal(size=6), draw.normal(size=6)
    both, groups = np.concatenate([a, b]), np.repeat([0, 1], 6)
    for short, strata_ in ((paired(b - a), np.tile(np.arange(6), 2)), (welch(a, b), np.zeros(12, dtype=np.intp))):
        long = fit(both, groups, strata_, in_time=False).contrast(1, 0)
        assert long is not None
        for name in ("difference", "variance", "freedom", "spread"):
            assert getattr(short, name) == pytest.approx(getattr(long, name))
