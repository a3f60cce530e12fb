"""GitHub's Markdown: words and tables, charts as the tables of their figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spindle.report.document.model import Block, Chart, Code, Document, Paragraph, Sheet
from spindle.result.record import Level

_SPECIAL = re.compile(r"(`[^`|]+`)|([\\`*_\[\]<>|#~&])")
"""Code, which stays as it is, or a character that means something."""


def markdown(document: Document) -> bytes:
    """Return the file."""
    return ("\n".join(_lines(document)).rstrip() + "\n").encode("utf-8", "backslashreplace")


def _lines(document: Document) -> Iterator[str]:
    yield f"# {_plain(document.title)}"
    yield ""
    yield f"{_plain(document.about)} {_level(document.level) if document.level is not None else ''}".rstrip()
    for section in document.sections:
        yield ""
        yield f"## {_plain(section.title)}"
        for block in section.blocks:
            yield ""
            yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph(text=text, level=level):
            yield _plain(text) if level in (None, Level.OK) else f"{_level(level)}: {_plain(text)}"
        case Sheet():
            yield f"{_plain(block.title)}:"
            yield ""
            yield from _table(block)
        case Code(title=title, text=text):
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            yield from (f"{_plain(title)}:", "", fence, *text.rstrip("\n").split("\n"), fence)
        case Chart():
            yield from (f"### {_plain(block.title)}", "", _plain(block.says), "")
            yield from _table(block.sheet)


def _table(sheet: Sheet) -> Iterator[str]:
    yield f"| {' | '.join(_plain(column.head) for column in sheet.columns)} |"
    yield f"|{'|'.join('---' if column.words else '---:' for column in sheet.columns)}|"
    for row in sheet.rows:
        yield f"| {' | '.join(_level(cell) if isinstance(cell, Level) else _plain(cell) for cell in row)} |"


def _level(level: Level | None) -> str:
    return "" if level is None else str(level) if level is Level.OK else f"**{level}**"


def _plain(text: str) -> str:
    """Escape markup, except code in back-quotes, and line ends."""
    return _SPECIAL.sub(lambda found: found[1] or f"\\{found[2]}", " ".join(text.split()))
