"""Output of findings that print themselves, as text or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from spindle.cli.exits import Exit

if TYPE_CHECKING:
    from spindle.library.shown import Printable


def show(found: Printable, json: bool) -> Exit:
    """Print a finding of the library on stdout."""
    from spindle.cli.output import put_lines
    from spindle.report.terminal.style import style_of

    if json:
        put_json(found.to_json())
    else:
        put_lines(found.page(style_of(sys.stdout)))
    return Exit.FINE


def put(found: object, page: Iterable[str], json: bool) -> Exit:
    """Print the JSON of an object, or its page."""
    from spindle.base.plain import as_json
    from spindle.cli.output import put_lines

    if json:
        put_json(as_json(found).encode() + b"\n")
    else:
        put_lines(page)
    return Exit.FINE


def put_json(data: bytes) -> None:
    """Print JSON: UTF-8, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
