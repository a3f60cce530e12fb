"""Checks that the machine is quiet enough to be measured: before a run and during it.

finding.py      one check: its level, a line for people, the numbers
disks.py        I/O of others on the devices        jobs.py       the programs that do it
processors.py   CPU time, clock, heat               memory.py     swap, dirty pages
arrays.py       resync, check, missing members      selftest.py   SMART self-tests
temperature.py  temperatures of drives and CPUs     sample.py     one interval of the watch
before.py       all checks over a window before     during.py     a watch once a second beside a load
intervals.py    the intervals of a run, in memory allocated at its start
watch.py        settings that change during a run   own.py        a load that runs in other processes
"""

from spindle.result.record import Sample

from .arrays import array_activity
from .before import IdleCheck, idle_check
from .during import Sampler
from .finding import ConditionFinding
from .own import OwnLoad
from .processors import cpu_times, throttle_events

__all__ = [
    "ConditionFinding",
    "IdleCheck",
    "OwnLoad",
    "Sample",
    "Sampler",
    "array_activity",
    "cpu_times",
    "idle_check",
    "throttle_events",
]
