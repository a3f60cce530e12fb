"""`spindle.report`: results as one file that people send to each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spindle.base.plain import as_json
from spindle.library.arguments import public
from spindle.library.comparing import Alternative, plan_levels, selected
from spindle.library.outputs import output_of
from spindle.library.plot import Plot
from spindle.report.document.build import build
from spindle.report.document.entry import Entry, Plan
from spindle.report.terminal.style import Style
from spindle.run.errors import Usage
from spindle.store import Campaign, needs_store
from spindle.store import Store as Stored
from spindle.tune.decision import Tuning, is_search, tuning_of

if TYPE_CHECKING:
    from spindle.library.stores import Selection, Store
    from spindle.report.document.model import Document

FORMATS = ("html", "md", "csv", "png", "svg", "txt", "json")
_ENDINGS = {"htm": "html", "markdown": "md", "text": "txt", **{form: form for form in FORMATS}}


@public
def report(
    *results: Alternative,
    path: str | os.PathLike[str],
    store: Store | str | os.PathLike[str] | None = None,
    format: str | None = None,
    title: str | None = None,
    force: bool = False,
) -> None:
    """Write one file: a summary in words, tables, charts, verdicts, settings, and the commands that repeat the runs.

    `results`: as of `compare`. `format`: html, md, csv, png, svg, txt or json; without it, as the name ends. `force`:
    replace any regular file. Raises `spindle.Error`.
    """
    output = output_of(path, "report", "`path=`", force=force)
    wanted = format or format_of(output.path, "`path=`")
    output.check()
    with selected(results, store) as selections:
        data = rendered(selections, wanted, title)
    output.save(data)


def plot(*results: Alternative, store: Store | str | os.PathLike[str] | None = None) -> Plot:
    """The charts of a report."""
    with selected(results, store) as selections:
        document = document_of(selections)
    return Plot(document.charts(), document.title)


def format_of(path: Path, name: str) -> str:
    """The format that the ending of a file names. Raises `Usage`; `name`: the option or argument that gave the file."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in _ENDINGS:
        raise Usage(f"{name} {path}: its ending is not a format; give `format=`, one of {', '.join(FORMATS)}")
    return _ENDINGS[ending]


def rendered(
    selections: Sequence[Selection],
    form: str,
    title: str | None = None,
    style: Style | None = None,
    spelled: Callable[[str], str] = str,
) -> bytes:
    """The report in one of `FORMATS`; `style`: how text is laid out; `spelled`: how people see keywords."""
    if form == "csv":
        from spindle.report.render.table import table

        return table(entries_of(selections))
    document = document_of(selections, title)
    if form != "json":
        document = document.respelled(spelled)
    match form:
        case "html":
            from spindle.report.render.html import html

            return html(document)
        case "md":
            from spindle.report.render.markdown import markdown

            return markdown(document)
        case "png" | "svg":
            from spindle.report.render.drawing import picture

            return picture(document.charts(), form, document.title)
        case "json":
            return as_json(document).encode() + b"\n"
        case "txt":
            from spindle.report.render.text import text

            return "".join(f"{line}\n" for line in text(document, style or Style())).encode("utf-8", "backslashreplace")
        case _:
            raise Usage(f"`format=` {form}: not a format; it is one of {', '.join(FORMATS)}")


def shaped(entries: Sequence[Entry], shape: str) -> bytes:
    """All runs as text in the shape of another tool's output. Raises `Usage` if there are none."""
    from spindle.report.document.trial import runs_of
    from spindle.report.terminal.shapes import page

    runs = [run for entry in entries for run in runs_of(entry)]
    if not runs:
        raise Usage(f"`shape=` {shape}: no run of Spindle's own is among these results; leave it out")
    return "".join(f"{line}\n" for line in page(shape, runs)).encode("utf-8", "backslashreplace")


def document_of(selections: Sequence[Selection], title: str | None = None) -> Document:
    """The report before it has a format."""
    return build(entries_of(selections), title, plans_of(selections), searches_of(selections))


def entries_of(selections: Sequence[Selection]) -> list[Entry]:
    """Return the records of all selections, each once, in the given order."""
    found: dict[str, Entry] = {}
    for number, selection in enumerate(selections):
        levels = plan_levels(selection)
        from_store = selection.store is not None and needs_store(selection.text)
        for each in selection.selected:
            found.setdefault(
                each.run_id,
                Entry(
                    record=each.record,
                    source=each.run_id if from_store else selection.text,
                    tags=each.tags,
                    campaign=each.campaign,
                    cell=each.cell,
                    block=each.block,
                    selection=number,
                    levels=levels,
                ),
            )
    return list(found.values())


def plans_of(selections: Sequence[Selection]) -> list[Plan]:
    """The plans of the campaigns whose trials are selected, as the store keeps them."""
    found = [campaign for campaign, _ in _campaigns(selections)]
    return [Plan(name=each.name, text=each.plan, assignments=_assignments(each.detail)) for each in found]


def searches_of(selections: Sequence[Selection]) -> list[Tuning]:
    """The decisions of the searches whose trials are selected."""
    every = _campaigns(selections)
    return [tuning_of(campaign, store) for campaign, store in every if is_search(campaign)]


def _campaigns(selections: Sequence[Selection]) -> list[tuple[Campaign, Stored]]:
    stores = {each.campaign: one.store for one in selections for each in one.selected if each.campaign and one.store}
    found = ((store.campaigns.find(name), store) for name, store in sorted(stores.items()))
    return [(campaign, store) for campaign, store in found if campaign is not None]


def _assignments(detail: Mapping[str, Any]) -> tuple[str, ...]:
    """Changes of the plan that its command line gave."""
    given = detail.get("assignments")
    return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
