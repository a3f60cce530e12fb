"""What the machine does, interval by interval: disks as iostat tells it, CPUs as vmstat does, pressure, control groups.

Everything is read from /proc, /sys and the cgroup file systems; nothing is written and no device is opened. A field
that cannot be read, or that makes no sense, is None ('unknown'), never an error.

    selection.py  which devices: names as people give them, or all disks that ever did I/O
    disks.py      /proc/diskstats with each device's identity
    processors.py /proc/stat
    pressure.py   /proc/pressure/io
    cgroups.py    io.stat (v2) or blkio.throttle.* (v1) of every group
    sample.py     all of them at one moment
    report.py     what happened between two moments
    columns.py    every column: its name and unit
    watching.py   one report after the other, on time
    summary.py    mean and maximum of every column

Public signatures::

    Selection(given: Sequence[str] = (), machine=...)      # raises UnknownDevice (exit status 2)
    watch(selection, interval_s, count, *, cgroups: bool) -> Iterator[Report]
    with signals_kept(): ...                               # around `watch` and what is said after it
    between(before: Sample, after: Sample) -> Report
    Summary().add(report); .disks / .host / .cgroups: column -> Extent(mean, maximum)
"""

from .columns import CGROUP, DISK, HOST, Column
from .report import Activity, CgroupRates, Report, between
from .sample import Sample, Sampler
from .selection import Selection, UnknownDevice
from .summary import Extent, Summary
from .watching import signals_kept, watch

__all__ = [
    "CGROUP",
    "DISK",
    "HOST",
    "Activity",
    "CgroupRates",
    "Column",
    "Extent",
    "Report",
    "Sample",
    "Sampler",
    "Selection",
    "Summary",
    "UnknownDevice",
    "between",
    "signals_kept",
    "watch",
]
