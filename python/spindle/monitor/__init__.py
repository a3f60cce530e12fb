"""Activity of the machine, interval by interval: disks as in iostat, CPUs as in vmstat, pressure, control groups.

Everything is read from /proc, /sys and the cgroup file systems; nothing is written and no device is opened. A field
that cannot be read, or that makes no sense, is None ('unknown'), never an error.

    selection.py  which devices: names as people give them, or all disks that ever did I/O
    disks.py      /proc/diskstats with each device's identity
    processors.py /proc/stat
    pressure.py   /proc/pressure/io
    cgroups.py    io.stat (v2) or blkio.throttle.* (v1) of every group
    sample.py     all counters at one moment
    interval.py   the activity between two moments
    columns.py    every column: its name and unit
    watching.py   one interval after the other, on time
    summary.py    mean and maximum of every column

Public signatures::

    Selection(given: Sequence[str] = (), machine=...)      # raises UnknownDevice (exit status 2)
    watch(selection, interval_s, count, *, cgroups: bool) -> Iterator[Interval]
    with signals_kept(): ...                               # around `watch` and the output after it
    between(before: Sample, after: Sample) -> Interval
    Summary().add(interval); .disks / .host / .cgroups: column -> Extent(mean, maximum)
"""

from .columns import CGROUP, DISK, HOST, Column
from .interval import Activity, CgroupRates, Interval, between
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
    "Interval",
    "Sample",
    "Sampler",
    "Selection",
    "Summary",
    "UnknownDevice",
    "between",
    "signals_kept",
    "watch",
]
