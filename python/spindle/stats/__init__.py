"""What the numbers of runs allow one to say.

Plain numbers and records in, findings with their uncertainty out; nothing here reads files, stores or machines.
Methods, sources and how they were checked: docs/statistics.md. SciPy is imported where it is used, so that importing
this costs nothing.
"""

from spindle.stats.estimate import Interval, interval
from spindle.stats.metric import Better, Metric
from spindle.stats.power import detectable, trials_needed

__all__ = ["Better", "Interval", "Metric", "detectable", "interval", "trials_needed"]
