"""Levels of a range: few, evenly spaced on its scale, and round."""

from __future__ import annotations

import math
import re

from spindle import _core
from spindle.knobs.tuned import Scale
from spindle.run.errors import Usage

MOST = 9
"""Levels of a range."""
_RANGE = re.compile(r"\s*([^:,]+?)\s*\.\.\s*([^:,]+?)\s*(?::\s*([a-z]+)\s*)?")


def spaced(low: int, high: int, scale: Scale) -> list[int]:
    """At most about `MOST` numbers from `low` to `high`, both among them. `low` is above 0 on a logarithmic scale."""
    if high - low < MOST and scale is Scale.LINEAR:
        return list(range(low, high + 1))
    if scale is Scale.LINEAR:
        return sorted({low + round(at * (high - low) / (MOST - 1)) for at in range(MOST)})
    if _is_power(low) and _is_power(high):
        first, last = low.bit_length() - 1, high.bit_length() - 1
        step = math.ceil((last - first) / (MOST - 1)) or 1
        return sorted({1 << at for at in range(first, last + 1, step)} | {high})
    factor = (high / low) ** (1 / (MOST - 1))
    between = {int(float(f"{low * factor**at:.2g}")) for at in range(1, MOST - 1)}
    return sorted({low, high} | {number for number in between if low < number < high})


def parsed(text: str, word: str) -> tuple[list[str], Scale]:
    """`16..1024`, `16..1024:linear`, `4KiB..1MiB:log`, `none,bfq` -> levels and scale. Raises Usage."""
    found = _RANGE.fullmatch(text)
    if found is None:
        levels = [part.strip() for part in text.split(",") if part.strip()]
        if len(levels) < 2 or len(set(levels)) < len(levels):
            raise Usage(f"`knob=` {word}: give at least two different levels, or a range such as 16..1024:log")
        return levels, Scale.CHOICE
    scales = [str(Scale.LOG), str(Scale.LINEAR)]
    if found[3] is not None and found[3] not in scales:
        raise Usage(f"`knob=` {word}: no scale `{found[3]}`; it is {' or '.join(scales)}")
    scale = Scale(found[3] or Scale.LOG)
    low, high = _number(found[1], word), _number(found[2], word)
    if low >= high or (scale is Scale.LOG and low <= 0):
        need = "above 0 on a logarithmic scale, and " if scale is Scale.LOG else ""
        raise Usage(f"`knob=` {word}: the lower end must be {need}below the upper one")
    is_size = not found[1].lstrip("+-").isdigit()
    return [_size(number) if is_size else str(number) for number in spaced(low, high, scale)], scale


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _number(text: str, word: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    try:
        return _core.parse_size(text)
    except _core.ConfigError:
        raise Usage(f"`knob=` {word}: `{text}` is neither a whole number nor a size such as 64KiB") from None


def _size(count: int) -> str:
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count and count % (1 << power) == 0:
            return f"{count >> power}{unit}"
    return f"{count}B"
