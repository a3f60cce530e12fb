"""fio's numbers: sizes in its two meanings of `k`, times, percentages, ranges, arithmetic in parentheses."""

from __future__ import annotations

import operator as means
import re
from dataclasses import dataclass
from fractions import Fraction

LARGEST = 1 << 63
_US_PER = {
    "us": 1,
    "usec": 1,
    "ms": 1000,
    "msec": 1000,
    "s": 10**6,
    "sec": 10**6,
    "m": 60 * 10**6,
    "h": 3600 * 10**6,
    "d": 86400 * 10**6,
}
_PREFIXES = "kmgtp"


class InvalidValue(ValueError):
    """A value that cannot be read; the text says what was found and what is allowed."""


@dataclass(frozen=True)
class Scale:
    """Meaning of suffixes."""

    kb_base: int = 1024
    """1024, fio's default: k = 1024 and Ki = 1000. 1000: k = 1000 and Ki = 1024."""
    time: bool = False
    """Suffixes are units of time, results microseconds."""

    def factor(self, suffix: str) -> int | None:
        """Return the factor; None: unknown suffix."""
        suffix = suffix.lower()
        if self.time:
            return _US_PER.get(suffix)
        suffix = suffix.removesuffix("b")
        if not suffix:
            return 1
        if suffix[0] not in _PREFIXES or suffix[1:] not in ("", "i"):
            return None
        base = self.kb_base if len(suffix) == 1 else 2024 - self.kb_base
        return int(base ** (_PREFIXES.index(suffix[0]) + 1))


@dataclass(frozen=True)
class Amount:
    """Bytes, or a share of the target."""

    bytes: int = 0
    percent: int | None = None


NOTHING = Amount()


def whole(text: str, scale: Scale = Scale()) -> int:
    """Parse `4k`, `0x1000`, `(2*4k)` -> 4096."""
    text = text.strip()
    if text.startswith("("):
        return arithmetic(text, scale)
    found = re.fullmatch(r"([+-]?)(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19})\s*([a-zA-Z]*)", text)
    if found is None:
        if re.fullmatch(r"[0-9]+\.[0-9]+[a-zA-Z]*", text):
            raise InvalidValue(f"`{text[:40]}` is not a whole number, and fio takes only the part before the point")
        raise InvalidValue(f"`{text[:40]}` is not a number; write for example {'10s' if scale.time else '4k'}")
    factor = scale.factor(found[3])
    if factor is None and not found[3]:
        factor = 1
    if factor is None:
        raise InvalidValue(f"`{text[:40]}`: no unit `{found[3]}`; {_units(scale)}")
    return _bounded(int(found[1] + found[2], 0 if "x" in found[2].lower() else 10) * factor)


def _units(scale: Scale) -> str:
    return "use us, ms, s, m, h or d" if scale.time else "use k, m, g, t, p, optionally with i or b"


def microseconds(text: str, unit: int = 10**6) -> int:
    """Parse a time. Without a unit it is in `unit`; in an expression, in microseconds."""
    text = text.strip()
    return whole(text, Scale(time=True)) * (unit if re.fullmatch(r"[+-]?[0-9]+", text) else 1)


def amount(text: str, scale: Scale) -> Amount:
    """Parse `64m` or `20%`."""
    found = re.fullmatch(r"([0-9]{1,3})%", text.strip())
    if found is None:
        if re.fullmatch(r"[0-9]+z", text.strip()):
            raise InvalidValue(f"`{text[:40]}` counts zones, which are not known here; give bytes or %")
        return Amount(natural(text, scale))
    if int(found[1]) > 100:
        raise InvalidValue(f"`{text}` is more than 100%")
    return Amount(percent=int(found[1]))


def natural(text: str, scale: Scale = Scale()) -> int:
    """Parse a number that is not negative."""
    value = whole(text, scale)
    if value < 0:
        raise InvalidValue(f"`{text[:40]}` is negative")
    return value


def span(text: str, scale: Scale) -> tuple[int, int]:
    """Parse `1k-4k` or `1k:4k`; return it in ascending order."""
    parts = re.split("[-:]", text)
    if len(parts) != 2:
        raise InvalidValue(f"`{text[:40]}` is not a range; write for example 4k-64k")
    low, high = sorted(natural(part, scale) for part in parts)
    return low, high


def arithmetic(text: str, scale: Scale) -> int:
    """Evaluate + - * / % ^ and parentheses over numbers with suffixes exactly; then drop the fraction."""
    parser = _Parser(text, scale)
    value = parser.sum(0)
    if parser.tokens:
        raise InvalidValue(f"`{text[:40]}`: `{parser.tokens[0][:20]}` does not belong there")
    return int(value)


def _bounded(value: int) -> int:
    if abs(value) >= LARGEST:
        raise InvalidValue("larger than 8 EiB")
    return value


_MEANING = {"*": means.mul, "/": means.truediv, "%": means.mod}


class _Parser:
    def __init__(self, text: str, scale: Scale) -> None:
        self.text, self.scale = text[:40], scale
        self.tokens = re.findall(r"[0-9][0-9a-zA-Z.]*|[^\s]", text)

    def sum(self, depth: int) -> Fraction:
        if depth > 50:
            raise InvalidValue(f"`{self.text}`: too many parentheses")
        value = self.product(depth)
        while self._next("+", "-"):
            value = value + self.product(depth) if self._took == "+" else value - self.product(depth)
        return value

    def product(self, depth: int) -> Fraction:
        value = self.power(depth)
        while self._next("*", "/", "%"):
            operator, right = self._took, self.power(depth)
            if operator != "*" and right == 0:
                raise InvalidValue(f"`{self.text}`: division by zero")
            value = self._held(_MEANING[operator](value, right))
        return value

    def power(self, depth: int) -> Fraction:
        value = self.factor(depth)
        if self._next("^"):
            exponent = self.power(depth + 1)
            if exponent.denominator != 1 or not 0 <= exponent <= 63:
                raise InvalidValue(f"`{self.text}`: the exponent is not a whole number from 0 to 63")
            value = self._held(value ** int(exponent))
        return value

    def factor(self, depth: int) -> Fraction:
        if depth > 50:
            raise InvalidValue(f"`{self.text}`: too many parentheses")
        if self._next("-"):
            return -self.factor(depth + 1)
        if self._next("("):
            value = self.sum(depth + 1)
            if not self._next(")"):
                raise InvalidValue(f"`{self.text}`: a parenthesis is not closed")
            return value
        if not self.tokens:
            raise InvalidValue(f"`{self.text}`: ends too early")
        return self._number(self.tokens.pop(0))

    def _number(self, token: str) -> Fraction:
        found = re.fullmatch(r"([0-9]{1,19}\.[0-9]{1,9})([a-zA-Z]*)", token)
        if found is None:
            return Fraction(whole(token, self.scale))
        factor = self.scale.factor(found[2]) if found[2] else 1
        if factor is None:
            raise InvalidValue(f"`{self.text}`: no unit `{found[2]}`; {_units(self.scale)}")
        return Fraction(found[1]) * factor

    def _next(self, *operators: str) -> bool:
        if self.tokens and self.tokens[0] in operators:
            self._took = self.tokens.pop(0)
            return True
        return False

    def _held(self, value: Fraction) -> Fraction:
        if abs(value) >= LARGEST or value.denominator >= LARGEST:
            raise InvalidValue(f"`{self.text}`: larger than 8 EiB")
        return value
