"""/proc/pressure/io: share of the time that tasks were stalled on I/O (Documentation/accounting/psi.rst)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spindle.host.number import whole_number


@dataclass(frozen=True)
class Stall:
    """One line: a share of the last 10 s in percent, and the sum since boot in microseconds. None: not known."""

    avg10: float | None = None
    total_us: int | None = None


@dataclass(frozen=True)
class Pressure:
    """`some`: at least one task was stalled; `full`: all tasks with work were stalled at the same time."""

    some: Stall
    full: Stall


def parse(text: str) -> Pressure:
    """Parse the text of the file; the file cannot be read where PSI is off (psi=0)."""
    lines = dict(line.partition(" ")[::2] for line in text.splitlines())
    return Pressure(_stall(lines.get("some", "")), _stall(lines.get("full", "")))


def _stall(text: str) -> Stall:
    values = dict(part.partition("=")[::2] for part in text.split(maxsplit=8))
    avg10 = values.get("avg10", "")
    return Stall(
        float(avg10) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", avg10) else None,
        whole_number(values.get("total", "")),
    )


def columns(before: Pressure, after: Pressure, seconds: float) -> dict[str, float | None]:
    """The kernel's average over 10 s, and the share of this interval."""
    found: dict[str, float | None] = {}
    for name in ("some", "full"):
        old, new = getattr(before, name), getattr(after, name)
        found[f"{name}10"] = new.avg10
        found[name] = _share(old.total_us, new.total_us, seconds)
    return found


def _share(before_us: int | None, after_us: int | None, seconds: float) -> float | None:
    if before_us is None or after_us is None or after_us < before_us or seconds <= 0:
        return None
    # The kernel may have updated the sum a little later than the clock was read.
    return min(100.0, (after_us - before_us) / 1e6 / seconds * 100)
