"""`spindle array reliability`: the page, its figures, what it takes from the catalogue, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spindle.reliability.group import Group
from spindle.reliability.loss import loss
from tests.program import Invoke

LINE = ["array", "reliability", "--level", "raid6", "--drives", "8x12TB", "--rebuild-hours", "20"]


def found(invoke: Invoke, *more: str) -> Any:
    said = invoke(*LINE, *more, "--json")
    assert said.status == 0, said.err
    return json.loads(said.out)


def test_the_figures_are_those_of_the_chain(invoke: Invoke) -> None:
    report = found(invoke, "--afr", "2%", "--ure-per-bit", "1e-15", "--spares", "1")
    group = Group(
        level="raid6", drives=8, spares=1, afr=0.02, ure_per_bit=1e-15, capacity_bytes=12e12, rebuild_hours=20.0
    )
    exact = loss(group)
    assert report["loss"]["probability"] == pytest.approx(exact.probability, rel=1e-9)
    assert report["loss"]["by_drives"] + report["loss"]["by_sectors"] == pytest.approx(exact.probability)
    assert report["least"] == report["most"] == report["loss"]["probability"], "nothing is uncertain: all was given"


def test_the_page_has_probability_interval_mean_time_causes_and_sources(invoke: Invoke) -> None:
    said = invoke(*LINE)
    assert said.status == 0
    for words in (
        "Loss of data:",
        "over the ranges below",
        "Mean time to it:",
        "3 drives failed at a time",
        "Backblaze",
    ):
        assert words in said.out
    assert "an unreadable sector in the rebuild, with 2 failed drives" in said.out


def test_the_interval_contains_the_probability(invoke: Invoke) -> None:
    report = found(invoke)
    assert report["least"] < report["loss"]["probability"] < report["most"]


def test_a_simulation_is_shown_beside_it(invoke: Invoke) -> None:
    report = found(invoke, "--afr", "3%", "--simulate", "--seed", "5")
    estimate = report["estimate"]
    assert estimate["low"] < estimate["probability"] < estimate["high"]
    assert report["loss"]["probability"] == pytest.approx(estimate["probability"], rel=0.15)
    assert "Monte Carlo:" in invoke(*LINE, "--simulate").out


def test_a_model_brings_its_rates_and_a_simulated_rebuild(invoke: Invoke) -> None:
    said = invoke("array", "reliability", "--level", "raid10", "--drives", "4xST20000NM007D", "--json")
    report = json.loads(said.out)
    inputs = {each["name"]: each for each in report["inputs"]}
    assert inputs["failures a year"]["number"]["value"] == pytest.approx(0.0035)
    assert inputs["failures a year"]["number"]["most"] > 0.0035
    assert "simulated" in inputs["rebuild"]["source"]
    fastest = 20e12 / 285e6 / 3600
    assert fastest < inputs["rebuild"]["number"]["value"] < 3 * fastest
    assert inputs["rebuild"]["number"]["most"] == pytest.approx(3 * inputs["rebuild"]["number"]["value"])


def test_a_raid0_has_one_cause(invoke: Invoke) -> None:
    said = invoke("array", "reliability", "--level", "raid0", "--drives", "4x12TB", "--afr", "1%")
    assert "3.94 % within a year" in said.out
    assert "a drive failed" in said.out
    assert "unreadable sector" not in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--level raid6 --drives 3x12TB", "raid6 needs at least 4"),
        ("--level raid6 --drives eight", "not NUMBERxSIZE or NUMBERxMODEL"),
        ("--level raid6 --drives 0x12TB", "0 drives"),
        ("--level raid6 --drives 8xST20000NM007E", "ST20000NM007D"),
        ("--level raid6 --drives 8x12MB", "too small"),
        ("--level raid7 --drives 8x12TB", "raid0, raid1"),
        ("--level raid6 --drives 8x12TB --afr often", "not a share below 1"),
        ("--level raid6 --drives 8x12TB --afr 120%", "not a share below 1"),
        ("--level raid6 --drives 8x12TB --rebuild-hours 0", "--rebuild-hours"),
        ("--level raid6 --drives 8x12TB --batch-correlation 0.1", "--batch-correlation"),
        ("--level raid6 --drives 8x12TB --years 0", "--years"),
        ("--level raid60 --drives 9x12TB --groups 2", "equal groups"),
        ("--level raid10 --drives 4x12TB --layout x2", "n2 (near)"),
        ("--drives 8x12TB", "--level"),
    ],
)
def test_what_makes_no_array_is_refused_in_one_line(invoke: Invoke, arguments: str, says: str) -> None:
    said = invoke("array", "reliability", *arguments.split())
    assert said.status == 2
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1


def test_the_layout_of_an_array_names_its_risk(invoke: Invoke) -> None:
    line = ["array", "layout", "--drives", "12", "--drive-size", "18TB", "--level"]
    said = invoke(*line, "raid5")
    assert "Loss of data:" in said.out
    assert "`spindle array reliability`" in said.out
    single, double = (json.loads(invoke(*line, level, "--json").out)["yearly_loss"] for level in ("raid5", "raid6"))
    assert single["least"] < single["value"] < single["most"]
    assert double["value"] < single["value"] / 100
    assert json.loads(invoke(*line, "raid0", "--json").out)["yearly_loss"] is None
