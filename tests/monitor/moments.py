"""A sample from the texts of kernel files."""

from __future__ import annotations

from spindle.monitor import Sample
from spindle.monitor.disks import parse
from spindle.monitor.pressure import parse as parse_pressure
from spindle.monitor.processors import parse as parse_stat


def sample(line: str, at_s: float, stat: str = "", pressure: str = "") -> Sample:
    at_ns = round(at_s * 1e9)
    return Sample(at_ns, at_ns, parse(line), parse_stat(stat), parse_pressure(pressure), None)
