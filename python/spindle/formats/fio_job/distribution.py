"""`random_distribution`: the places of random requests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .numbers import InvalidValue, Scale, natural

Zones = tuple[tuple[int, int], ...]
"""(share of the requests in %, length: % of the region, or bytes)."""

DEFAULTS = {"zipf": 1.1, "pareto": 0.2, "normal": 0.0}
"""fio's defaults."""
RANGES = {"zipf": (0.0, 10.0), "pareto": (0.001, 0.999), "normal": (0.0, 99.99)}
ZONED = ("zoned", "zoned_abs")
KINDS = ("random", *DEFAULTS, *ZONED)
MOST_ZONES = 256


@dataclass(frozen=True)
class Distribution:
    """One of `KINDS` with its parameters."""

    kind: str = "random"
    value: float = 0.0
    """zipf: theta; pareto: h; normal: deviation, %."""
    center: float | None = None
    zones: tuple[Zones, Zones] = ((), ())
    """Zones of reads and of writes."""


UNIFORM = Distribution()


def distribution(text: str, scale: Scale) -> Distribution:
    """Parse `zipf:1.2:0.25`, `zoned:60/10:40/90` and so on. Raises InvalidValue."""
    kind, colon, behind = text.strip().partition(":")
    if kind not in KINDS:
        raise InvalidValue(f"`{kind[:40]}` is none of {', '.join(KINDS)}")
    if kind == "random":
        if colon:
            raise InvalidValue("random has no parameters")
        return UNIFORM
    if kind in ZONED:
        return _zoned(kind, behind, scale)
    first, _, center = behind.partition(":")
    value = _number(first, kind, *RANGES[kind]) if first else DEFAULTS[kind]
    if kind == "zipf" and value == 0:
        return UNIFORM  # all places equally popular
    return Distribution(kind, value, _number(center, "the centre", 0.0, 1.0) if center else None)


def _number(text: str, what: str, low: float, high: float) -> float:
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,12})?", text) or not low <= float(text) <= high:
        raise InvalidValue(f"{what}: `{text[:40]}` is outside {low:g} to {high:g}")
    return float(text)


def _zoned(kind: str, text: str, scale: Scale) -> Distribution:
    parts = text.split(",")
    if len(parts) > 3:
        raise InvalidValue("more than three lists of zones; they are for reads, writes and trims")
    found = [_zones(part, kind == "zoned_abs", scale) for part in parts]
    return Distribution(kind, zones=(found[0], found[min(1, len(found) - 1)]))


def _zones(text: str, absolute: bool, scale: Scale) -> Zones:
    entries: list[tuple[int, int | None]] = []
    for part in text.split(":"):
        share, _, length = part.partition("/")
        if not share.strip() or (absolute and not length.strip()):
            raise InvalidValue(
                f"`{part[:40]}` is not a share of the requests and a length such as 60/{'1g' if absolute else 10}"
            )
        given = natural(length, scale if absolute else Scale()) if length.strip() else None
        entries.append((natural(share), given))
    zones = _filled(entries)
    if len(zones) > MOST_ZONES:
        raise InvalidValue(f"more than {MOST_ZONES} zones")
    if (shares := sum(share for share, _ in zones)) != 100:
        raise InvalidValue(f"the shares of the requests add up to {shares}, not to 100")
    if not absolute and (lengths := sum(length for _, length in zones)) > 100:
        raise InvalidValue(f"the zones add up to {lengths} %, more than 100")
    return tuple(zones)


def _filled(zones: list[tuple[int, int | None]]) -> list[tuple[int, int]]:
    """Fill blank lengths: they share the rest, in whole percents, as in fio."""
    blank = sum(length is None for _, length in zones)
    left = max(100 - sum(length for _, length in zones if length is not None), 0)
    return [(share, left // blank if length is None else length) for share, length in zones]
