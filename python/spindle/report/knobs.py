"""Knobs as tables, lines and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spindle.host.knobs.catalogue import KNOBS, Knob
from spindle.host.knobs.files import Files
from spindle.host.knobs.persist import Draft
from spindle.host.knobs.places import Place
from spindle.host.knobs.restore import Report
from spindle.host.knobs.session import Made
from spindle.host.knobs.undo import Item, State
from spindle.report.style import style_of
from spindle.report.table import Column, table

QUIET = (State.RESTORED, State.BACK, State.REBOOT)
"""What needs no word after a command."""


def to_json(data: object) -> str:
    """For --json."""
    return json.dumps(data, indent=2, ensure_ascii=False)


def range_of(knob: Knob) -> str:
    """Values and unit: '0..100 %', 'none, mq-deadline'."""
    return f"{knob.values.range} {knob.unit}".rstrip()


def where_of(knob: Knob) -> str:
    """Its file, with capitals for what differs."""
    return knob.folder + " or ".join(knob.where)


def described(knob: Knob) -> dict[str, object]:
    """For --json."""
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


def catalogue(as_json: bool) -> Iterator[str]:
    """All there are."""
    if as_json:
        yield to_json({"knobs": [described(knob) for knob in KNOBS]})
        return
    columns = [Column(head, words=True) for head in ("knob", "values", "kernels", "what it does")]
    rows = [[knob.id, range_of(knob), knob.since, knob.about] for knob in KNOBS]
    yield from table(columns, rows, style_of(sys.stdout))


def at_places(places: Iterable[Place], as_json: bool) -> Iterator[str]:
    """What places have, and how it is set."""
    files = Files()
    found = [(place, knob) for place in places for knob in place.knobs(files)]
    if as_json:
        yield to_json(
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


def values(found: Sequence[tuple[Place, Knob]], as_json: bool) -> Iterator[str]:
    """Some values, in the form that `set` takes."""
    files = Files()
    read = {place.address(knob): place.value(knob, files) for place, knob in found}
    if as_json:
        yield to_json({"values": read})
        return
    for address, value in read.items():
        yield f"{address}={'-' if value is None else value}"


def made(done: Sequence[Made], as_json: bool) -> Iterator[str]:
    """What was changed."""
    if as_json:
        yield to_json({"changes": [one.to_dict() for one in done]})
        return
    for one in done:
        yield str(one)
        yield from (f"  with it {moved}" for moved in one.moved if moved.expected)


def of_command(done: Sequence[Made], undone: Sequence[Item], status: int) -> str:
    """A command under changed knobs, as JSON."""
    return to_json(
        {
            "changes": [one.to_dict() for one in done],
            "exit_status": status,
            "undone": [item.to_dict() for item in undone],
        }
    )


def troubles(undone: Iterable[Item]) -> list[str]:
    """What was not put back."""
    return [str(item) for item in undone if item.state not in QUIET]


def difference(report: Report, as_json: bool) -> Iterator[str]:
    """What Spindle has changed and not put back."""
    if as_json:
        yield to_json(report.to_dict())
        return
    if not report.items:
        yield "nothing that spindle changed is in force"
        return
    columns = [Column(head, words=True) for head in ("knob", "start", "set to", "now", "state")]
    rows = [
        [item.knob, item.start or "-", item.left_at or "-", item.now or "-", f"{item.state}{item.why}"]
        for item in report.items
    ]
    yield from table(columns, rows, style_of(sys.stdout))


def against(wanted: Sequence[tuple[str, str, str | None]], as_json: bool) -> Iterator[str]:
    """(knob, in the profile, now) of what differs from a profile."""
    if as_json:
        yield to_json({"differences": [{"knob": knob, "profile": value, "now": now} for knob, value, now in wanted]})
        return
    if not wanted:
        yield "as the profile has it"
        return
    columns = [Column(head, words=True) for head in ("knob", "profile", "now")]
    yield from table(columns, [[knob, value, now or "-"] for knob, value, now in wanted], style_of(sys.stdout))


def restored(report: Report, as_json: bool) -> Iterator[str]:
    """What was put back."""
    if as_json:
        yield to_json(report.to_dict())
    elif not report.items and not report.notes and not report.refused:
        yield "nothing to restore: everything that spindle changed is back already"
    else:
        yield from (str(item) for item in report.items if item.state in QUIET)


def profiles(found: Sequence[tuple[str, Path]], as_json: bool) -> Iterator[str]:
    """The profiles there are."""
    if as_json:
        yield to_json({"profiles": [{"name": name, "path": str(path)} for name, path in found]})
        return
    yield from (f"{name}  {path}" for name, path in found)
    if not found:
        yield "no profiles yet; `spindle knobs profile save NAME DEVICE` makes one"


def drafts(files: Sequence[Draft]) -> Iterator[str]:
    """Files that are about to be written."""
    for draft in files:
        yield f"--- {draft.path}"
        yield from draft.text([]).splitlines()
        yield ""
