"""Tables with aligned columns; if they do not fit, one block per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spindle.report.terminal.style import Style

GAP = "  "


@dataclass(frozen=True)
class Column:
    """A heading; numbers are right-aligned, words left-aligned."""

    head: str
    words: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], style: Style) -> list[str]:
    """Return a table, or blocks if the terminal is too narrow."""
    widths = _widths(columns, rows)
    if not fits(columns, rows, style):
        return _blocks(columns, rows)

    def line(cells: Sequence[str]) -> str:
        return GAP.join(
            cell.ljust(width) if column.words else cell.rjust(width)
            for cell, width, column in zip(cells, widths, columns, strict=True)
        ).rstrip()

    return [line([column.head for column in columns]), *(line(row) for row in rows)]


def fits(columns: Sequence[Column], rows: Sequence[Sequence[str]], style: Style) -> bool:
    """True if there is room for it as a table."""
    widths = _widths(columns, rows)
    return style.width is None or sum(widths) + len(GAP) * (len(widths) - 1) <= style.width


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max([len(column.head), *(len(row[at]) for row in rows)]) for at, column in enumerate(columns)]


def _blocks(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return blocks: words are the heading, numbers the lines."""
    numbers = [column.head for column in columns if not column.words]
    width = max((len(head) for head in numbers), default=0)
    lines: list[str] = []
    for row in rows:
        cells = list(zip(columns, row, strict=True))
        title = " ".join(cell for column, cell in cells if column.words and cell)
        lines.append(f"{title}:" if title else "-")
        lines.extend(f"  {column.head.ljust(width)} {cell}" for column, cell in cells if not column.words and cell)
    return lines
