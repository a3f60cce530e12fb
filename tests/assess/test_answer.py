"""The answer from a search over multiples of a need."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spindle.assess.answer import answer_of, caveats_of, margin_of
from spindle.assess.assessment import Bottleneck
from spindle.result.record import Level, RunRecord, Verdict
from spindle.result.search import Bound, BoundCheck, Decision, TargetPoint, TargetSearch
from tests.cli.records import quiet_read

MS = 1_000_000
BOUND = Bound(operation="write", percentile=99.0, limit_ns=10 * MS, stream="log")


def point(value: float, decision: Decision, sustained: bool = True) -> TargetPoint:
    check = BoundCheck(latency_ns=9.0 * MS, fraction_over=0.01, low=0.0, high=0.02, decision=decision)
    return TargetPoint(
        value=value, iops=100.0, bytes_per_s=1e6, mean_latency_ns=MS, checks=[check], sustained=sustained,
        decision=decision, runs=["20261124T000000Z-000000"], requests=5000,
    )  # fmt: skip


def search(*points: tuple[float, Decision], **changes: Any) -> TargetSearch:
    """A search with these points, as `latency_search` sums it up."""
    found = [point(value, decision) for value, decision in sorted(points)]
    held = max((each.value for each in found if each.decision == "held"), default=None)
    above = [each.value for each in found if each.decision != "held" and each.value > (held or 0)]
    base = TargetSearch(
        bounds=[BOUND], variable="need", points=found, held=held, failed=min(above, default=None), outcome="bracketed",
        monotone=not any(each.decision == "failed" and each.value < (held or 0) for each in found),
    )  # fmt: skip
    return replace(base, **changes)


def runs(**verdicts: Level) -> list[RunRecord]:
    """A run at the need with these verdicts."""
    found = [
        Verdict(check=check.replace("_", "-"), level=level, evidence="because") for check, level in verdicts.items()
    ]
    return [replace(quiet_read(), verdicts=found)]


def test_a_need_that_held_is_a_yes_with_its_margin() -> None:
    found = search((1.0, "held"), (1.5, "held"), (1.55, "failed"))
    assert answer_of(found, runs(), None) == ("yes", "the need was met")
    margin = margin_of(found)
    assert (margin.least, margin.most) == (1.5, 1.55)
    assert margin.value == pytest.approx(1.525, abs=0.001)


def test_a_margin_below_a_quarter_is_called_little() -> None:
    assert (
        answer_of(search((1.0, "held"), (1.05, "failed")), runs(), None)[1] == "the need was met, with little to spare"
    )


def test_a_need_that_failed_is_a_no_and_names_the_bound() -> None:
    answer, reason = answer_of(search((0.5, "held"), (1.0, "failed")), runs(), None)
    assert (answer, reason) == ("no", "the need was not met: not p99 of log writes at most 10.0 ms")


def test_an_undecided_need_cannot_say_and_asks_for_longer_runs() -> None:
    answer, reason = answer_of(search((0.5, "held"), (1.0, "undecided")), runs(), None)
    assert answer == "cannot say"
    assert "p99 of log writes at most 10.0 ms is too close to decide; longer runs (`seconds=`) can" in reason


@pytest.mark.parametrize("check", ["cache_share", "settings", "errors"])
def test_an_invalid_run_is_no_yes(check: str) -> None:
    answer, reason = answer_of(search((1.0, "held")), runs(**{check: Level.INVALID}), None)
    assert answer == "cannot say"
    assert check.replace("_", "-") in reason


def test_a_cache_that_helped_leaves_a_no_a_no() -> None:
    failed = search((0.5, "held"), (1.0, "failed"))
    assert answer_of(failed, runs(cache_share=Level.INVALID), None)[0] == "no"
    assert answer_of(failed, runs(littles_law=Level.INVALID), None)[0] == "no"
    assert answer_of(failed, runs(settings=Level.INVALID), None)[0] == "cannot say"


def test_other_programs_on_the_cpus_make_a_no_doubtful_and_leave_a_yes() -> None:
    busy = runs(during_cpu=Level.WARN)
    assert answer_of(search((0.5, "held"), (1.0, "failed")), busy, None)[0] == "cannot say"
    assert answer_of(search((1.0, "held")), busy, None)[0] == "yes"
    assert caveats_of(busy) == ["during-cpu: because"]


def test_the_limit_of_the_generator_is_no_limit_of_the_storage() -> None:
    limit = Bottleneck(kind="generator", stream="log", words="the CPUs", evidence=[])
    assert answer_of(search((0.5, "held"), (1.0, "failed")), runs(), limit)[0] == "cannot say"


def test_a_larger_load_that_held_makes_a_failure_doubtful() -> None:
    found = search((1.0, "failed"), (1.5, "held"), (2.25, "failed"))
    assert answer_of(found, runs(), None)[0] == "cannot say"
    assert margin_of(found).least is None
    assert margin_of(found).most == 2.25
    assert margin_of(found).value is None


def test_a_margin_ends_at_the_first_failure() -> None:
    margin = margin_of(search((1.0, "held"), (1.5, "failed"), (2.25, "held"), (3.4, "failed")))
    assert (margin.least, margin.most, margin.value) == (1.0, 3.4, None)


def test_undecided_multiples_widen_the_interval() -> None:
    margin = margin_of(search((1.0, "held"), (1.2, "undecided"), (1.5, "failed")))
    assert (margin.least, margin.most) == (1.0, 1.5)


def test_a_search_that_was_stopped_cannot_say() -> None:
    assert answer_of(search((1.0, "held"), outcome="interrupted"), runs(), None)[0] == "cannot say"
    assert answer_of(search(outcome="nothing"), [], None)[0] == "cannot say"


def test_memory_is_not_durable() -> None:
    (run,) = runs()
    target = replace(run.target, detail={**run.target.detail, "file_system": "tmpfs"})
    answer, reason = answer_of(search((1.0, "held")), [replace(run, target=target)], None)
    assert answer == "cannot say"
    assert "tmpfs is in memory" in reason
