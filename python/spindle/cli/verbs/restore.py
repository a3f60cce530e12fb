"""`spindle restore`: restore the settings that Spindle changed."""

from __future__ import annotations

import sys

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option


@click.command("restore")
@json_option
def command(json: bool) -> Exit:
    """Restore every setting that Spindle changed: after `spindle knobs set`, kill -9, a power loss or a reboot.

    Settings that somebody else has changed since are reported and left alone. Exit status 1 if a value is not restored,
    3 if a running Spindle still uses some, or a journal is refused because another user could have written it.
    """
    from spindle.cli.failure import one_line
    from spindle.host.signals import Stopped, unwinding
    from spindle.knobs.persist import persisted
    from spindle.knobs.restore import restore
    from spindle.knobs.undo import State
    from spindle.report.terminal.knobs import restored, troubles

    try:
        with unwinding():
            report = restore(persisted=persisted())
    except Stopped as stopped:
        print(f"spindle: stopped by {stopped}; run it again to restore the rest", file=sys.stderr)
        raise SystemExit(128 + stopped.signum) from None
    for line in restored(report, json):
        print(line)
    for line in (*report.refused, *report.notes, *troubles(report.items)):
        print(f"spindle: {one_line(line)}", file=sys.stderr)
    if report.refused or report.having(State.BUSY):
        return Exit.REFUSED
    return Exit.FINE if report.complete else Exit.FAILED
