"""`spindle verify --state FILE`: read back what an earlier run wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spindle.cli.exits import Exit, failed

if TYPE_CHECKING:
    from spindle.result.verification import StateCheck, fault_words


def check(state: Path, target: str | None, json: bool, quiet: bool) -> Exit:
    """Show the result; FAILED unless every block is right."""
    import msgspec

    from spindle.cli.session import session
    from spindle.report.terminal.style import style_of
    from spindle.report.terminal.verification import state_page
    from spindle.run.verification import check_state

    with session(quiet) as watch:
        found = check_state(state, target, watch)
        watch.end()
    if json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        for line in state_page(found, style_of(sys.stdout)):
            print(line)
    return Exit.FINE if found.sound else failed(f"{found.target}: {_wrong(found)}")


def _wrong(found: StateCheck) -> str:

    back = found.read_back
    if back.found.wrong:
        return f"wrong content: {fault_words([back.found])}"
    return f"stopped after {back.found.blocks} of {back.expected} blocks"
