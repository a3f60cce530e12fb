"""The presets: a list, or one of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from spindle import _core
from spindle.base.plain import as_json
from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.run.resolve import resolve


def listing(json: bool) -> Iterator[str]:
    """Yield a line for each preset."""
    known = [resolve(name).spec for name in _core.preset_names()]
    if json:
        yield as_json([{"name": spec.name, "about": spec.about} for spec in known])
        return
    columns = [Column("preset", words=True), Column("what it does", words=True)]
    yield from table(columns, [[spec.name, spec.about] for spec in known], style_of(sys.stdout))


def one(name: str, json: bool) -> Iterator[str]:
    """Yield one preset: its text, or resolved as JSON."""
    if json:
        yield as_json(resolve(name).spec)
    else:
        yield from _core.preset_text(name).splitlines()
