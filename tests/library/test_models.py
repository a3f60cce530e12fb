"""Arrays, drives and campaigns from Python, as the verbs have them."""

from __future__ import annotations

from pathlib import Path

import pytest

import spindle
from tests.program import spindle as program


def test_an_array_is_the_one_that_the_verb_draws() -> None:
    found = spindle.array_map("raid10", 6, layout="f2", chunk="64KiB", drive_size="500GB")
    options = ("--level=raid10", "--drives=6", "--layout=f2", "--chunk=64KiB", "--drive-size=500GB")
    assert found.to_dict() == program("array", "layout", *options, "--json").json
    assert str(found) == program("array", "layout", *options).out.rstrip("\n")
    assert found.capacity == found.to_dict()["capacity"]
    assert found.survives == 1


@pytest.mark.parametrize(
    ("level", "options", "words"),
    [
        ("raid7", {"drives": 3}, "raid7"),
        ("raid5", {}, "`drives=`"),
        ("raid5", {"drives": 3, "drive_size": ["1TB", "2TB"]}, "`drives=` 3 but 2 drive sizes"),
        ("raid5", {"drives": 3, "rebuild_rate": 0}, "`rebuild_rate=` 0"),
    ],
)
def test_an_array_that_cannot_be_is_an_error(level: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(spindle.Error, match=words):
        spindle.array_map(level, **options)  # type: ignore[arg-type]


def test_drives_have_their_curves() -> None:
    assert "HDS725050KLA360" in spindle.drives()
    assert spindle.drive("HDS725050KLA360").capacity > 400e9
    with pytest.raises(spindle.Error, match="did you mean"):
        spindle.drive("HDS725050KLA361")


PLAN = """
workload = "randomio"
target = "one-sata"
options.seconds = 2

[factors.size]
sets = "options.size"
values = ["4KiB", "256KiB"]

[trials]
count = 2
metric = "iops"
"""


def test_a_campaign_is_carried_out_and_compared(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    with spindle.open_store(tmp_path / "results.db") as store:
        found = spindle.campaign(tmp_path / "plan.toml", name="sizes", store=store)
        assert found.cells["size"] == ["4KiB", "256KiB"]
        assert found.cells["done"] == [2, 2]
        assert found.cells["mean"][0] > found.cells["mean"][1]
        assert len(store["campaign:sizes"]) == 4
        compared = spindle.compare(store["campaign:sizes"])
        assert compared.study.comparison.sides == ["size=4KiB", "size=256KiB"]
        again = spindle.campaign(resume="sizes", store=store)
    assert again.to_dict() == found.to_dict()
    shown = program("campaign", "show", "sizes", "--store", tmp_path / "results.db")
    assert str(found) == shown.out.rstrip("\n")
    assert "256KiB" in found._repr_html_()


def test_a_wrong_plan_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(spindle.Error) as error, spindle.open_store(tmp_path / "results.db") as store:
        spindle.campaign("no-such-plan", store=store)
    assert "\n" not in str(error.value)
