"""`spindle verify`: check that a target still contains what was written to it.

It is compared with the saved state of a run, or with the journal of a durability test. Also the journal's receiver.
"""

from __future__ import annotations

from pathlib import Path

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.targets import TARGET
from spindle.cli.output import json_option
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
    from spindle.cli.session import session
    from spindle.report.terminal import durability as shown
    from spindle.run.durability import aftercrash, receiver
    from spindle.run.durability.journal import address, read_token
    from spindle.run.errors import Usage

    if sum(form is not None for form in (state, after_crash, listen)) != 1:
        raise Usage(
            "give one of --state FILE and --after-crash JOURNAL, to check a target, or --listen PORT, to receive one"
        )
    if listen is None and (token_file is not None or limit is not None):
        raise Usage("--token-file, --limit: use them with --listen")
    if state is not None:
        from spindle.cli.saved_state import check

        if journal is not None:
            raise Usage("--journal: use it with --listen; a check takes --state FILE alone")
        return check(state, target, json, quiet)
    if after_crash is not None:
        if journal is not None:
            raise Usage("--journal: use it with --listen; a check takes --after-crash JOURNAL alone")
        with session(quiet) as watch:
            watch.step("reading the target")
            checked = aftercrash.verify(after_crash, target)
            watch.end()
        shown.print_checked(checked, json)
        return Exit.FINE if checked.sound else failed(f"{checked.target}: {shown.verdict_words(checked.findings)}")
    if journal is None or target is not None:
        raise Usage("--listen: takes --journal FILE, where the journal is stored, and no target")
    host, port = address(str(listen), "--listen")
    token = read_token(token_file) if token_file is not None else None
    order = receiver.ReceiverOptions(host, port, journal, token, limit or receiver.LIMIT)
    with session(quiet) as watch:
        received = receiver.receive(order, watch)
    shown.print_received(received, json, many=journal.is_dir())
    return Exit.FINE
