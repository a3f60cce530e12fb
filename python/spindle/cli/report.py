"""`spindle report`: results as one file that people send to each other."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.alternatives import opened, plan_levels
from spindle.cli.exits import Exit
from spindle.cli.output import status_of
from spindle.cli.storing import store_option
from spindle.cli.writing import OutputOption, Writing

if TYPE_CHECKING:
    from spindle.host.outputs import Output
    from spindle.report.document.entry import Entry, Plan

FORMATS = ("html", "md", "csv", "png", "svg", "txt", "json")


@click.command("report", cls=Writing)
@click.argument("selections", metavar="SELECTION...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    cls=OutputOption,
    kind="report",
    help="Where to; stdout unless given.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="Unless given, as FILE ends; txt without a file.")
@click.option(
    "--shape",
    type=click.Choice(["fio", "bonnie", "iozone", "randomio"]),
    help="Text in the shape of this tool's output, all runs in one.",
)
@click.option("--title", metavar="TEXT", help="Title; made from workloads and targets unless given.")
@store_option
@click.option("--json", is_flag=True, help="The same as --format json: sections, tables and chart specifications.")
def command(
    selections: tuple[str, ...],
    output: Output | None,
    form: str | None,
    shape: str | None,
    title: str | None,
    where: str | None,
    json: bool,
) -> Exit:
    """Make one file of results: a summary in words, tables, charts, verdicts, settings, and the commands that
    repeat them.

    SELECTION is a file that `--output` saved, a run's identity, tag:NAME, campaign:NAME[/factor=level,...], last or
    last:N.
    """
    from spindle.report.document.build import build

    wanted = "json" if json else form or ("txt" if shape else _by_name(output))
    if shape is not None and wanted != "txt":
        raise click.UsageError(f"--shape is of text, not of {wanted}; leave out one of them")
    entries = entries_of(selections, where)
    if shape is not None:
        _write(_shaped(entries, shape), output, wanted)
        return status_of([entry.record for entry in entries], strict=False)
    document = build(entries, title, plans_of(entries, where))
    match wanted:
        case "html":
            from spindle.report.render.html import html

            data = html(document)
        case "md":
            from spindle.report.render.markdown import markdown

            data = markdown(document)
        case "csv":
            from spindle.report.render.table import table

            data = table(entries)
        case "png" | "svg":
            from spindle.report.render.drawing import picture

            data = picture(document.charts(), wanted, document.title)
        case "json":
            import msgspec

            data = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
        case _:
            from spindle.report.render.text import text
            from spindle.report.style import Style, style_of

            style = style_of(sys.stdout) if output is None else Style()
            data = "".join(f"{line}\n" for line in text(document, style)).encode("utf-8", "backslashreplace")
    _write(data, output, wanted)
    return status_of([entry.record for entry in entries], strict=False)


def _shaped(entries: list[Entry], shape: str) -> bytes:
    from spindle.report.document.trial import runs_of
    from spindle.report.shapes import page
    from spindle.run.errors import Usage

    runs = [run for entry in entries for run in runs_of(entry)]
    if not runs:
        raise Usage(f"--shape {shape}: no run of Spindle's own is among these results; leave it out")
    return "".join(f"{line}\n" for line in page(shape, runs)).encode("utf-8", "backslashreplace")


def _by_name(output: Output | None) -> str:
    if output is None:
        return "txt"
    ending = output.path.suffix.lower().removeprefix(".")
    known = {"htm": "html", "markdown": "md", "text": "txt", **{form: form for form in FORMATS}}
    if ending not in known:
        raise click.UsageError(
            f"-o {output.path}: its ending names no format; give --format, one of {', '.join(FORMATS)}"
        )
    return known[ending]


def entries_of(selections: tuple[str, ...], where: str | None) -> list[Entry]:
    """The records of every selection, each once, in the order in which they were named."""
    from spindle.report.document.entry import Entry
    from spindle.store import needs_store, select

    found: dict[str, Entry] = {}
    with opened(where, selections) as store:
        for number, text in enumerate(selections):
            levels = plan_levels(store, text)
            for each in select(store, text):
                found.setdefault(
                    each.run_id,
                    Entry(
                        record=each.record,
                        source=each.run_id if needs_store(text) else text,
                        tags=each.tags,
                        campaign=each.campaign,
                        cell=each.cell,
                        block=each.block,
                        selection=number,
                        levels=levels,
                    ),
                )
    return list(found.values())


def plans_of(entries: list[Entry], where: str | None) -> list[Plan]:
    """Of the campaigns whose trials are among the entries, as the store keeps them."""
    from spindle.report.document.entry import Plan

    names = sorted({entry.campaign for entry in entries if entry.campaign})
    if not names:
        return []
    with opened(where, ["last"]) as store:
        found = [campaign for name in names if store and (campaign := store.campaigns.find(name)) is not None]
    return [Plan(name=each.name, text=each.plan, assignments=_assignments(each.detail)) for each in found]


def _assignments(detail: Mapping[str, Any]) -> tuple[str, ...]:
    """`--set` of the campaign's command line."""
    given = detail.get("assignments")
    return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()


def _write(data: bytes, output: Output | None, wanted: str) -> None:
    if output is not None:
        output.save(data)
        return
    if wanted == "png" and sys.stdout.isatty():
        raise click.UsageError("--format png: a picture cannot be shown here; give -o FILE.png")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
