"""`spindle validate drives`."""

from __future__ import annotations

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.output import json_option
from spindle.cli.showing import put


@click.command("drives")
@click.argument("directory", metavar="DIR", required=False, type=click.Path(exists=True, file_okay=False))
@json_option
def drives(directory: str | None, json: bool) -> Exit:
    """Compare drive models with traces of real drives: DIR/drives.json names drives and traces.

    Errors larger than those of DiskSim 4.0 are listed; they do not change the exit status. A drive that cannot be
    read or replayed is named, the others are compared, and the exit status is 1.
    """
    if directory is None:
        raise click.UsageError(
            "missing DIR: a folder with drives.json, in DiskSim's terms, and the traces it names "
            "(`spindle help drives`)"
        )
    from spindle.report.terminal.drives import drives_page, drives_report

    report = drives_report(directory)
    put(report, drives_page(report), json)
    if report.failures:
        count = len(report.failures) + len(report.drives)
        return failed(f"{directory}: {len(report.failures)} of {count} drives could not be compared")
    return Exit.FINE
