"""`spindle restore`: what sessions that were kept, killed or cut short by a power loss left changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..devices import HERE, Machine
from ..errors import reason
from ..register import boot_id
from . import journal
from .catalogue import known
from .files import Files
from .journal import Change, Journal, Plan, Story
from .locks import Locks, holder
from .places import Lost, Place, found_again
from .undo import Item, State, Undoing

WITH, QUIET, CAMPAIGN = "with", "quiet", "campaign"
"""Kinds of sessions that put back at their end what they changed."""


@dataclass
class Report:
    """What was, or would be, put back."""

    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is wrong with the journals themselves."""

    def having(self, *states: State) -> list[Item]:
        """Items in one of these states."""
        return [item for item in self.items if item.state in states]

    @property
    def complete(self) -> bool:
        """Whether all is as it was, as far as it is still there."""
        return not self.notes and not self.having(State.CONFLICT, State.FAILED, State.REPLACED, State.BUSY)

    def to_dict(self) -> dict[str, object]:
        """For --json."""
        return {"items": [item.to_dict() for item in self.items], "notes": self.notes, "complete": self.complete}


@dataclass
class _Kept:
    """A journal that nobody is writing."""

    journal: Journal
    story: Story


def restore(
    machine: Machine = HERE,
    files: Files | None = None,
    persisted: Mapping[str, str] | None = None,
    kinds: tuple[str, ...] | None = None,
) -> Report:
    """Put back everything that no running Spindle holds; `kinds`: only what sessions of these kinds left."""
    report = Report()
    files = files or Files()
    locks = Locks()
    with _kept(report, kinds) as kept:
        try:
            for boot, key in _groups(kept):
                _restore_group(boot, key, kept, report, locks, machine, files, persisted or {})
        finally:
            locks.release()
        for one in kept:
            if not one.story.open_changes and not one.story.unreadable:
                one.journal.discard()
            elif one.story.unreadable and not one.story.open_changes:
                # What could be read is done; the rest is reported once and not for ever.
                os.replace(one.journal.path, one.journal.path.with_suffix(".damaged"))
    return report


def pending(machine: Machine = HERE, files: Files | None = None, persisted: Mapping[str, str] | None = None) -> Report:
    """The same, only looked at."""
    report = Report()
    files = files or Files()
    with _kept(report) as kept:
        for boot, key in _groups(kept):
            changes = _changes(kept, boot, key)
            place = _place(changes, boot, machine)
            if isinstance(place, Place):
                report.items += _undoing(place, changes, kept, boot, key, files, persisted or {}).items()
            else:
                report.items += _lost(changes, place)
    return report


def interrupted(places: list[Place] | None = None) -> list[str]:
    """Lines about sessions that were to put back what they changed, and were killed before: at these places, or
    anywhere."""
    report = Report()
    lines = []
    with _kept(report) as kept:
        for one in kept:
            labels = {change.key: str(change.place.get("label")) for change in one.story.open_changes}
            wanted = {place.key: place.label for place in places} if places is not None else labels
            if one.story.kind in (WITH, QUIET, CAMPAIGN) and one.story.boot == boot_id():
                lines += [
                    f"{label}: `{one.story.command}` was killed and its changes are still in force; "
                    "`spindle restore` puts them back"
                    for key, label in wanted.items()
                    if key in labels
                ]
    return list(dict.fromkeys(lines))


@contextmanager
def _kept(report: Report, kinds: tuple[str, ...] | None = None) -> Iterator[list[_Kept]]:
    """The journals whose makers have ended, oldest first; those of some kinds of session if they are named."""
    found: list[_Kept] = []
    with journal.looking():
        try:
            _adopt(report, found, kinds)
            yield found
        finally:
            for one in found:
                one.journal.keep()


def _adopt(report: Report, found: list[_Kept], kinds: tuple[str, ...] | None) -> None:
    for path in journal.paths():
        adopted = Journal.adopt(path)
        if adopted is None:
            report.items += _running(path)
            continue
        try:
            story = adopted.story()
        except (OSError, journal.Unknown) as error:
            said = reason(error) if isinstance(error, OSError) else str(error)
            report.notes.append(f"{path}: this journal cannot be read ({said}); left as it is")
            adopted.keep()
            continue
        if story is None:
            adopted.discard()  # its maker died before it changed anything
        elif kinds is not None and story.kind not in kinds:
            adopted.keep()
        elif story.host != os.uname().nodename and story.boot != boot_id():
            report.notes.append(f"{path}: the changes of another machine ({story.host}); left alone")
            adopted.keep()
        else:
            if story.unreadable:
                report.notes.append(
                    f"{path}: {story.unreadable} damaged line(s); what they changed is not known, "
                    "the rest is taken from it"
                )
            found.append(_Kept(adopted, story))


def _groups(kept: list[_Kept]) -> list[tuple[str, str]]:
    """(boot, place), the latest change first: undone in reverse."""
    rows = [(one.story.boot, change.key) for one in kept for change in one.story.open_changes]
    return list(dict.fromkeys(reversed(rows)))


def _changes(kept: list[_Kept], boot: str, key: str) -> list[Change]:
    found: list[Change] = []
    plans: list[Plan] = []
    for one in kept:
        if one.story.boot == boot:
            rows = [change for change in one.story.open_changes if change.key == key]
            for change in rows:
                change.plans = tuple(plans)
            found += rows
            plans += one.story.plans.get(key, [])
    return found


def _place(changes: list[Change], boot: str, machine: Machine) -> Place | Lost:
    try:
        return found_again(changes[-1].place, boot == boot_id(), machine)
    except (ValueError, KeyError, TypeError):
        return Lost.GONE


def _undoing(
    place: Place,
    changes: list[Change],
    kept: list[_Kept],
    boot: str,
    key: str,
    files: Files,
    persisted: Mapping[str, str],
) -> Undoing:
    return Undoing(
        place, changes, files, plans=_plans(kept, boot, key), rebooted=boot != boot_id(), persisted=persisted
    )


def _plans(kept: list[_Kept], boot: str, key: str) -> list[Plan]:
    """Of the undos that were killed, as far as no later change has come over them; the latest last."""
    plans: list[Plan] = []
    for one in kept:
        if one.story.boot != boot or key in one.story.undone:
            continue
        changed = {name for change in one.story.open_changes if change.key == key for name in change.before}
        plans = [
            Plan({name: plan.values[name] for name in plan.values.keys() - changed}, plan.foreign - changed)
            for plan in plans
        ]
        plans += one.story.plans.get(key, [])
    return plans


def _restore_group(
    boot: str,
    key: str,
    kept: list[_Kept],
    report: Report,
    locks: Locks,
    machine: Machine,
    files: Files,
    persisted: Mapping[str, str],
) -> None:
    changes = _changes(kept, boot, key)
    place = _place(changes, boot, machine)
    if isinstance(place, Lost):
        report.items += _lost(changes, place)
    else:
        if not locks.try_one(place.lock):
            report.items += _busy(place, changes)
            return
        undoing = _undoing(place, changes, kept, boot, key, files, persisted)
        newest = next(one for one in reversed(kept) if one.story.boot == boot and changes[-1] in one.story.changes)
        newest.journal.plan(key, undoing.plan)
        done = undoing.put_back()
        report.items += done
        if any(item.state is State.FAILED for item in done):
            return
    for one in kept:
        if one.story.boot == boot and any(change.key == key for change in one.story.changes):
            one.journal.undone(key)
            one.story.undone.add(key)


def _running(path: Path) -> list[Item]:
    """What a session that goes on holds."""
    try:
        story = journal.read(path)
    except (OSError, journal.Unknown):
        return []
    if story is None:
        return []
    why = f": `{story.command}`"
    return [
        Item(f"{_label(rows)}.{name}", start, left, None, State.BUSY, why)
        for key in dict.fromkeys(change.key for change in story.open_changes)
        if (rows := [change for change in story.open_changes if change.key == key])
        for name, start, left in _asked_for(rows)
    ]


def _asked_for(changes: list[Change]) -> Iterator[tuple[str, str | None, str | None]]:
    """(knob, start, as Spindle left it)."""
    starts: dict[str, str | None] = {}
    lefts: dict[str, str | None] = {}
    for change in changes:
        starts.setdefault(change.knob, change.before.get(change.knob))
        lefts[change.knob] = change.after.get(change.knob) if change.after is not None else None
    for name in reversed(starts):
        yield name, starts[name], lefts[name]


def _label(changes: list[Change]) -> str:
    return str(changes[-1].place.get("label"))


def _lost(changes: list[Change], lost: Lost) -> list[Item]:
    state = State.GONE if lost is Lost.GONE else State.REPLACED
    why = ", with its device" if lost is Lost.GONE else ""
    return [
        Item(f"{_label(changes)}.{name}", start, left, None, state, why) for name, start, left in _asked_for(changes)
    ]


def _busy(place: Place, changes: list[Change]) -> list[Item]:
    who = f" ({holder(place.lock)})"
    return [
        Item(place.address(knob), start, left, None, State.BUSY, who)
        for name, start, left in _asked_for(changes)
        if (knob := known(place.scope, name)) is not None
    ]
