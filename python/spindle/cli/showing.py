"""Output of findings that print themselves, as text or JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spindle.library.shown import Printable


def show(found: Printable, json: bool) -> None:
    """Print a finding of the library to stdout."""
    from spindle.report.terminal.style import style_of

    print(found.to_json().decode() if json else "\n".join(found.page(style_of(sys.stdout))), end="" if json else "\n")
    sys.stdout.flush()
