"""The bottleneck, from the runs at the smallest multiple of the need that was too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spindle.assess.assessment import Bottleneck
from spindle.assess.margin import Alone, starving, worst_stream
from spindle.assess.need import Need
from spindle.base import units
from spindle.base.words import listed
from spindle.result.record import Level, RunRecord
from spindle.result.search import TargetPoint, TargetSearch
from spindle.run import openloop

BUSY = 0.90
"""Utilisation of the busiest drive from which on the drives have no time left."""


@dataclass(frozen=True)
class Excess:
    """The smallest multiple of the need that was too much."""

    need: Need
    search: TargetSearch
    point: TargetPoint
    runs: Sequence[RunRecord]
    """Those of this multiple."""
    alone: Alone | None


def bottleneck(excess: Excess) -> Bottleneck:
    """Name the bottleneck, with the evidence."""
    stream = worst_stream(excess.search)
    roles = excess.need.purpose.roles
    role = roles.get(stream or "", "requests")
    evidence = [*_over(excess), *_behind(excess), *_alone(excess)]
    busiest, busy = _busiest(excess.runs)
    if busiest is not None:
        evidence.append(f"the busiest drive, {busiest}, is busy {units.percent(busy)} of the time")
    if (seen := _verdict(excess.runs, "generator-bound")) is not None:
        words = "the CPUs of this machine, which make the load: the storage may take more"
        return Bottleneck(kind="generator", stream=stream, words=words, evidence=[seen, *evidence])
    if (seen := _verdict(excess.runs, "group-limit")) is not None:
        words = "a limit of a control group, not the storage"
        return Bottleneck(kind="group-limit", stream=stream, words=words, evidence=[seen, *evidence])
    holds_alone = excess.alone is not None and excess.alone.point is not None and _held(excess.alone.point)
    if busiest is not None and busy >= BUSY:
        words = f"time of the drives: none is left for more {role}"
        return Bottleneck(kind="drives", stream=stream, words=words, evidence=evidence)
    if holds_alone:
        others = listed([roles[name] for name in excess.need.streams if name != stream])
        words = f"{role} wait for the other requests ({others})"
        return Bottleneck(kind="sharing", stream=stream, words=words, evidence=evidence)
    words = f"latency of {role}" if _over(excess) and not _behind(excess) else f"rate of {role}"
    return Bottleneck(kind="latency", stream=stream, words=words, evidence=evidence)


def _held(point: TargetPoint) -> bool:
    return point.decision == "held"


def _over(excess: Excess) -> list[str]:
    """Bounds that do not hold."""
    pairs = zip(excess.search.bounds, excess.point.checks, strict=True)
    return [
        f"{bound.figure} is {units.duration(check.latency_ns)}, the bound is {units.duration(bound.limit_ns)}"
        for bound, check in pairs
        if check.decision != "held" and check.latency_ns is not None
    ]


def _behind(excess: Excess) -> list[str]:
    """Streams that are not served as fast as their requests come."""
    names = [
        name
        for name in excess.need.streams
        if any(name in openloop.behind(run) or name in starving(run) for run in excess.runs)
    ]
    return (
        [f"{'stream' if len(names) == 1 else 'streams'} {listed(names)}: requests come faster than they are served"]
        if names
        else []
    )


def _alone(excess: Excess) -> list[str]:
    alone = excess.alone
    if alone is None or alone.point is None:
        return []
    latency = max((check.latency_ns or 0.0 for check in alone.point.checks), default=0.0)
    end = "is within its bounds" if _held(alone.point) else "is not within its bounds either"
    return [f"stream {alone.stream} alone {end} (p99 {units.duration(latency)})"]


def _busiest(runs: Sequence[RunRecord]) -> tuple[str | None, float]:
    """The busiest rotating or modelled drive, and its utilisation; None: there is none that is known."""
    found: tuple[str | None, float] = (None, 0.0)
    for run in runs:
        for device in run.devices:
            busy = device.iostat.get("%util", 0.0) / 100
            if busy > found[1]:
                found = (device.name, min(1.0, busy))
    return found


def _verdict(runs: Sequence[RunRecord], check: str) -> str | None:
    """The evidence of a check that warns, in any of the runs."""
    for run in runs:
        for verdict in run.verdicts:
            if verdict.check == check and verdict.level is not Level.OK and not verdict.is_unknown:
                return verdict.evidence
    return None
