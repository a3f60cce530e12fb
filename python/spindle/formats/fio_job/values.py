"""Parsers of option values. Each raises `InvalidValue` with the allowed values."""

from __future__ import annotations

import re
from collections.abc import Callable

from .numbers import InvalidValue, microseconds, natural, whole


def truth(text: str) -> bool:
    """Parse `0` or `1`."""
    if text not in ("0", "1"):
        raise InvalidValue(f"`{text[:40]}` is neither 0 nor 1")
    return text == "1"


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser of these words."""

    def read(text: str) -> str:
        if text not in allowed:
            raise InvalidValue(f"`{text[:40]}` is not one of {', '.join(allowed)}")
        return text

    return read


def within(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        value = whole(text)
        if not low <= value <= high:
            raise InvalidValue(f"`{text[:40]}` is outside {low} to {high}")
        return value

    return read


def positive(value: int) -> int:
    """Refuse a number below 0."""
    if value < 0:
        raise InvalidValue("is negative")
    return value


def time(text: str) -> int:
    """Parse a time in microseconds; without a unit it is in seconds."""
    return positive(microseconds(text))


def times(text: str) -> tuple[int, int]:
    """Parse `5s`, or the ends of a range such as `1-5` or `1:5`."""
    parts = re.split("[-:]", text)
    if len(parts) > 2:
        raise InvalidValue(f"`{text[:40]}` is neither a time nor a range; write for example 1-5")
    low, *rest = sorted(time(part) for part in parts)
    return (low, rest[0]) if rest else (low, low)


def pause(text: str) -> int:
    """Parse a time; without a unit it is in microseconds."""
    return positive(microseconds(text, 1))


def percentiles(text: str) -> tuple[float, ...]:
    """Parse `50:99.9`; sorted, each once."""
    parts = text.split(":")
    if len(parts) > 20:
        raise InvalidValue("more than 20 percentiles")
    return tuple(sorted({percent(part) for part in parts}))


def request(size: int) -> int:
    """Refuse a size of a request, bytes, that no run can have."""
    if not 0 < size <= 1 << 30:
        raise InvalidValue(f"requests of {size} bytes; 1 byte to 1 GiB")
    return size


def seed(text: str) -> int:
    """Parse the seed of a random sequence."""
    return natural(text)


def names(text: str) -> tuple[str, ...]:
    """`a:b`; a colon of a name is written `\\:`."""
    parts = [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", text)]
    found = tuple(dict.fromkeys(part for part in parts if part))
    if len(found) > 1024:
        raise InvalidValue("more than 1024 files; use nrfiles")
    if "-" in found:
        raise InvalidValue("`-`, the standard streams, are not a file")
    return found


def service(text: str) -> tuple[str, int]:
    """Parse `random:8`: the order of files, and the requests to one before the next."""
    kind, colon, requests = text.strip().partition(":")
    if kind not in ("roundrobin", "random", "sequential"):
        raise InvalidValue(f"`{kind[:40]}` is not there; use roundrobin, random or sequential")
    return kind, max(within(0, 1 << 31)(requests), 1) if colon else 1


def fallocate(text: str) -> str:
    """Parse the way in which files are laid out."""
    known = {"0": "none", "1": "posix"}
    return known.get(text) or one_of("none", "native", "posix", "keep", "truncate")(text)


def unified(text: str) -> str:
    """Parse whether reads and writes have figures of their own (`none`), common ones or both."""
    return {"0": "none", "1": "mixed", "2": "both"}.get(text) or one_of("none", "mixed", "both")(text)


def sync(text: str) -> str:
    """Parse the flag that files are opened with."""
    return {"0": "none", "1": "sync"}.get(text) or one_of("none", "sync", "dsync")(text)


def cpus(text: str) -> tuple[int, ...]:
    """Parse `0-3,5`."""
    found: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,4})\s*(?:-\s*([0-9]{1,4})\s*)?", part)
        if ends is None:
            raise InvalidValue(f"`{text[:40]}` is not a list of CPUs; write for example 0-3,5")
        found.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return tuple(sorted(found))


def mask(text: str) -> tuple[int, ...]:
    """Parse a number whose bits are CPUs."""
    bits = natural(text)
    return tuple(at for at in range(64) if bits >> at & 1)


def percent(text: str) -> float:
    """Parse `99.9`."""
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", text.strip()) or not 0 < float(text) <= 100:
        raise InvalidValue(f"`{text[:40]}` is not a percentile above 0 up to 100")
    return float(text)
