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
    from spindle.library.restoring import Stopped, restore
    from spindle.report.terminal.knobs import restored, troubles

    try:
        report = restore()
    except Stopped as stopped:
        print(f"spindle: stopped by {stopped}; run it again to restore the rest", file=sys.stderr)
        raise SystemExit(128 + stopped.signum) from None
    for line in restored(report, json):
        print(line)
    for line in (*report.refused, *report.notes, *troubles(report.items)):
        print(f"spindle: {one_line(line)}", file=sys.stderr)
    if report.is_refused:
        return Exit.REFUSED
    return Exit.FINE if report.complete else Exit.FAILED
