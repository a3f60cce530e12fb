"""One HTML file that needs nothing else: no script, no font, no request; light and dark, on paper and read aloud.

There is no script on purpose: such files are opened from mails, build servers and wikis, many of which forbid scripts.
Figures of a chart are shown by its marks (browser tooltips) and by the table below it, which the keyboard opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import resources

from spindle.report.charts import theme
from spindle.report.document.model import Block, Chart, Code, Document, Paragraph, Section, Sheet
from spindle.report.render import drawing
from spindle.result.record import Level

_MARKS = {Level.OK: "\N{CHECK MARK}", Level.WARN: "!", Level.INVALID: "\N{MULTIPLICATION X}"}
LONG = 16
"""Characters of a cell that is not squeezed."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def html(document: Document) -> bytes:
    """Return the file."""
    sections = "\n".join(_section(section) for section in document.sections)
    links = "".join(f'<li><a href="#{escape(s.key)}">{escape(s.title)}</a></li>' for s in document.sections)
    nav = f'<nav aria-label="Sections"><ul>{links}</ul></nav>' if len(document.sections) > 1 else ""
    title = escape(document.title)
    about = " ".join(filter(None, [escape(document.about), _badge(document.level) if document.level else ""]))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="generator" content="spindle">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{_style()}
</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<h1>{title}</h1>
<p class="about">{about}</p>
{nav}
</header>
<main id="content">
{sections}
</main>
</body>
</html>
""".encode("utf-8", "backslashreplace")


def _style() -> str:
    text = resources.files("spindle.report.render").joinpath("page.css").read_text(encoding="utf-8")
    light = _variables(theme.LIGHT)
    dark = _variables(theme.DARK)
    return f":root{{{light}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n{text.rstrip()}"


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def _section(section: Section) -> str:
    key, blocks = escape(section.key), "\n".join(_block(block) for block in section.blocks)
    head = f'<h2 id="{key}-head">{escape(section.title)}</h2>'
    return f'<section id="{key}" aria-labelledby="{key}-head">\n{head}\n{blocks}\n</section>'


def _block(block: Block) -> str:
    match block:
        case Paragraph(text=text, level=level):
            if level is None:
                return f"<p>{escape(text)}</p>"
            return f'<p class="note {level}">{_badge(level)} {escape(text)}</p>'
        case Sheet():
            return _folded(block.title, _table(block)) if block.folded else _table(block)
        case Code(title=title, text=text, folded=folded):
            code = f'<pre tabindex="0" aria-label="{escape(title)}"><code>{escape(text)}</code></pre>'
            return _folded(title, code) if folded else f"<h3>{escape(title)}</h3>\n{code}"
        case Chart():
            return _figure(block)


def _figure(chart: Chart) -> str:
    key = escape(chart.key)
    return f"""<figure id="{key}">
<figcaption><h3 id="{key}-title">{escape(chart.title)}</h3>
<p id="{key}-says">{escape(chart.says)}</p></figcaption>
<div class="wide plot" tabindex="0" role="region" aria-label="{escape(chart.title)}">{drawing.inline(chart)}</div>
{_folded(chart.sheet.title, _table(chart.sheet))}
</figure>"""


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n{inner}\n</details>"


def _table(sheet: Sheet) -> str:
    heads = "".join(
        f'<th scope="col"{_side(column.words)}>{escape(column.head) or "<span class=hidden>mark</span>"}</th>'
        for column in sheet.columns
    )
    rows = "\n".join(
        "<tr>"
        + "".join(
            _cell(cell, column.words, at) for at, (cell, column) in enumerate(zip(row, sheet.columns, strict=True))
        )
        + "</tr>"
        for row in sheet.rows
    )
    caption = "" if sheet.folded else f"<caption>{escape(sheet.title)}</caption>"
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(sheet.title)}"><table>{caption}\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cell(cell: str, words: bool, at: int) -> str:
    text = _badge(cell) if isinstance(cell, Level) else escape(cell)
    if at == 0 and words and not isinstance(cell, Level):
        return f'<th scope="row"{_side(words)}>{text}</th>'
    if words and len(cell) > LONG:
        return f'<td class="t">{text}</td>'
    return f"<td{_side(words)}>{text}</td>"


def _side(words: bool) -> str:
    return "" if words else ' class="n"'


def _badge(level: Level) -> str:
    return f'<span class="badge {level}"><span aria-hidden="true">{_MARKS[level]}</span> {level}</span>'
