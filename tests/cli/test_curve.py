"""The open-loop curve shows latency over throughput up to saturation, and says where that is."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from spindle.result.document import decode, encode, schema
from spindle.result.record import CurveRecord, Level
from spindle.run import curve, openloop
from spindle.run.curve import parse_rates
from spindle.run.errors import Usage
from spindle.run.resolve import resolve
from tests.cli.test_target import READ_ONLY, Queue
from tests.documents import present
from tests.program import Invoke


def drawn(*rates: float) -> curve.CurveResult:
    return curve.curve(Queue(), resolve("randomio", READ_ONLY), rates)


def test_the_curve_goes_from_a_tenth_of_the_highest_rate_to_beyond_saturation() -> None:
    found = drawn().curve
    assert found.capacity is not None
    assert found.capacity.iops == 800
    assert found.points[0].offered_iops == pytest.approx(80)
    assert found.saturated_iops == pytest.approx(840)
    assert found.sustained_iops == pytest.approx(800)
    assert [point.saturated for point in found.points][-3:] == [False, True, True]
    tails = [present(point.p99_latency_ns) for point in found.points]
    assert tails == sorted(tails)
    assert curve.verdicts(found, stopped=False) == []


def test_given_rates_are_run_unchanged() -> None:
    found = drawn(100, 700, 900, 1000, 1100)
    assert [point.offered_iops for point in found.curve.points] == [100, 700, 900, 1000, 1100]
    assert (found.curve.sustained_iops, found.curve.saturated_iops, found.curve.capacity) == (700, 900, None)
    assert len(found.runs) == 5


def test_a_curve_that_ends_before_saturation_says_so() -> None:
    found = drawn(100, 200).curve
    assert found.saturated_iops is None
    assert [each.level for each in curve.verdicts(found, stopped=False)] == [Level.WARN]


def test_streams_share_a_rate_as_they_ask_for_it() -> None:
    text = "[[stream]]\nname = 'a'\nrate = '300 IOPS'\n[[stream]]\nname = 'b'\nrate = '100 IOPS'\n"
    from spindle.run.resolve import resolve_text

    resolved = resolve_text(text, "w.toml", "w")
    shares = openloop.shares_of(Queue(), resolved, [])
    assert shares is not None
    assert shares.by_stream == {"a": 0.75, "b": 0.25}
    step = openloop.at_rate(resolved, shares, 800)
    assert [getattr(stream.arrival, "rate_iops", None) for stream in step.spec.streams] == [600, 200]


def test_some_streams_with_a_rate_and_others_without_are_refused() -> None:
    from spindle.run.resolve import resolve_text

    text = "[[stream]]\nname = 'a'\nrate = '300 IOPS'\n[[stream]]\nname = 'b'\n"
    with pytest.raises(Usage, match="stream b has no rate"):
        curve.curve(Queue(), resolve_text(text, "w.toml", "w"))


@pytest.mark.parametrize(("text", "rates"), [("500", (500.0,)), ("2k,500, 1M", (500.0, 2000.0, 1e6))])
def test_rates_are_read(text: str, rates: tuple[float, ...]) -> None:
    assert parse_rates(text) == rates


@pytest.mark.parametrize("text", ["", "x", "0", "-5", "1,,2", "1e12", "nan"])
def test_a_wrong_rate_is_one_line(text: str) -> None:
    with pytest.raises(Usage, match="`rates=`"):
        parse_rates(text)


def test_on_a_modelled_disk_the_curve_bends_where_it_saturates(invoke: Invoke, here: Path) -> None:
    ended = invoke(
        *("run", "randomio", "one-sata", "--rates", "10,40,80,400", "--write-fraction", "0", "--seconds", "10"),
        *("-o", "c.json", "-q"),
    )
    assert ended.status == 0, ended.err
    found = decode((here / "c.json").read_bytes(), "c.json")
    assert isinstance(found, CurveRecord)
    assert [point.saturated for point in found.curve.points] == [False, False, False, True]
    assert present(found.curve.points[-1].p50_latency_ns) > 20 * present(found.curve.points[0].p50_latency_ns)
    assert "saturated" in ended.out
    assert decode(encode(found), "c.json") == found
    jsonschema.Draft202012Validator(schema("result")).validate(json.loads(encode(found)))
    for name in ("show c.json", "report c.json -o r.html", "report c.json -o r.md", "report c.json"):
        shown = invoke(*name.split())
        assert shown.status == 0, shown.err
    assert "Latency over throughput, open loop" in (here / "r.html").read_text()
