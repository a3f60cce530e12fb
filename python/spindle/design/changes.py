"""Changed requirements: each need a little easier or harder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from spindle.base import units
from spindle.design.requirement import Load, Requirement, State

STEP = 0.1
"""Change of a need, as a share."""


@dataclass(frozen=True)
class Change:
    """A requirement that differs in one need."""

    need: str
    change: str
    asked: str
    requirement: Requirement
    is_harder: bool


def changes(of: Requirement) -> Iterator[Change]:
    """Each need easier and harder: 10 %, one drive, a tenth of the probability."""
    for factor, words in ((1 - STEP, f"{100 * STEP:.0f} % less"), (1 + STEP, f"{100 * STEP:.0f} % more")):
        harder = factor > 1
        usable = round(of.usable_bytes * factor)
        yield Change("usable", words, units.si_size(usable), replace(of, usable_bytes=usable), harder)
        for load in of.loads:
            if load.rate_iops:
                rate = f"{units.count(load.rate_iops * factor)} IOPS"
                yield Change(f"rate of {load.name}", words, rate, _with(of, load, scaled(load, factor)), harder)
    for load in of.loads:
        yield from _bounds(of, load)
    for survive, words, harder in ((of.survive - 1, "one less", False), (of.survive + 1, "one more", True)):
        if survive >= 0:
            yield Change("survive", words, _drives(survive), replace(of, survive=survive), harder)
    limits = of.limits
    if limits.yearly_loss is not None:
        for value, words, harder in (
            (min(1.0, limits.yearly_loss * 10), "ten times", False), (limits.yearly_loss / 10, "a tenth", True),
        ):  # fmt: skip
            asked = replace(of, limits=replace(limits, yearly_loss=value))
            yield Change("yearly loss", words, f"{value:.2g}", asked, harder)
    if limits.rebuild_hours is not None:
        for factor, words, harder in ((1.5, "half as long again", False), (1 / 1.5, "two thirds", True)):
            hours = limits.rebuild_hours * factor
            asked = replace(of, limits=replace(limits, rebuild_hours=hours))
            yield Change("rebuild", words, f"{hours:.0f} h", asked, harder)


def _bounds(of: Requirement, load: Load) -> Iterator[Change]:
    for state, bounds in load.bounds.items():
        for key, most in bounds.items():
            for factor, words, harder in ((1 + STEP, "10 % longer", False), (1 - STEP, "10 % shorter", True)):
                value = round(most * factor)
                changed = {**load.bounds, state: {**bounds, key: value}}
                where = "" if state is State.WHOLE else f", {state.value}"
                asked = _with(of, load, replace(load, bounds=changed))
                yield Change(f"{key} of {load.name}{where}", words, units.duration(value), asked, harder)


def _drives(count: int) -> str:
    return "1 drive" if count == 1 else f"{count} drives"


def _with(of: Requirement, load: Load, other: Load) -> Requirement:
    return replace(of, loads=tuple(other if each is load else each for each in of.loads))


def scaled(load: Load, factor: float) -> Load:
    """The load with other rates of its open loops."""
    streams = load.parsed()
    for stream in streams:
        if stream["arrival"]["kind"] == "open":
            stream["arrival"]["rate_iops"] *= factor
    return replace(load, streams=json.dumps(streams))
