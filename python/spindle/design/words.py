"""Needs, bounds and limits in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spindle.base import units
from spindle.base.words import counted, listed
from spindle.design.drives import Candidate
from spindle.design.requirement import Load, Requirement, State
from spindle.design.search import Missed
from spindle.design.trial import Broken


def need_words(of: Requirement) -> list[str]:
    """The requirement, a line each."""
    return list(_needs(of))


def _needs(of: Requirement) -> Iterator[str]:
    growth, limits = of.growth, of.limits
    drives = "no drive" if not of.survive else "any drive" if of.survive == 1 else f"any {of.survive} drives"
    space = f"{units.si_size(of.usable_bytes)} usable"
    if growth.years and growth.capacity:
        space += f", {units.si_size(of.needed_bytes)} after {growth.years:g} years"
    yield f"{space}; {drives} may fail"
    for load in of.loads:
        yield f"{load.name}: {', '.join(_load(of, load)) or 'as fast as it goes, without a bound'}"
    found = [f"at most {counted(limits.bays, 'drive')}"]
    if limits.budget is not None:
        found.append(f"a budget of {money(limits.budget)}")
    if limits.watts is not None:
        found.append(f"{limits.watts:g} W")
    if limits.yearly_loss is not None:
        found.append(f"a yearly probability of loss of {limits.yearly_loss:.2g}")
    if limits.rebuild_hours is not None:
        found.append(f"rebuilds of at most {limits.rebuild_hours:.0f} h")
    yield listed(found, "and")


def _load(of: Requirement, load: Load) -> Iterator[str]:
    if load.rate_iops:
        rate = f"{units.count(load.rate_iops)} IOPS"
        if of.growth.load:
            rate += f" ({units.count(load.rate_iops * of.growth.load_factor)} at the end)"
        yield rate
    if load.least_iops:
        yield f"at least {units.count(load.least_iops)} IOPS"
    if load.least_bytes_per_s:
        yield f"at least {units.rate(load.least_bytes_per_s)}"
    for state, bounds in load.bounds.items():
        where = "" if state is State.WHOLE else f" {state.value}"
        for key, most in bounds.items():
            yield f"{key} of {units.duration(most)}{where}"
    if load.period is not None:
        yield f"in the {load.period}"
    if load.apart_bytes is not None:
        yield f"{units.si_size(load.apart_bytes)}, on the same or an own array"
    if load.may_split:
        space, access = load.hot
        yield f"{100 * access:.3g} % of it to {100 * space:.3g} % of the space, on the same or an own array"


def bound_words(broken: Broken) -> str:
    """`p99 of reads of db: 23 ms, bound 20 ms`."""
    where = "" if broken.state is State.WHOLE else f", {broken.state.value}"
    if broken.key == "rate":
        return f"rate of {broken.load}{where}: {units.count(broken.found)} of {units.count(broken.bound)} IOPS"
    if broken.key.startswith("rate"):
        return f"rate of {broken.load}{where}: {units.rate(broken.found)} of {units.rate(broken.bound)}"
    found, bound = units.duration(broken.found), units.duration(broken.bound)
    return f"{broken.key} of {broken.load}, {broken.operation}s{where}: {found}, bound {bound}"


def missed_words(missed: Missed, currency: str) -> tuple[str, str]:
    """The need, and the nearest offer."""
    found = []
    for value in (missed.asked, missed.best):
        if math.isnan(value):
            found.append("unknown")
        elif missed.unit == "bytes":
            found.append(units.si_size(round(value)))
        elif missed.unit == "price":
            found.append(f"{money(value)} {currency}".strip())
        elif missed.unit == "ns":
            found.append(units.duration(value))
        elif missed.unit == "busy":
            found.append(f"{100 * value:.0f} % of a drive's time")
        elif missed.unit == "a year":
            found.append(f"{value:.2g} a year")
        elif missed.unit == "1/s":
            found.append(f"{units.count(value)}/s")
        elif missed.unit == "drives":
            found.append(counted(round(value), "drive"))
        else:
            found.append(f"{value:.0f} {missed.unit}")
    return found[0], found[1]


def money(value: float) -> str:
    """A price without fractions: `1 740`."""
    return units.count(round(value))


def limits_of(of: Requirement, drives: Sequence[Candidate], is_several: bool) -> list[str]:
    """The parts that the model leaves out, and the assumptions."""
    silent = [drive.name for drive in drives if drive.facts.assumed]
    found = [
        "prices are those of the file, of drives alone: no chassis, controller, processor, memory or power",
        "loads reach the array directly: a file system adds its own reads and writes, a page cache takes some away",
        "drives behave as their data sheets, none slower than its peers; no controller, expander or bus limits them",
        "degraded means one missing drive, also where more may fail",
        "the rebuild has the speed of its first half minute; near the inner edge of disks it is slower",
        "failures are independent, as frequent as seen in service; operators, software and controllers lose data too",
    ]
    if silent:
        what = listed(list(dict.fromkeys(key for drive in drives for key in drive.facts.assumed)), "and")
        found.append(f"{what} of {listed(silent, 'and')} are those of their class: the sheets are silent")
    if is_several:
        found.append("arrays are simulated one by one: they share no controller and no processor")
    writes = any(stream["mix"]["write"] > 0 for load in of.loads for stream in load.parsed())
    unknown = [drive.name for drive in drives if not drive.is_disk and drive.facts.writes_per_day is None]
    if writes and any(not drive.is_disk for drive in drives):
        found.append(
            "flash drives are simulated by smaller ones that have been in use; endurance counts the load, all day long"
        )
    if writes and unknown:
        found.append(f"the endurance of {listed(unknown, 'and')} is not known, and not checked")
    return found
