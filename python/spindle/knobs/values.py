"""Values of knobs: parsed from what a user writes, recognised in what the kernel prints.

A value is kept as the text that is written to the kernel; reading it back must give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from spindle.host.settings import chosen

from . import swap

MOST_CPUS = 1 << 13
"""More than any kernel is built for (NR_CPUS)."""


class Values(Protocol):
    """The set of values that a knob takes."""

    @property
    def kind(self) -> str:
        """Its kind in one word: number, flag, choice, cpus, text."""

    @property
    def range(self) -> str:
        """Its range in words, for tables and messages."""

    def parse(self, text: str) -> str | None:
        """The text to write, or None: not a value."""

    def read(self, text: str) -> str:
        """The value in what the kernel shows."""

    def may_become(self, wanted: str, found: str) -> bool:
        """True if a kernel may have rounded `wanted` to `found`; for changes with unknown outcome."""


@dataclass(frozen=True)
class Number:
    """A whole number; `grain`: largest step to which kernels round it."""

    low: int = 0
    high: int | None = None
    grain: int = 0

    @property
    def kind(self) -> str:
        return "flag" if (self.low, self.high) == (0, 1) else "number"

    @property
    def range(self) -> str:
        return f"{self.low} and more" if self.high is None else f"{self.low}..{self.high}"

    def parse(self, text: str) -> str | None:
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
            return None
        value = int(text)
        return str(value) if value >= self.low and (self.high is None or value <= self.high) else None

    def read(self, text: str) -> str:
        return text.strip()

    def may_become(self, wanted: str, found: str) -> bool:
        whole = re.compile(r"-?[0-9]{1,20}")
        return bool(whole.fullmatch(wanted) and whole.fullmatch(found)) and abs(int(wanted) - int(found)) < self.grain


@dataclass(frozen=True)
class Choice:
    """One of several words; where the kernel lists them all, it marks the current one with brackets."""

    words: Sequence[str]

    @property
    def kind(self) -> str:
        return "choice"

    @property
    def range(self) -> str:
        return ", ".join(self.words)

    def parse(self, text: str) -> str | None:
        same = re.sub(r"[\s_-]+", " ", text.lower()).strip()
        return next((word for word in self.words if re.sub(r"[\s_-]+", " ", word) == same), None)

    def read(self, text: str) -> str:
        return chosen(text.strip())

    def may_become(self, wanted: str, found: str) -> bool:
        return False


@dataclass(frozen=True)
class Speed:
    """md's own speed limit, KiB/s: a number, or `system` for the limit of the machine (md(4))."""

    @property
    def kind(self) -> str:
        return "number"

    @property
    def range(self) -> str:
        return "1 and more, or system"

    def parse(self, text: str) -> str | None:
        if text == "system":
            return text
        return str(int(text)) if re.fullmatch(r"[0-9]{1,10}", text) and int(text) > 0 else None

    def read(self, text: str) -> str:
        found = re.fullmatch(r"\s*([0-9]+)\s*(?:\((local|system)\))?\s*", text)
        if found is None:
            return text.strip()
        return "system" if found[2] == "system" else found[1]

    def may_become(self, wanted: str, found: str) -> bool:
        return False


@dataclass(frozen=True)
class Seconds:
    """Seconds with up to three decimals, as md prints its delays."""

    @property
    def kind(self) -> str:
        return "number"

    @property
    def range(self) -> str:
        return "0 and more, three decimals"

    def parse(self, text: str) -> str | None:
        return f"{float(text):.3f}" if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", text) else None

    def read(self, text: str) -> str:
        return text.strip()

    def may_become(self, wanted: str, found: str) -> bool:
        number = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")
        return bool(number.fullmatch(wanted) and number.fullmatch(found)) and abs(float(wanted) - float(found)) < 0.011


@dataclass(frozen=True)
class SwapState:
    """State of a swap area: off, in use with a priority that the kernel chose, or with a chosen priority."""

    @property
    def kind(self) -> str:
        return "choice"

    @property
    def range(self) -> str:
        return f"{swap.OFF}, {swap.AUTO}, 0..{swap.MOST}"

    def parse(self, text: str) -> str | None:
        if text in (swap.OFF, swap.AUTO):
            return text
        return str(int(text)) if re.fullmatch(r"[0-9]{1,5}", text) and int(text) <= swap.MOST else None

    def read(self, text: str) -> str:
        return text

    def may_become(self, wanted: str, found: str) -> bool:
        return False


@dataclass(frozen=True)
class Cpus:
    """A list of CPUs: 0,2-5."""

    @property
    def kind(self) -> str:
        return "cpus"

    @property
    def range(self) -> str:
        return "a list such as 0,2-5"

    def parse(self, text: str) -> str | None:
        cpus: set[int] = set()
        for part in text.split(","):
            found = re.fullmatch(r"\s*([0-9]{1,4})(?:-([0-9]{1,4}))?\s*", part)
            if found is None:
                return None
            begin, end = int(found[1]), int(found[2] or found[1])
            if end < begin or end >= MOST_CPUS:
                return None
            cpus.update(range(begin, end + 1))
        return _ranges(sorted(cpus))

    def read(self, text: str) -> str:
        return self.parse(text.strip()) or text.strip()

    def may_become(self, wanted: str, found: str) -> bool:
        return False


@dataclass(frozen=True)
class Text:
    """Any text that the kernel prints: a parameter that the catalogue does not know, restored as it was."""

    @property
    def kind(self) -> str:
        return "text"

    @property
    def range(self) -> str:
        return "any"

    def parse(self, text: str) -> str | None:
        return text

    def read(self, text: str) -> str:
        return chosen(text.strip())

    def may_become(self, wanted: str, found: str) -> bool:
        return False


FLAG = Number(0, 1)


def _ranges(numbers: Sequence[int]) -> str:
    """[0, 1, 2, 5] -> '0-2,5', as the kernel prints it."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
