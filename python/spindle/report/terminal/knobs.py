"""Knobs as tables, lines and JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spindle.base.plain import as_json
from spindle.knobs.catalogue import KNOBS, Knob
from spindle.knobs.files import Files
from spindle.knobs.persist import BootFile
from spindle.knobs.places import KnobFolder
from spindle.knobs.profile import Values, text
from spindle.knobs.restore import Restoration
from spindle.knobs.session import ChangeResult
from spindle.knobs.undo import Item, State
from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table

QUIET = (State.RESTORED, State.BACK, State.REBOOT)
"""States that are not reported after a command."""


def range_of(knob: Knob) -> str:
    """Return values and unit: '0..100 %', 'none, mq-deadline'."""
    return f"{knob.values.range} {knob.unit}".rstrip()


def where_of(knob: Knob) -> str:
    """Return its file, with capitals for variable parts."""
    return knob.folder + " or ".join(knob.where)


def described(knob: Knob) -> dict[str, object]:
    """Return it as JSON."""
    return {
        "knob": knob.id,
        "where": where_of(knob),
        "kind": knob.values.kind,
        "range": knob.values.range,
        "unit": knob.unit,
        "since": knob.since,
        "schedulers": list(knob.schedulers),
        "about": knob.about,
    }


def catalogue(json: bool) -> Iterator[str]:
    """Yield the table of all knobs."""
    if json:
        yield as_json({"knobs": [described(knob) for knob in KNOBS]})
        return
    columns = [Column(head, words=True) for head in ("knob", "values", "kernels", "what it does")]
    rows = [[knob.id, range_of(knob), knob.since, knob.about] for knob in KNOBS]
    yield from table(columns, rows, style_of(sys.stdout))


def at_places(places: Iterable[KnobFolder], json: bool) -> Iterator[str]:
    """Yield the knobs of places, with their values."""
    files = Files()
    found = [(place, knob) for place in places for knob in place.knobs(files)]
    if json:
        yield as_json(
            {
                "knobs": [
                    {
                        **described(knob),
                        "address": place.address(knob),
                        "path": str(place.path(knob)),
                        "value": place.value(knob, files),
                        "offered": place.offered(knob, files),
                    }
                    for place, knob in found
                ]
            }
        )
        return
    columns = [Column("knob", words=True), Column("now"), *(Column(head, words=True) for head in ("values", "what"))]
    rows = [
        [
            place.address(knob),
            place.value(knob, files) or "-",
            ", ".join(place.offered(knob, files)) or range_of(knob),
            knob.about,
        ]
        for place, knob in found
    ]
    yield from table(columns, rows, style_of(sys.stdout))


def values(found: Sequence[tuple[KnobFolder, Knob]], json: bool) -> Iterator[str]:
    """Yield values in the form that `set` takes."""
    files = Files()
    read = {place.address(knob): place.value(knob, files) for place, knob in found}
    if json:
        yield as_json({"values": read})
        return
    for address, value in read.items():
        yield f"{address}={'-' if value is None else value}"


def made(done: Sequence[ChangeResult], json: bool) -> Iterator[str]:
    """Yield the changes."""
    if json:
        yield as_json({"changes": [one.to_dict() for one in done]})
        return
    for one in done:
        yield str(one)
        yield from (f"  with it {moved}" for moved in one.moved if moved.expected)


def of_command(done: Sequence[ChangeResult], undone: Sequence[Item], status: int) -> str:
    """Return the result of a command under changed knobs as JSON."""
    return as_json(
        {
            "changes": [one.to_dict() for one in done],
            "exit_status": status,
            "undone": [item.to_dict() for item in undone],
        }
    )


def troubles(undone: Iterable[Item]) -> list[str]:
    """Return the settings that were not restored."""
    return [str(item) for item in undone if item.state not in QUIET]


def difference(report: Restoration, json: bool) -> Iterator[str]:
    """Yield settings that Spindle changed and did not restore."""
    if json:
        yield as_json(report.to_dict())
        return
    if not report.items:
        yield "no change by spindle is in force"
        return
    columns = [Column(head, words=True) for head in ("knob", "start", "set to", "now", "state")]
    rows = [
        [item.knob, item.start or "-", item.left_at or "-", item.now or "-", f"{item.state}{item.why}"]
        for item in report.items
    ]
    yield from table(columns, rows, style_of(sys.stdout))


def against(wanted: Sequence[tuple[str, str, str | None]], json: bool) -> Iterator[str]:
    """Yield (knob, in the profile, now) of differences from a profile."""
    if json:
        yield as_json({"differences": [{"knob": knob, "profile": value, "now": now} for knob, value, now in wanted]})
        return
    if not wanted:
        yield "no difference from the profile"
        return
    columns = [Column(head, words=True) for head in ("knob", "profile", "now")]
    yield from table(columns, [[knob, value, now or "-"] for knob, value, now in wanted], style_of(sys.stdout))


def restored(report: Restoration, json: bool) -> Iterator[str]:
    """Yield the restored settings."""
    if json:
        yield as_json(report.to_dict())
    elif not report.items and not report.notes and not report.refused:
        yield "nothing to restore: no change by spindle is in force"
    else:
        yield from (str(item) for item in report.items if item.state in QUIET)


def profiles(found: Sequence[tuple[str, Path]], json: bool) -> Iterator[str]:
    """Yield the profiles."""
    if json:
        yield as_json({"profiles": [{"name": name, "path": str(path)} for name, path in found]})
        return
    yield from (f"{name}  {path}" for name, path in found)
    if not found:
        yield "no profiles yet; `spindle knobs profile save NAME DEVICE` makes one"


def profile_text(name: str, values: Values, json: bool) -> Iterator[str]:
    """Yield a profile: its file, or its values."""
    yield from [as_json(values)] if json else text(name, values).rstrip().splitlines()


def drafts(files: Sequence[BootFile], json: bool, are_written: bool) -> Iterator[str]:
    """Yield the files that will be written."""
    if json:
        shown = [{"path": str(draft.path), "text": draft.text([]), "sets": dict(draft.sets)} for draft in files]
        yield as_json({"files": shown, "written": are_written})
        return
    for draft in files:
        yield f"--- {draft.path}"
        yield from draft.text([]).splitlines()
        yield ""


def removed(files: Sequence[Path], json: bool) -> Iterator[str]:
    """Yield the boot files that are gone."""
    if json:
        yield as_json({"removed": [str(path) for path in files]})
    elif not files:
        yield "nothing to remove"
    else:
        yield from (f"removed {path}" for path in files)
