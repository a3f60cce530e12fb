"""Drives by name: every one in the catalogue works alone, and its figures hang together."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from spindle import _core
from spindle.base.offers import facts
from tests.program import Invoke

DRAWN = _core.drive_names()[::3]
"""All curves of a drive take half a second; the tests of `crates/drive` compare every drive with its sheet."""


@cache
def shown(name: str) -> Any:
    return json.loads(_core.drive_show(name))


@pytest.mark.parametrize("name", DRAWN)
def test_every_third_drive_in_the_catalogue_can_be_shown(name: str) -> None:
    found = shown(name)
    assert found["name"] == name
    assert found["iops_by_depth"]
    assert all(point["iops"] > 0 for point in found["iops_by_depth"])


def test_a_deeper_queue_never_serves_fewer_reads() -> None:
    for name in DRAWN:
        iops = [point["iops"] for point in shown(name)["iops_by_depth"]]
        assert all(later >= earlier * 0.99 for earlier, later in pairwise(iops)), (name, iops)


def test_an_unknown_drive_names_the_nearest() -> None:
    with pytest.raises(_core.ConfigError, match="HDS725050KLA360"):
        _core.drive_show("HDS725050KLA36O")


def test_the_same_drive_shows_the_same_twice() -> None:
    assert _core.drive_show("HDS725050KLA360") == _core.drive_show("HDS725050KLA360")


def test_a_drive_on_sale_is_shown_with_its_rates_power_and_place(invoke: Invoke) -> None:
    said = invoke("drives", "show", "980-PRO-1TB")
    for words in (
        "Failures: 0.58 % (0.58 to 1.4 %) of the drives a year",
        "Unreadable: 1 sector in 1e15 bits (1e15 to 1e16)",
        "Place: M.2, NVMe",
        "Endurance: 600.0 TB written",
    ):
        assert words in said.out
    offer = shown("980-PRO-1TB")["offer"]
    assert offer["afr"] == pytest.approx({"value": 0.0058, "least": 0.0058, "most": 0.014})
    assert offer["endurance"] == 600_000_000_000_000


def test_facts_of_a_drive_need_no_simulation_and_name_the_nearest_if_there_is_none() -> None:
    drive = facts("WUH722424ALE6L4")
    assert (drive.kind, drive.rpm, drive.capacity) == ("disk", 7200, 24_000_277_250_048)
    assert drive.inner_bytes_per_second < drive.mean_bytes_per_second < drive.bytes_per_second == 298e6
    assert facts("HD160JJ").offer.afr is None
    with pytest.raises(_core.ConfigError, match="WUH722424ALE6L4"):
        facts("WUH722424ALE6L5")


def test_an_example_of_prices_is_printed(invoke: Invoke) -> None:
    assert invoke("drives", "prices").out == _core.example_prices()


@pytest.mark.promise(29)
def test_the_list_works_out_what_it_shows_and_no_curve(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise AssertionError(f"all curves of {name} were worked out for a list")

    monkeypatch.setattr(_core, "drive_show", refuse)
    assert len(invoke("drives").out.splitlines()) == 1 + len(_core.drive_names())
