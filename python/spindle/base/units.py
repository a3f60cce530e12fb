"""Quantities as text, the one place that knows how. Times in ns, sizes in bytes; MB is 10^6, MiB 2^20 bytes."""

from __future__ import annotations

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0))


def significant(value: float, digits: int = 3) -> str:
    """At least `digits` significant digits, never an exponent: 0.0512, 5.12, 51.2, 512, 5123."""
    if value == 0:
        return "0"
    magnitude = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    decimals = max(0, digits - magnitude)
    if magnitude == 0:
        scaled = abs(value)
        while scaled < 0.1 and decimals < 9:
            scaled *= 10
            decimals += 1
    return f"{value:.{decimals}f}"


def size(value: float) -> str:
    """Bytes: `64 KiB`, `1.5 GiB`."""
    amount = float(value)
    for unit in _BINARY[:-1]:
        if abs(amount) < 1024:
            return _amount(amount, unit)
        amount /= 1024
    return _amount(amount, _BINARY[-1])


def si_size(count: int) -> str:
    """Bytes in decimal units, as drives are sold: `12.0 TB`, `67.1 MB`."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if value < 999.95 or unit == "PB":
            break
        value /= 1000
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def kib(count: int | None) -> str:
    """Bytes of what is laid out in powers of two, with all their digits: `512 B`, `64 KiB`, `1.5 MiB`."""
    if count is None:
        return "unknown"
    value, unit = float(count), "B"
    for unit in _BINARY[:-1]:
        if abs(value) < 1024 or unit == _BINARY[-2]:
            break
        value /= 1024
    return f"{value:.10g} {unit}" if value == round(value, 3) else f"{value:.3f} {unit}"


def exact_size(value: int) -> str:
    """Bytes as one writes them in a workload, without loss: `64KiB`, `1000`."""
    for power in (4, 3, 2, 1):
        if value and value % (1 << 10 * power) == 0:
            return f"{value >> 10 * power}{_BINARY[power]}"
    return str(value)


def _amount(amount: float, unit: str) -> str:
    return f"{amount:.0f} {unit}" if amount == int(amount) else f"{significant(amount)} {unit}"


def rate(bytes_per_s: float) -> str:
    """Bytes per second: `512 MB/s`."""
    for unit, factor in _DECIMAL:
        if bytes_per_s >= factor:
            return f"{significant(bytes_per_s / factor)} {unit}"
    return "0 B/s"


def mb_per_s(bytes_per_s: float) -> str:
    """The number of MB/s alone, for columns."""
    return significant(bytes_per_s / 1e6)


def duration(ns: float) -> str:
    """A latency or a length of time: `85.3 us`, `1.20 ms`, `60.0 s`."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= factor:
            return f"{significant(ns / factor)} {unit}"
    return f"{ns:.0f} ns"


def seconds(value: float) -> str:
    """A length of time for people: `3.2 ms`, `0.25 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if 0 < value < 0.1:
        return duration(value * 1e9)
    if value < 10:
        return f"{value:.2f}".rstrip("0").rstrip(".") + " s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def count(value: float) -> str:
    """A count or a rate of requests: `73.4`, `1 234`, `1 234 567`."""
    if abs(value) < 1000 and value != int(value):
        return significant(value)
    return f"{round(value):,}".replace(",", " ")


def percent(share: float) -> str:
    """A share as a percentage: `0.4 %`, `12 %`, `99.8 %`."""
    value = share * 100
    if value in (0, 100):
        return f"{value:.0f} %"
    if 99.95 <= value < 100:  # nearly all is not all
        return f"{value:.2f} %" if value < 99.995 else "over 99.99 %"
    if value < 10 or value > 90:
        return f"{value:.1f} %" if value >= 0.1 else f"{significant(value, 1)} %"
    return f"{value:.0f} %"
