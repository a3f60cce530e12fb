"""Whether the machine is quiet enough to be measured: before a run, and while it goes on.

finding.py      one check: its level, a line for people, the numbers
disks.py        what else uses the devices          jobs.py       which programs that is
processors.py   CPU time, clock, heat               memory.py     swap, dirty pages
arrays.py       resync, check, missing members      selftest.py   SMART self-tests
temperature.py  of drives and CPUs              sample.py     one second of it
before.py       all of it over a window             during.py     the same, once a second beside a load
kept.py         the seconds of a run, in memory taken at its start
passing.py      settings that change meanwhile   own.py        the load, where it is a program of its own
"""

from .arrays import array_activity
from .before import Idle, idle_check
from .during import Sampler
from .finding import Finding
from .own import Own
from .processors import cpu_times, throttle_events
from .sample import Sample

__all__ = [
    "Finding",
    "Idle",
    "Own",
    "Sample",
    "Sampler",
    "array_activity",
    "cpu_times",
    "idle_check",
    "throttle_events",
]
