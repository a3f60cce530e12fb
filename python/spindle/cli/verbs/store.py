"""`spindle store`: stored results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from spindle.base.words import counted
from spindle.cli.exits import Exit, failed
from spindle.cli.options.storing import opened, store_option
from spindle.cli.output import json_option, put_lines
from spindle.cli.showing import put, put_json
from spindle.cli.writing import WritingCommand, forced, named_by

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group("store", epilog="SELECTION: a run's ID or its unique beginning, tag:NAME, "
             "campaign:NAME[/factor=level,...], last or last:N.")  # fmt: skip
def command() -> None:
    """Stored results: list, show, tag, export, import, check."""


@command.command("ls")
@click.argument("selections", nargs=-1, metavar="[SELECTION]...")
@store_option
@click.option("-n", "--last", type=click.IntRange(1), metavar="N", help="List only the last N.")
@click.option("--tags", is_flag=True, help="List the tags instead.")
@click.option("--campaigns", is_flag=True, help="List the campaigns instead.")
@click.option("--recordings", is_flag=True, help="List the recordings of `monitor --store` and campaigns instead.")
@json_option
def ls(
    selections: tuple[str, ...],
    where: str | None,
    last: int | None,
    tags: bool,
    campaigns: bool,
    recordings: bool,
    json: bool,
) -> Exit:
    """List results, or those of selections, in the order they were stored."""
    from spindle.report.terminal import store as pages

    if sum((tags, campaigns, recordings)) > 1 or (selections and (tags or campaigns or recordings)):
        raise click.UsageError("--tags, --campaigns, --recordings and selections exclude each other; take one")
    with opened(where, read_only=True) as store:
        if tags:
            found: Sequence[Any] = pages.tag_lines(store.tags)
        elif campaigns:
            found = store.campaigns
        elif recordings:
            found = store.recordings
        else:
            found = store.ls(*selections, last=last)
    return put(found, pages.lines_of(found), json)


@command.command("show")
@click.argument("selections", nargs=-1, required=True, metavar="SELECTION...")
@store_option
@json_option
def show(selections: tuple[str, ...], where: str | None, json: bool) -> Exit:
    """Show results as their runs did; --json prints the stored documents."""
    from spindle.cli.output import status_of
    from spindle.report.terminal.page import page
    from spindle.report.terminal.style import style_of

    shown = []
    style = style_of(sys.stdout)
    with opened(where, read_only=True) as store:
        for number, each in enumerate(store.chosen(*selections)):
            if json:
                put_json(store.document(each))
                continue
            if number:
                print()
            put_lines([*page(each.record, style), *store.about(each)])
            shown.append(each.record)
    return status_of(shown, strict=False)


@command.command("tag")
@click.argument("selection", metavar="SELECTION")
@click.argument("tags", nargs=-1, required=True, metavar="NAME...")
@store_option
@click.option("--remove", is_flag=True, help="Remove the tags.")
def tag(selection: str, tags: tuple[str, ...], where: str | None, remove: bool) -> Exit:
    """Tag the results of SELECTION."""
    with opened(where, create=False) as store:
        count = store.untag(selection, *tags) if remove else store.tag(selection, *tags)
    done = "taken from" if remove else "given to"
    print(f"{', '.join(tags)}: {done} {counted(count, 'result')}")
    return Exit.FINE


@command.command("rm")
@click.argument("selections", nargs=-1, required=True, metavar="SELECTION...")
@store_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(selections: tuple[str, ...], where: str | None, yes: bool) -> Exit:
    """Remove results. Those of a campaign are removed with the whole campaign: campaign:NAME. A recording is
    recording:ID."""
    from spindle.cli.options.consent import ask

    with opened(where, create=False) as store:

        def agreed(words: str) -> bool:
            return yes or ask(f"{store.place}: {words} will be removed.")

        removed = store.remove(*selections, confirm=agreed)
    if removed is None:
        raise click.Abort
    print(f"{removed} removed")
    return Exit.FINE


@command.command("export", cls=WritingCommand)
@click.argument("selections", nargs=-1, required=True, metavar="SELECTION...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="PLACE",
    help="A file, or a new folder.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["json", "fio", "csv", "parquet"]),
    help="Format.  [default: by the ending of PLACE, else json]",
)  # fmt: skip
@click.option(
    "--tables", is_flag=True, help="csv, parquet: write all tables, one file each, instead of one row per result."
)
@store_option
def export(
    selections: tuple[str, ...],
    output: Path,
    form: Literal["json", "fio", "csv", "parquet"] | None,
    tables: bool,
    where: str | None,
) -> Exit:
    """Write results to files: documents (json), fio's JSON (fio), or tables (csv, parquet)."""
    others = [each for each in named_by(click.get_current_context()) if each[1] != "--output"]
    with opened(where, read_only=True) as store:
        written = store.export(*selections, output=output, format=form, tables=tables, force=forced(), others=others)
    print(written)
    return Exit.FINE


@command.command("import")
@click.argument("places", nargs=-1, required=True, metavar="PLACE...")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="Tag the imported results. May be repeated.")
@click.option(
    "--from",
    "form",
    metavar="FORMAT",
    help="Format of the files (`spindle help formats`).  [default: by content]",
)
@store_option
def import_(places: tuple[str, ...], tags: tuple[str, ...], form: str | None, where: str | None) -> Exit:
    """Import results: files that --output or other tools wrote, folders of them, or whole stores (a file or a
    postgresql:// URL).

    Results that are already stored are left alone, so that an import can be repeated.
    """
    with opened(where) as store:
        for place in places:
            print(store.take_in(place, tags=tags, format=form))
    return Exit.FINE


@command.command("attach")
@click.argument("run", metavar="RUN")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--by-path", is_flag=True, help="Store the path and SHA-256 of the file, not its content.")
@store_option
def attach(run: str, files: tuple[Path, ...], by_path: bool, where: str | None) -> Exit:
    """Store files with a result: a log, a configuration, a picture."""
    with opened(where, create=False) as store:
        for file in files:
            kept = store.attach(run, file, by_path=by_path)
            print(f"{kept.name}: {kept.size_bytes} bytes, SHA-256 {kept.sha256[:16]}...")
    return Exit.FINE


@command.command("check")
@store_option
@json_option
def check(where: str | None, json: bool) -> Exit:
    """Check integrity: the database, each document and its rows in the tables, each campaign, each file."""
    from spindle.report.terminal import store as pages

    with opened(where, read_only=True) as store:
        found = store.check()
        put(found, pages.checked(found, store.place), json)
        if not found.problems:
            return Exit.FINE
        also = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
        return failed(f"{store.place}: {found.problems[0]}{also}")


@command.command("vacuum")
@store_option
def vacuum(where: str | None) -> Exit:
    """Free the space of removed results, and renew the statistics of the query planner."""
    with opened(where, create=False) as store:
        before, after = store.vacuum()
    print(f"{before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after")
    return Exit.FINE


@command.command("info")
@store_option
@json_option
def info(where: str | None, json: bool) -> Exit:
    """Show the place, kind and size of the store. A store of an older Spindle is upgraded."""
    from spindle.report.terminal import store as pages

    with opened(where, create=False) as store:
        found = store.info
    return put(found, pages.info(found), json)
