"""The time that the rebuild of one drive takes, simulated on parts of the drives and summed over the whole.

The simulator rebuilds a part at the start, in the middle and at the end of the drives, beside a load of one request a
second; the rate in between follows Simpson's rule for the time per byte. Other load makes a rebuild longer.
"""

from __future__ import annotations

from spindle import _core
from spindle.base.errors import SpindleError
from spindle.base.offers import facts
from spindle.run.simulate import read_figures

PART_BYTES = 256 << 20
"""Rebuilt at each of three places."""
LONGEST_S = 120
"""A part whose rebuild takes longer runs at less than 3 MB/s."""
_LOAD = (
    "direct = true\nseconds = {seconds}\npattern = 'uniform'\nsize = '4KiB'\nrate = '1 IOPS'\nspacing = 'constant'\n"
)


class NoRebuildTime(SpindleError):
    """The simulated rebuild did not end."""


def rebuild_hours(
    model: str, level: str, drives: int, *, layout: str | None = None, chunk: int | None = None, used: int | None = None
) -> float:
    """Return hours for the rebuild of one drive of an array, with md's limits of the speed as Linux sets them.

    `model`: a drive of the catalogue; `used`: bytes used on each drive, None: all. RAID50 and RAID60 count as one of
    their groups: `drives` are those of a group. Raises `ConfigError` and `NoRebuildTime`.
    """
    capacity = used or facts(model).capacity
    last = max(capacity - PART_BYTES, 0)
    seconds = [_seconds_per_byte(model, level, drives, layout, chunk, start) for start in (0, last // 2, last)]
    return capacity * (seconds[0] + 4 * seconds[1] + seconds[2]) / 6 / 3600


def _seconds_per_byte(model: str, level: str, drives: int, layout: str | None, chunk: int | None, start: int) -> float:
    at = start >> 20
    array = f"level = '{level}'\nrebuild = 1\n"
    if level == "raid10":
        array += f"layout = '{layout or 'n2'}'\n"
    if level != "raid1":
        array += f"chunk = '{(chunk or 512 << 10) >> 10}KiB'\n"
    machine = _core.Machine.parse(
        f"[array]\n{array}[[drive]]\nmodel = '{model}'\ncount = {drives}\n"
        f"region = '{at}MiB-{at + (PART_BYTES >> 20)}MiB'\n",
        "the rebuild",
    )
    workload = _core.Workload.parse(_LOAD.format(seconds=LONGEST_S), "the rebuild", "rebuild")
    [figures] = _core.simulate_many([(machine, workload)], threads=1)
    rebuild = read_figures(figures).rebuild
    if rebuild is None or rebuild.finished_ns is None:
        raise NoRebuildTime(f"{model} as {level}: the rebuild of {PART_BYTES >> 20} MiB took over {LONGEST_S} s")
    return rebuild.finished_ns / 1e9 / rebuild.bytes
