"""`spindle verify`: check that a target still contains what was written to it.

It is compared with the saved state of a run, or with the journal of a durability test. Also the journal's receiver.
"""

from __future__ import annotations

from pathlib import Path

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.targets import TARGET
from spindle.cli.output import json_option
from spindle.cli.showing import show
from spindle.cli.verbs.durability import size_option


@click.command("verify")
@click.argument("target", type=TARGET, required=False)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read back what the run that saved this state wrote (`spindle run --verify --verify-state FILE`).",
)
@click.option(
    "--after-crash",
    type=click.Path(path_type=Path),
    metavar="JOURNAL",
    help="Compare TARGET (default: the journal's) with this journal of `spindle durability`.",
)
@click.option(
    "--listen",
    metavar="[ADDR:]PORT",
    help="Receive the journal of a writer on another host; ADDR is 127.0.0.1 unless given.",
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="With --listen: a new file for one journal, or a folder for several, until Ctrl-C.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --listen: accept only writers with the secret in this file; only you may be able to read it.",
)
@click.option("--limit", callback=size_option, metavar="SIZE", help="With --listen: largest journal.  [default: 2 GiB]")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    target: str | None,
    state: Path | None,
    after_crash: Path | None,
    listen: str | None,
    journal: Path | None,
    token_file: Path | None,
    limit: int | None,
    json: bool,
    quiet: bool,
) -> Exit:
    """Check that TARGET (default: as it was named then) still contains what was written to it: by a verified run, with
    its saved state, or, after a power cut during `spindle durability`, with its journal. TARGET is only read.

    Exit status: 0 nothing is wrong or lost and the order was kept, 1 something is, or cannot be checked, 2 usage or
    another target.
    """
    import spindle
    from spindle.cli.session import live_line

    if sum(form is not None for form in (state, after_crash, listen)) != 1:
        raise click.UsageError(
            "give one of --state FILE and --after-crash JOURNAL, to check a target, or --listen PORT, to receive one"
        )
    if listen is not None:
        if journal is None or target is not None:
            raise click.UsageError("--listen: takes --journal FILE, where the journal is stored, and no target")
        show(
            spindle.receive_journals(listen, journal, token_file=token_file, limit=limit, progress=live_line(quiet)),
            json,
        )
        return Exit.FINE
    if token_file is not None or limit is not None:
        raise click.UsageError("--token-file, --limit: use them with --listen")
    if journal is not None:
        raise click.UsageError("--journal: use it with --listen; a check takes --state or --after-crash alone")
    checked = spindle.verify(target, state=state, after_crash=after_crash, progress=live_line(quiet))
    show(checked, json)
    return Exit.FINE if checked.sound else failed(f"{checked.target}: {checked.summary}")
