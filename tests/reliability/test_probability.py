"""The probability that an array loses data: closed forms, a brute-force chain in exact arithmetic, limits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from spindle.base.errors import ConfigError
from spindle.reliability import closed
from spindle.reliability.cases import closed_cases
from spindle.reliability.chain import Chain
from spindle.reliability.group import HOURS_PER_YEAR, Group, Wear
from spindle.reliability.loss import loss, yearly_loss
from spindle.reliability.redundancy import critical, fatal, redundancy_of, surviving

GOOD: dict[str, Any] = {"afr": 0.01, "capacity_bytes": 18e12, "rebuild_hours": 30.0}


def array(**changes: Any) -> Group:
    return Group(**{**GOOD, "level": "raid6", "drives": 8, **changes})


def test_the_chain_agrees_with_the_closed_forms_of_textbooks_within_1_percent() -> None:
    for group in closed_cases():
        assert loss(group).mean_hours == pytest.approx(closed.mean_hours(group), rel=0.01), group


def test_the_closed_forms_approach_the_ones_that_everybody_quotes() -> None:
    plain = {"ure_per_bit": 0.0, "rebuild_stages": 1, "replace_hours": 0.0, "afr": 1e-4}
    rate = array(**plain).failure_rate
    for level, drives, form in [
        ("raid1", 2, 1 / 30 / (2 * rate**2)),
        ("raid5", 8, 1 / 30 / (8 * 7 * rate**2)),
        ("raid6", 8, (1 / 30) ** 2 / (8 * 7 * 6 * rate**3)),
    ]:
        found = closed.mean_hours(array(level=level, drives=drives, **plain))
        assert found == pytest.approx(form, rel=0.01), level


def test_a_raid0_survives_as_often_as_all_its_drives() -> None:
    found = yearly_loss(array(level="raid0", drives=4))
    assert found == pytest.approx(1 - 0.99**4, rel=1e-9)


def exact_loss(group: Group) -> Fraction:
    """The yearly loss by solving the chain's own equations in exact fractions, for a rate that makes it slow: the mean
    time by elimination."""
    chain = Chain(group)
    count = len(chain.states)
    rates = [[Fraction(float(chain.rates[i, j])) for j in range(count)] for i in range(count)]
    losses = [Fraction(float(chain.losses[i].sum())) for i in range(count)]
    rows = [
        [-rates[i][j] if i != j else sum(rates[i]) - rates[i][i] + losses[i] for j in range(count)] + [Fraction(1)]
        for i in range(count)
    ]
    for at in range(count):
        pivot = next(row for row in range(at, count) if rows[row][at] != 0)
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for row in range(count):
            if row != at and rows[row][at] != 0:
                factor = rows[row][at]
                rows[row] = [value - factor * own for value, own in zip(rows[row], rows[at], strict=True)]
    return rows[0][count]


@pytest.mark.parametrize(
    "changes",
    [
        {"ure_per_bit": 0.0, "rebuild_hours": 1.0, "replace_hours": 1.0, "rebuild_stages": 2, "afr": 1e-4},
        {"level": "raid1", "drives": 4, "afr": 1e-3, "ure_per_bit": 0.0, "rebuild_hours": 1.0, "rebuild_stages": 2},
        {"level": "raid60", "drives": 12, "groups": 2, "rebuild_stages": 2, "replace_hours": 0.0},
    ],
)
def test_tiny_probabilities_have_as_many_right_digits_as_large_ones(changes: dict[str, Any]) -> None:
    group = array(**changes)
    mean = float(exact_loss(group))
    found = loss(group)
    assert found.mean_hours == pytest.approx(mean, rel=1e-9)
    assert found.probability == pytest.approx(-math.expm1(-HOURS_PER_YEAR / mean), rel=0.03), "it starts whole"


def test_a_year_and_two_half_years_give_the_same() -> None:
    group = array(level="raid5", drives=5, rebuild_stages=3)
    chain = Chain(group)
    whole, half = chain.evolution(HOURS_PER_YEAR), chain.evolution(HOURS_PER_YEAR / 2)
    assert (half @ half)[0, -2:] == pytest.approx(whole[0, -2:], rel=1e-9)


@pytest.mark.parametrize(
    ("drives", "layout"), [(6, "n2"), (5, "n2"), (6, "f2"), (7, "o2"), (6, "n3"), (7, "n3"), (8, "n2f2")]
)
def test_the_sets_that_a_raid10_survives_are_those_of_its_map(drives: int, layout: str) -> None:
    """Count them from the drawing of the core, chunk by chunk."""
    import json

    from spindle import _core

    drawn = json.loads(_core.array_layout("raid10", [64 << 20] * drives, layout=layout, chunk=4 << 20, rows=1000))[
        "drawing"
    ]["sections"]
    homes: dict[str, set[int]] = {}
    for section in drawn:
        for row in section["rows"]:
            for drive, cell in enumerate(row["cells"]):
                if cell:
                    homes.setdefault(cell, set()).add(drive)
    of = redundancy_of(array(level="raid10", drives=drives, layout=layout))
    for failed in range(1, min(drives, 5)):
        sets = [set(each) for each in combinations(range(drives), failed)]
        kept = sum(not any(home <= each for home in homes.values()) for each in sets)
        assert surviving(of, failed) == pytest.approx(kept / len(sets)), failed


def test_the_sets_of_two_groups_are_counted_as_they_are() -> None:
    of = redundancy_of(array(level="raid60", drives=8, groups=2))
    sets = [set(each) for each in combinations(range(8), 4)]
    kept = [each for each in sets if len(each & {0, 1, 2, 3}) == 2]
    assert surviving(of, 4) == pytest.approx(len(kept) / len(sets))
    assert fatal(of, 2) == pytest.approx(1 - surviving(of, 3) / 1.0)  # type: ignore[operator]
    pairs = [set(each) for each in combinations(range(8), 2)]
    together = sum(len(each & {0, 1, 2, 3}) != 1 for each in pairs)
    assert critical(of, 2) == pytest.approx(together / len(pairs))
    assert critical(of, 1) == 0


def test_more_of_what_is_bad_is_never_better() -> None:
    base = array(drives=10)
    worse: list[dict[str, Any]] = [
        {"afr": 0.02},
        {"drives": 12},
        {"rebuild_hours": 60.0},
        {"replace_hours": 96.0},
        {"ure_per_bit": 1e-14},
        {"latent_per_year": 1.0},
        {"batch_correlation": 5.0},
        {"wear": Wear(shape=3, age_years=4)},
    ]
    for change in worse:
        assert yearly_loss(array(**{"drives": 10, **change})) > 1.01 * yearly_loss(base), change
    better: list[dict[str, Any]] = [{"spares": 1}, {"rebuild_hours": 10.0}, {"level": "raid1", "drives": 3}]
    for change in better:
        assert yearly_loss(array(**{"drives": 10, **change})) < 0.99 * yearly_loss(base), change


def test_scrubs_count_only_if_there_are_latent_errors_and_none_is_worst() -> None:
    plain = [yearly_loss(array(scrub_days=days)) for days in (7.0, 90.0, None)]
    assert plain[0] == pytest.approx(plain[1]) == pytest.approx(plain[2])
    latent = [yearly_loss(array(scrub_days=days, latent_per_year=1.0)) for days in (7.0, 90.0, None)]
    assert latent[0] < latent[1] < latent[2]


def test_wear_makes_new_drives_better_and_old_ones_worse_than_the_mean() -> None:
    mean = yearly_loss(array())
    new, old = (yearly_loss(array(wear=Wear(shape=3, age_years=age))) for age in (0.0, 5.0))
    assert new < mean < old


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"level": "raid7"}, "allowed are raid0"),
        ({"drives": 3}, "raid6 needs at least 4"),
        ({"afr": 1.5}, "`afr=` is 1.5; allowed are 0 to 0.999"),
        ({"afr": math.nan}, "`afr=`"),
        ({"groups": 2}, "raid6 has no groups"),
        ({"level": "raid60", "groups": 3}, "do not make equal groups"),
        ({"level": "raid10", "layout": "x2"}, "n2 (near)"),
        ({"level": "raid10", "drives": 2, "layout": "n3"}, "3 copies do not fit on 2"),
        ({"rebuild_hours": 0.0}, "`rebuild_hours=`"),
        ({"batch_correlation": 0.5}, "`batch_correlation=`"),
    ],
)
def test_wrong_numbers_are_refused_in_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        array(**changes)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
