"""Width and colour of the output."""

from __future__ import annotations

import os
import shutil
import textwrap
from dataclasses import dataclass
from typing import TextIO

from spindle.result.level import Level

_CODES = {Level.OK: "32", Level.WARN: "33", Level.INVALID: "31;1"}


@dataclass(frozen=True)
class Style:
    """Style of the output. The default is that of a pipe: no colour, unlimited width."""

    width: int | None = None
    colour: bool = False
    why: bool = False
    """Show every warning in full, not only the worst."""

    def level(self, level: Level, text: str | None = None) -> str:
        """Return the level's name (or a text) in its colour."""
        word = text if text is not None else str(level)
        return f"\x1b[{_CODES[level]}m{word}\x1b[0m" if self.colour else word

    def headline(self, text: str) -> list[str]:
        """Return a bold headline; it is wrapped first, as colours have no width."""
        return [f"\x1b[1m{line}\x1b[0m" if self.colour else line for line in self.wrap(text)]

    def wrap(self, text: str, first: str = "", rest: str | None = None) -> list[str]:
        """Wrap text to the width; `first` starts the first line, `rest` the others."""
        if self.width is None:
            return [first + text]
        rest = " " * len(first) if rest is None else rest
        if self.width - len(rest) < 20:  # too narrow to indent
            first_words, rest = first.strip(), "  "
            first = f"{first_words} " if first_words else ""
        return textwrap.wrap(
            text,
            width=max(self.width, 20),
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [first.rstrip()]


def style_of(stream: TextIO, why: bool = False) -> Style:
    """Return the style of a stream. A terminal has a width, and colour unless NO_COLOR is set or it is dumb."""
    if not stream.isatty():
        return Style(why=why)
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(width=shutil.get_terminal_size().columns, colour=colour, why=why)
