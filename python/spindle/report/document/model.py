"""Parts of a report, independent of HTML, Markdown and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spindle.report.terminal.table import Column
from spindle.result.record import Level


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; its level marks a warning."""

    text: str
    level: Level | None = None


@dataclass(frozen=True)
class Sheet:
    """A table. A cell that is a `Level` is a verdict."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    folded: bool = False
    """Folded at first, if the format can do that."""


@dataclass(frozen=True)
class Chart:
    """A picture: one Vega-Lite specification for every format, its colours named by role (`report.charts.theme`)."""

    key: str
    """Short and unique: its anchor in the file."""
    title: str
    says: str
    """One or two sentences: how to read it, and its content."""
    specification: dict[str, Any]
    sheet: Sheet
    """The same figures as numbers."""


@dataclass(frozen=True)
class Code:
    """Text to copy: commands, files."""

    title: str
    text: str
    folded: bool = False


Block = Paragraph | Sheet | Chart | Code


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    key: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    about: str
    """A line below the title."""
    level: Level | None
    """The worst verdict of its runs; None: it has none."""
    sections: Sequence[Section] = field(default_factory=list)

    def respelled(self, spelled: Callable[[str], str]) -> Document:
        """Return it with its paragraphs and tables as `spelled` shows keywords."""
        return replace(self, sections=[_respelled(section, spelled) for section in self.sections])

    def charts(self) -> list[Chart]:
        """Return all charts, in order."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Chart)]


def _respelled(section: Section, spelled: Callable[[str], str]) -> Section:
    blocks: list[Block] = []
    for block in section.blocks:
        match block:
            case Paragraph():
                blocks.append(replace(block, text=spelled(block.text)))
            case Sheet():
                rows = [[cell if isinstance(cell, Level) else spelled(cell) for cell in row] for row in block.rows]
                blocks.append(replace(block, rows=rows))
            case _:
                blocks.append(block)
    return replace(section, blocks=blocks)
