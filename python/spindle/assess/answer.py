"""Yes, no or cannot say, with the margin, from a search over multiples of a need."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spindle.assess.assessment import Answer, Bottleneck, Margin
from spindle.base.numbers import plain
from spindle.base.words import listed
from spindle.result.record import Level, RunRecord
from spindle.result.search import TargetPoint, TargetSearch
from spindle.result.target import Target

IN_MEMORY = ("tmpfs", "ramfs")
"""File systems without a disk."""
LITTLE = 1.25
"""A margin below this is little headroom."""
HIDING = ("cache-share", "cache-below")
"""Checks whose problem makes storage look faster: a `no` stays one."""
DISTURBED = ("during-cpu", "during-throttling", "during-swap")
"""Checks of others that take the CPUs, which makes latencies longer: a `no` is not shown then."""
OVERLOAD = ("littles-law", "late", "too-short", "steady", "on-time", "starved", "achieved-depth")
"""Checks that fail because the load is too much."""


def answer_of(search: TargetSearch, at_need: Sequence[RunRecord], limit: Bottleneck | None) -> tuple[Answer, str]:
    """The answer and its reason, one sentence. `at_need`: the runs at the need itself."""
    if at_need and (kept := _keeps_nothing(at_need[0].target)) is not None:
        return "cannot say", kept
    point = search.at(1.0)
    if point is None or not at_need or search.outcome in ("interrupted", "nothing"):
        return "cannot say", "the search did not come to its end"
    invalid = [verdict for run in at_need for verdict in run.verdicts if verdict.level is Level.INVALID]
    if point.decision == "held":
        if invalid:
            return "cannot say", f"the need was met, but {invalid[0].check} is invalid: {invalid[0].evidence}"
        return "yes", _yes(search)
    if point.decision == "undecided":
        return "cannot say", _undecided(search, point)
    if (search.held or 0.0) > 1:
        return "cannot say", f"the need failed, and {plain(search.held or 0.0)} times it was met: something disturbed"
    spoiled = [verdict for verdict in invalid if verdict.check not in (*HIDING, *OVERLOAD)]
    if spoiled:
        return "cannot say", f"the need was not met, but {spoiled[0].check} is invalid: {spoiled[0].evidence}"
    for verdict in (verdict for run in at_need for verdict in run.verdicts):
        if verdict.check in DISTURBED and verdict.level is not Level.OK and not verdict.is_unknown:
            return "cannot say", f"the need was not met, but {verdict.check} warns: {verdict.evidence}"
    if limit is not None and limit.kind == "generator":
        return "cannot say", "the need was not met, but the load generator was the limit"
    return "no", f"the need was not met: {_why(search, point)}"


def margin_of(search: TargetSearch) -> Margin:
    """The largest multiple of the need, with the interval between what held and what failed. A multiple that held above
    one that failed does not count.
    """
    held = [point.value for point in search.points if point.decision == "held"]
    failed = [point.value for point in search.points if point.decision == "failed"]
    first = min(failed, default=math.inf)
    value = None
    if search.monotone and search.held is not None and search.failed is not None:
        value = math.sqrt(search.held * search.failed)
    return Margin(
        value=value,
        least=max((each for each in held if each < first), default=None),
        most=min((each for each in failed if each > max(held, default=0.0)), default=None),
    )


def caveats_of(runs: Sequence[RunRecord]) -> list[str]:
    """Warnings of the runs at the need, each once."""
    found = {
        verdict.check: f"{verdict.check}: {verdict.evidence}"
        for run in runs
        for verdict in run.verdicts
        if verdict.level is not Level.OK and verdict.check not in OVERLOAD and not verdict.is_unknown
    }
    return list(found.values())


def _keeps_nothing(target: Target) -> str | None:
    """The reason why no write is durable on a target; None: it may be."""
    if not target.traits.does_io:
        return f"{target.asked} stores nothing; this is the rate of the load generator"
    file_system = target.detail.get("file_system")
    if file_system in IN_MEMORY:
        return f"{target.asked}: {file_system} is in memory, and nothing is durable there; name a folder on a disk"
    return None


def _yes(search: TargetSearch) -> str:
    margin = margin_of(search)
    if margin.most is None and search.outcome == "never-failed":
        return f"every bound held up to {plain(search.held or 0.0)} times the need, the most that was tried"
    if search.outcome == "generator":
        return (
            f"every bound held up to {plain(search.held or 0.0)} times the need, where the load generator was the limit"
        )
    if (search.held or 0.0) < LITTLE:
        return "the need was met, with little to spare"
    return "the need was met"


def _undecided(search: TargetSearch, point: TargetPoint) -> str:
    about = [
        bound.words for bound, check in zip(search.bounds, point.checks, strict=True) if check.decision == "undecided"
    ]
    if not about:
        return f"some of {len(point.runs)} runs fell behind the need, and others did not"
    return (
        f"after {len(point.runs)} runs with {point.requests} requests in all, {listed(about)} is too close to decide; "
        "longer runs (`seconds=`) can"
    )


def _why(search: TargetSearch, point: TargetPoint) -> str:
    pairs = zip(search.bounds, point.checks, strict=True)
    failed = [f"not {bound.words}" for bound, check in pairs if check.decision == "failed"]
    if not point.sustained:
        return "requests came faster than they were served"
    return listed(failed) if failed else "a bound did not hold"
