"""A member that is rebuilt beside a load, in the simulator and under the real kernel: its time, and the load's loss.

Each point runs with several seeds, and means are compared: with RAID1 the rebuild waits for moments without a
request, so one run differs from the next by a tenth and more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean

from msgspec import Struct

from spindle import _core
from spindle.formats import agent
from spindle.lab import load
from spindle.lab.assembly import setup_of
from spindle.result.figures import Figures
from spindle.result.record import RunRecord
from spindle.run.resolve import resolve_text
from spindle.run.simulate import SimulatedRun, read_figures

WITHIN, GOAL = 0.15, 0.9
"""Largest difference, and the share of the points that must agree."""
SEEDS = (1, 2, 3)
LEVELS = {
    "raid1": (2, "level = 'raid1'"),
    "raid10n2": (4, "level = 'raid10'\nlayout = 'n2'\nchunk = '64KiB'"),
    "raid10f2": (4, "level = 'raid10'\nlayout = 'f2'\nchunk = '64KiB'"),
    "raid5": (4, "level = 'raid5'\nchunk = '64KiB'"),
    "raid6": (4, "level = 'raid6'\nchunk = '64KiB'"),
}
"""Name -> drives, `[array]`."""
LOADS = {
    "little": "pattern = 'uniform'\nsize = '4KiB'\nrate = '1 IOPS'\nspacing = 'constant'",
    "randread": "pattern = 'uniform'\nsize = '4KiB'\ndepth = 8",
    "randwrite": "pattern = 'uniform'\nsize = '4KiB'\ndepth = 4\nwrite_fraction = 1",
    "mix": "pattern = 'uniform'\nsize = '16KiB'\ndepth = 4\nwrite_fraction = 0.3",
}
LIMITS = {
    "": "",
    "slow": "sync_speed_max = '20 MiB/s'",
    "urgent": "sync_speed_min = '40 MiB/s'",
}
DRIVE = "model = 'ST3600057SS'\nregion = '0-128MiB'"
"""A disk of 15 000 rpm on SAS. In the lab every disk goes on beside a flush, as those on SAS do; on ATA none does."""
SLOT = 1
"""The member that is rebuilt."""
JOBS = 2
"""Labs at a time."""
_ROOM = 1.5
"""A run in the lab may take longer than the simulator's rebuild by this factor, and by `_LEAST_S`."""
_LEAST_S = 2
_LONGEST_S = 300
_WHOLE_S = 5
"""Length of the load on a whole array."""
_EVENT = re.compile(r"\[\s*(\d+\.\d+)\] md: (recovery of RAID array|md\d+: recovery done)")


class Point(Struct, frozen=True, kw_only=True):
    """An array with a load and limits of the rebuild's speed."""

    level: str
    """A key of `LEVELS`."""
    load: str
    """A key of `LOADS`."""
    limit: str = ""
    """A key of `LIMITS`."""

    @property
    def name(self) -> str:
        """For people: `raid5 mix urgent`."""
        return f"{self.level} {self.load} {self.limit}".strip()

    def machine_text(self, *, rebuilds: bool) -> str:
        """The machine file; whole without the rebuild."""
        drives, array = LEVELS[self.level]
        rebuild = f"rebuild = {SLOT}\n{LIMITS[self.limit]}\n" if rebuilds else ""
        return (
            f"[queue]\nscheduler = 'mq-deadline'\n[array]\n{array}\ndata_offset = '1MiB'\n{rebuild}"
            f"[[drive]]\ncount = {drives}\n{DRIVE}\n"
        )

    def workload_text(self, seconds: int, seed: int) -> str:
        """The workload file."""
        return f"direct = true\nseed = {seed}\nseconds = {seconds}\n{LOADS[self.load]}\n"


class RebuildFigures(Struct, frozen=True, kw_only=True):
    """The figures of a point in the simulator, or under the real kernel."""

    rebuild_s: float | None
    """From the beginning of the rebuild to its end; None if it did not end."""
    iops: float
    """Requests per second in the whole seconds until then."""
    whole_iops: float
    """The same load on the whole array."""

    @property
    def slowdown(self) -> float:
        """Requests per second on the whole array, as a multiple of those beside the rebuild."""
        return self.whole_iops / self.iops


class PointComparison(Struct, frozen=True, kw_only=True):
    """One point. Errors are shares of the exact figure; above 0, the simulator's is larger."""

    point: Point
    fast: RebuildFigures
    exact: RebuildFigures
    rebuild_error: float | None
    """None if a rebuild did not end."""
    slowdown_error: float

    @property
    def agrees(self) -> bool:
        """Both are within the bound."""
        return (
            self.rebuild_error is not None and abs(self.rebuild_error) <= WITHIN and abs(self.slowdown_error) <= WITHIN
        )


class RebuildReport(Struct, frozen=True, kw_only=True):
    """All points."""

    compared: list[PointComparison]
    cpu_s: float
    """CPU time of the lab."""

    @property
    def share(self) -> float:
        """Share of the points that agree."""
        return fmean(of.agrees for of in self.compared)

    @property
    def reaches_goal(self) -> bool:
        """Enough points agree."""
        return self.share >= GOAL


def points() -> list[Point]:
    """Each level with each load, and the limits with two levels."""
    usual = [Point(level=level, load=name) for level in LEVELS for name in LOADS]
    limited = [
        Point(level=level, load="randread", limit=limit) for level in ("raid1", "raid5") for limit in LIMITS if limit
    ]
    return usual + limited


def report(say: Callable[[str], None], chosen: Sequence[Point] | None = None) -> RebuildReport:
    """Run the points, or some of them, both ways; `say` receives the progress. Raises LabMissing or LabError."""
    every = points() if chosen is None else list(chosen)
    found: list[PointComparison] = []
    cpu_s = 0.0
    with ThreadPoolExecutor(JOBS) as pool:
        for number, (compared, lab_s) in enumerate(pool.map(measured, every), 1):
            found.append(compared)
            cpu_s += lab_s
            say(f"{number} of {len(every)}: {compared.point.name}")
    return RebuildReport(compared=found, cpu_s=cpu_s)


def measured(point: Point) -> tuple[PointComparison, float]:
    """Run a point both ways, and the CPU time of the lab. Raises LabMissing or LabError."""
    fast, exact, cpu_s = [], [], 0.0
    for seed in SEEDS:
        fast.append(simulated(point, seed))
        rebuild_s = fast[-1].rebuild_s or _LONGEST_S
        way, lab_s = under_the_kernel(point, seed, round(_ROOM * rebuild_s) + _LEAST_S)
        exact.append(way)
        cpu_s += lab_s
    return compare(point, _mean(fast), _mean(exact)), cpu_s


def compare(point: Point, fast: RebuildFigures, exact: RebuildFigures) -> PointComparison:
    """Compare the figures of a point."""
    ended = fast.rebuild_s is not None and exact.rebuild_s is not None
    return PointComparison(
        point=point,
        fast=fast,
        exact=exact,
        rebuild_error=(fast.rebuild_s or 0) / (exact.rebuild_s or 1) - 1 if ended else None,
        slowdown_error=fast.slowdown / exact.slowdown - 1,
    )


def simulated(point: Point, seed: int) -> RebuildFigures:
    """Run a point in the simulator."""
    beside = _simulated(point, seed, _LONGEST_S, rebuilds=True)
    whole = _simulated(point, seed, _WHOLE_S, rebuilds=False)
    assert beside.rebuild is not None
    ended_ns = beside.rebuild.finished_ns
    rebuild_s = None if ended_ns is None else ended_ns / 1e9
    return RebuildFigures(rebuild_s=rebuild_s, iops=rate(beside.run, rebuild_s), whole_iops=whole.run.iops)


def under_the_kernel(point: Point, seed: int, seconds: int) -> tuple[RebuildFigures, float]:
    """Run a point in the lab, so long at most, and the CPU time. Raises LabMissing or LabError."""
    beside, log, cpu_s = _under_the_kernel(point, seed, seconds, rebuilds=True)
    whole, _, whole_cpu_s = _under_the_kernel(point, seed, _WHOLE_S, rebuilds=False)
    rebuild_s = rebuild_time(log)
    return RebuildFigures(rebuild_s=rebuild_s, iops=rate(beside, rebuild_s), whole_iops=whole.iops), cpu_s + whole_cpu_s


def rebuild_time(log: Sequence[str]) -> float | None:
    """Seconds between md's lines of a rebuild in the kernel's log; None if it did not end."""
    times = [float(found[1]) for line in log if (found := _EVENT.match(line))]
    return times[1] - times[0] if len(times) > 1 else None


def rate(figures: Figures, until_s: float | None) -> float:
    """Requests per second in the whole intervals before a time, but in the first in any case."""
    within = [of for of in figures.series if until_s is None or of.start_ns + of.length_ns <= until_s * 1e9]
    within = within or figures.series[:1]
    requests = sum(stream.reads + stream.writes for of in within for stream in of.streams)
    return requests / (sum(of.length_ns for of in within) / 1e9)


def _simulated(point: Point, seed: int, seconds: int, *, rebuilds: bool) -> SimulatedRun:
    machine = _core.Machine.parse(point.machine_text(rebuilds=rebuilds), point.name)
    workload = _core.Workload.parse(point.workload_text(seconds, seed), point.name, "rebuild")
    [figures] = _core.simulate_many([(machine, workload)], threads=1)
    return read_figures(figures)


def _under_the_kernel(point: Point, seed: int, seconds: int, *, rebuilds: bool) -> tuple[Figures, list[str], float]:
    machine = _core.Machine.parse(point.machine_text(rebuilds=rebuilds), point.name)
    resolved = resolve_text(point.workload_text(seconds, seed), point.name, "rebuild")
    task = load.Task(machine, setup_of(machine), "rebuild", resolved.text, (), has_log_times=True)
    done = load.carry_out(task)
    record = agent.read(done.document, "the lab's result", preflight={})
    assert isinstance(record, RunRecord)
    return record.figures, done.kernel_log, done.cpu_s


def _mean(ways: Sequence[RebuildFigures]) -> RebuildFigures:
    times = [way.rebuild_s for way in ways if way.rebuild_s is not None]
    return RebuildFigures(
        rebuild_s=fmean(times) if len(times) == len(ways) else None,
        iops=fmean(way.iops for way in ways),
        whole_iops=fmean(way.whole_iops for way in ways),
    )
