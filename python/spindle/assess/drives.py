"""The number of drives with which a modelled machine would meet a need."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

from spindle import _core
from spindle.assess.assessment import Drives
from spindle.assess.margin import Multiples, region_options
from spindle.assess.need import Need
from spindle.campaign.machine import with_fields
from spindle.run import latency_search
from spindle.run.targets.modelled import MachineTarget
from spindle.run.watch import Watch

MOST = 64
"""Most drives that are tried."""
MIRRORED = "raid10"
"""The level of an array where the machine is a single drive."""


def drives_enough(target: MachineTarget, need: Need, watch: Watch) -> Drives | None:
    """The least number of drives of the same model that meets the need, in steps of two; None: the machine has
    several kinds of drives, or an array that cannot be made larger.
    """
    data = tomllib.loads(target.read())
    drives, array = data.get("drive", []), data.get("array", {})
    if len(drives) != 1 or "region" in drives[0] or "missing" in array or "rebuild" in array:
        return None
    now, level = int(drives[0].get("count", 1)), str(array.get("level", MIRRORED))

    def meets(count: int) -> bool:
        return _meets(target, need, count, level, watch)

    try:
        enough, most = _least(now + 2 - now % 2, meets)
    except _core.ConfigError:
        return None
    return Drives(now=now, enough=enough, most=most, level=level)


def _least(first: int, meets: Callable[[int], bool]) -> tuple[int | None, int]:
    """The least even number that meets the need, and the largest that was tried: doubling, then bisection."""
    below, count = first - 2, first
    while not meets(count):
        if count >= MOST:
            return None, count
        below, count = count, min(MOST, 2 * count)
    most = count
    while count - below > 2:
        middle = (below + count) // 4 * 2
        if meets(middle):
            count = middle
        else:
            below = middle
    return count, most


def _meets(target: MachineTarget, need: Need, count: int, level: str, watch: Watch) -> bool:
    fields = {"drive.0.count": count, "array.level": level}
    machine = MachineTarget(target.asked, with_fields(target.read(), fields, {}, target.asked))
    load = need.load()
    with machine.open(load, watch) as opened:
        region = region_options(need, opened.target(load.spec).size_bytes, opened)
        axis = Multiples(need, region, just=1.0)
        found = latency_search.search_along(opened, axis, need.bounds, "need")
    point = found.search.at(1.0)
    return point is not None and point.decision == "held"
