"""Drives by name: every one in the catalogue works alone, and its figures hang together."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from spindle import _core
from tests.program import Invoke


def shown(name: str) -> Any:
    return json.loads(_core.drive_show(name))


@pytest.mark.parametrize("name", _core.drive_names())
def test_every_drive_in_the_catalogue_can_be_shown(name: str) -> None:
    found = shown(name)
    assert found["name"] == name
    assert found["iops_by_depth"]
    assert all(point["iops"] > 0 for point in found["iops_by_depth"])


def test_a_deeper_queue_never_serves_fewer_reads() -> None:
    for name in _core.drive_names():
        iops = [point["iops"] for point in shown(name)["iops_by_depth"]]
        assert all(later >= earlier * 0.99 for earlier, later in pairwise(iops)), (name, iops)


def test_an_unknown_drive_names_the_nearest() -> None:
    with pytest.raises(_core.ConfigError, match="HDS725050KLA360"):
        _core.drive_show("HDS725050KLA36O")


def test_the_same_drive_shows_the_same_twice() -> None:
    assert _core.drive_show("HDS725050KLA360") == _core.drive_show("HDS725050KLA360")


@pytest.mark.promise(29)
def test_the_list_works_out_what_it_shows_and_no_curve(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise AssertionError(f"all curves of {name} were worked out for a list")

    monkeypatch.setattr(_core, "drive_show", refuse)
    assert len(invoke("drives").out.splitlines()) == 1 + len(_core.drive_names())
