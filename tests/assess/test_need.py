"""A need: the numbers of each purpose, their defaults, and the load that they make."""

from __future__ import annotations

import inspect
from typing import get_args, get_type_hints

import pytest

from spindle import _core
from spindle.assess.need import need_of
from spindle.assess.purpose import PURPOSES, Purpose, every_key
from spindle.library.assessing import assess
from spindle.result.workload import Open
from spindle.run.errors import Usage
from spindle.run.resolve import resolve


def rates(purpose: str, multiple: float = 1.0, **given: object) -> dict[str, float]:
    """Requests a second of each stream."""
    load = need_of(purpose, given).load(multiple)
    return {each.name: each.arrival.rate_iops for each in load.spec.streams if isinstance(each.arrival, Open)}


@pytest.mark.parametrize("tps", [1e9, 123456789.0, 0.001, 1.25e-05])
def test_very_many_and_very_few_transactions_are_a_load_too(tps: float) -> None:
    assert rates("postgres", tps=tps)["reads"] == pytest.approx(2 * tps)


@pytest.mark.parametrize("purpose", PURPOSES.values(), ids=list(PURPOSES))
def test_the_default_need_is_the_load_of_the_preset(purpose: Purpose) -> None:
    preset = {each.name: each.arrival.rate_iops for each in resolve(purpose.preset).spec.streams}  # type: ignore[union-attr]
    found = rates(purpose.name)
    assert set(found) == set(need_of(purpose.name, {}).streams)
    assert found == pytest.approx({name: preset[name] for name in found})


def test_the_numbers_of_the_presets_are_those_of_the_defaults() -> None:
    assert rates("postgres") == pytest.approx({"log": 100, "reads": 100 * 2, "checkpoint": 111})
    assert rates("mysql")["reads"] == pytest.approx(100 * 1.7)
    assert rates("vm-host") == pytest.approx({"guests": 10 * 30})
    assert rates("mail")["queue"] == pytest.approx(1000 * 150 * 0.15 / 3600)
    assert rates("backup") == pytest.approx({"backups": 100e6 / 2**20, "copy": 50e6 / 2**20})
    assert rates("video", recordings=4) == pytest.approx(
        {"viewers": 20 * 15e6 / 8 / 2**20, "cameras": 4 * 15e6 / 8 / 2**20}
    )


def test_twice_the_transactions_are_twice_the_load_of_every_stream() -> None:
    assert rates("postgres", tps=200) == pytest.approx({name: 2 * rate for name, rate in rates("postgres").items()})
    assert rates("postgres", 2.0) == pytest.approx(rates("postgres", tps=200))
    assert rates("postgres", reads=6)["reads"] == pytest.approx(600)


def test_a_multiple_of_viewers_has_more_clients_at_the_same_bit_rate() -> None:
    load = need_of("video", {"streams": 10}).load(1.5)
    assert load.spec.streams[0].workers == 15
    assert rates("video", 1.5, streams=10)["viewers"] / 15 == pytest.approx(rates("video", streams=10)["viewers"] / 10)


def test_streams_without_requests_are_left_out() -> None:
    assert set(rates("postgres", reads=0)) == {"log", "checkpoint"}
    assert set(rates("backup", read_rate=0)) == {"backups"}
    assert set(rates("video", streams=0, recordings=3)) == {"cameras"}


def test_both_logs_of_mysql_get_half_of_the_time_of_a_commit() -> None:
    bounds = {bound.stream: bound.limit_ns for bound in need_of("mysql", {"commit_p99": "8ms"}).bounds}
    assert bounds["redo"] == bounds["binlog"] == 4_000_000


def test_a_piece_of_video_must_come_before_the_next_is_due() -> None:
    (bound,) = need_of("video", {"bit_rate": "8.388608Mbit/s"}).bounds
    assert bound.limit_ns == 1_000_000_000
    assert bound.stream == "viewers"


def test_rare_requests_make_the_run_longer() -> None:
    assert need_of("postgres", {}).length_s == 60
    assert need_of("mail", {}).length_s == 320
    assert need_of("mail", {"mailboxes": 10}).length_s == 600
    assert need_of("mail", {}, seconds=5).length_s == 5


@pytest.mark.parametrize(
    ("purpose", "given", "words"),
    [
        ("postgres", {"guests": 3}, "`guests=`: not a number of a need for postgres, which has `tps=`, `reads=`"),
        ("video", {"tps": 3}, "`streams=`, `recordings=` and `bit_rate=`"),
        ("postgres", {"tps": 0}, "`tps=` 0: must be a number above 0"),
        ("postgres", {"tps": "many"}, "`tps=` many: must be a number"),
        ("postgres", {"tps": "nan"}, "`tps=` nan: must be a number above 0"),
        ("postgres", {"tps": 1e300}, "must be a number above 0"),
        ("vm-host", {"guests": 2.5}, "`guests=` 2.5: must be a whole number from 1"),
        ("postgres", {"commit_p99": "5"}, "lacks a unit"),
        ("postgres", {"commit_p99": "0s"}, "must be at least 1us"),
        ("backup", {"rate": "fast"}, "write for example 100MB/s"),
        ("video", {"bit_rate": "15MB/s"}, "write for example 15Mbit/s"),
        ("video", {"streams": 0}, "one of them must be above 0"),
        ("video", {"streams": 100_000}, "at most 10000"),
        ("postgres", {"reads": 0, "read_p99": "5ms"}, "`read_p99=`: the load has no such requests"),
    ],
)
def test_a_wrong_number_is_refused_in_one_line(purpose: str, given: dict[str, object], words: str) -> None:
    with pytest.raises(Usage) as refused:
        need_of(purpose, given)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unknown_purpose_names_the_nearest() -> None:
    with pytest.raises(Usage, match="postgres"):
        need_of("postgresql", {})


def test_the_library_has_an_argument_for_every_number_and_names_every_purpose() -> None:
    bare = inspect.unwrap(assess)
    arguments = inspect.signature(bare).parameters
    assert set(every_key()) <= set(arguments)
    hints = get_type_hints(bare, vars(inspect.getmodule(bare)))
    assert list(get_args(hints["purpose"])) == list(PURPOSES)


def test_every_stream_of_a_purpose_is_in_its_preset_and_has_a_role() -> None:
    for purpose in PURPOSES.values():
        text = _core.preset_text(purpose.preset)
        for stream in purpose.scales:
            assert f'name = "{stream}"' in text
            assert purpose.roles[stream]
