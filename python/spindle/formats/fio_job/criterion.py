"""The bound of `steadystate`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .numbers import InvalidValue


@dataclass(frozen=True)
class Criterion:
    """The condition for `steadystate_duration`."""

    metric: str
    """iops or bw."""
    slope: bool
    """True: a bound on the slope of a line through the samples, per second; False: on their distance from the mean."""
    percent: float
    """Bound in % of the mean."""


def criterion(text: str) -> Criterion:
    """Parse `iops:10%`, `bw_slope:0.1%`. Raises InvalidValue."""
    found = re.fullmatch(r"\s*(iops|bw)(_slope)?:([0-9]{1,3}(?:\.[0-9]{1,6})?)%\s*", text)
    if found is None:
        raise InvalidValue(f"`{text[:40]}` is not a bound in % of the mean such as iops:10%")
    return Criterion(found[1], found[2] is not None, float(found[3]))
