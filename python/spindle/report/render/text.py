"""A document in the terminal: words and tables, charts as the tables of their figures."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.report.document.model import Block, Chart, Code, Document, Paragraph, Sheet
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import table


def text(document: Document, style: Style) -> list[str]:
    """Return the lines."""
    return [
        *style.headline(document.title),
        *style.wrap(", ".join(filter(None, [document.about, document.level]))),
        *(line for section in document.sections for line in _section(section.title, section.blocks, style)),
    ]


def _section(title: str, blocks: object, style: Style) -> Iterator[str]:
    yield ""
    yield from style.headline(title)
    for block in blocks if isinstance(blocks, list | tuple) else []:
        yield from _block(block, style)


def _block(block: Block, style: Style) -> Iterator[str]:
    match block:
        case Paragraph(text=words, level=level):
            yield from style.wrap(words, first="" if level is None else f"{level}: ", rest="")
        case Sheet():
            yield ""
            yield f"{block.title}:"
            yield from table(block.columns, [[str(cell) for cell in row] for row in block.rows], style)
        case Chart():
            yield ""
            yield from style.headline(block.title)
            yield from style.wrap(block.says)
            yield from table(block.sheet.columns, [[str(cell) for cell in row] for row in block.sheet.rows], style)
        case Code(title=title, text=lines):
            yield ""
            yield f"{title}:"
            yield from (f"  {line}" for line in lines.rstrip("\n").split("\n"))
