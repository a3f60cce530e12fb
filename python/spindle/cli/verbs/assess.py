"""`spindle assess`: is this storage good enough for a purpose?"""

from __future__ import annotations

import sys
from typing import Any

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.consent import consent_of, consent_options
from spindle.cli.options.needs import need_options
from spindle.cli.options.preflight import preflight_of, preflight_options
from spindle.cli.options.storing import store_options, stored_by
from spindle.cli.options.targets import TARGET
from spindle.cli.output import json_option, put_lines


@click.command("assess")
@click.argument("target", type=TARGET)
@need_options
@click.option("--data", metavar="SIZE", help="Size of the data; default: the whole target, in a folder a test file.")
@click.option(
    "--seconds",
    type=float,
    help="Length of the run at the need; the others take half of it. Default: 60, longer for rare requests.",
)
@consent_options
@preflight_options
@store_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    target: str, purpose: str, data: str | None, seconds: float | None, json: bool, quiet: bool, **values: Any
) -> Exit:
    """Find out if TARGET is good enough: yes, no or cannot say, with the margin and what limits it.

    TARGET: a folder, a file, a block device or a modelled machine. The load that the purpose makes is offered at the
    rate of the need, whether or not TARGET keeps up; then the largest multiple within all bounds is searched for.

    A load that writes writes to a file of its own in a folder, or to a device that --erase names.

    Exit status: 0 yes, 1 no or cannot say, 2 usage, 3 refused.
    """
    from spindle.cli.session import live_line
    from spindle.library.assessing import assessed
    from spindle.report.terminal.style import style_of

    consent, preflight, keeping = consent_of(values), preflight_of(values), stored_by(values)
    found = assessed(
        target,
        purpose,
        values,
        keeping.keep if keeping is not None else lambda record: None,
        seconds=seconds,
        data=data,
        consent=consent,
        preflight_options=preflight,
        progress=live_line(quiet),
    )
    if json:
        sys.stdout.flush()
        sys.stdout.buffer.write(found.to_json())
        sys.stdout.buffer.flush()
    else:
        put_lines(found.page(style_of(sys.stdout)))
    if not found.is_enough:
        return failed(f"{found.answer}: {found.reason}")
    if preflight.strict and found.caveats:
        return failed(f"--strict: {found.caveats[0]}")
    return Exit.FINE
