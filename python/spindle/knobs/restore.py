"""`spindle restore`: undoes changes of sessions that were kept, killed or cut short by a power loss."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from spindle.base.plain import Plain
from spindle.host.devices import HERE, Machine
from spindle.host.errors import reason
from spindle.host.register import boot_id
from spindle.host.trusted import UntrustedFile

from . import journal
from .catalogue import known
from .files import Files
from .journal import Change, History, Journal, Plan
from .locks import Locks, holder
from .places import KnobFolder, MissingReason, found_again
from .undo import Item, State, Undo, concerned

WITH, QUIET, CAMPAIGN = "with", "quiet", "campaign"
"""Kinds of sessions that undo their changes at their end."""


@dataclass
class Restoration(Plain):
    """The values that were, or would be, restored."""

    COMPUTED = ("complete",)

    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Problems with the journals themselves."""
    refused: list[str] = field(default_factory=list)
    """Journals that somebody else could have written; they are not carried out."""

    def having(self, *states: State) -> list[Item]:
        """Items in one of these states."""
        return [item for item in self.items if item.state in states]

    @property
    def is_refused(self) -> bool:
        """True if a running Spindle still uses some, or somebody else could have written a journal."""
        return bool(self.refused or self.having(State.BUSY))

    @property
    def complete(self) -> bool:
        """True if all values are restored, as far as their devices still exist."""
        troubles = (State.CONFLICT, State.FAILED, State.REPLACED, State.BUSY, State.UNKNOWN)
        return not self.notes and not self.refused and not self.having(*troubles)


@dataclass
class _ClosedJournal:
    """A journal whose maker has ended."""

    journal: Journal
    story: History


def restore(
    machine: Machine = HERE,
    files: Files | None = None,
    persisted: Mapping[str, str] | None = None,
    kinds: tuple[str, ...] | None = None,
) -> Restoration:
    """Undo everything that no running Spindle holds; `kinds`: only changes of sessions of these kinds."""
    report = Restoration()
    files = files or Files()
    locks = Locks()
    with _kept(report, kinds) as kept:
        try:
            for boot, key in _groups(kept):
                _restore_group(boot, key, kept, report, locks, machine, files, persisted or {})
        finally:
            locks.release()
        for one in kept:
            if one.story.open_changes or one.story.strange:
                continue
            if one.story.damaged:
                # The readable part is done; the rest is reported once, not at every call.
                os.replace(one.journal.path, one.journal.path.with_suffix(".damaged"))
            else:
                one.journal.discard()
    return report


def pending(
    machine: Machine = HERE, files: Files | None = None, persisted: Mapping[str, str] | None = None
) -> Restoration:
    """The result that `restore` would have; changes nothing."""
    report = Restoration()
    files = files or Files()
    with _kept(report) as kept:
        for boot, key in _groups(kept):
            changes = _changes(kept, boot, key)
            place = _place(changes, boot, machine)
            if isinstance(place, KnobFolder):
                undoing = _undoing(place, changes, kept, boot, key, files, persisted or {})
                report.items += [*undoing.items(), *_unknown(undoing, changes, _holding(kept, boot, key))]
            else:
                report.items += _lost(changes, place, _holding(kept, boot, key))
    return report


def interrupted(places: list[KnobFolder] | None = None) -> list[str]:
    """Lines about sessions that were killed before they could undo their changes: at these places, or anywhere."""
    report = Restoration()
    lines = []
    with _kept(report) as kept:
        for one in kept:
            labels = {change.key: str(change.place.get("label")) for change in one.story.open_changes}
            wanted = {place.key: place.label for place in places} if places is not None else labels
            if one.story.kind in (WITH, QUIET, CAMPAIGN) and one.story.boot == boot_id():
                lines += [
                    f"{label}: `{one.story.command}` was killed and its changes are still in force; "
                    "`spindle restore` undoes them"
                    for key, label in wanted.items()
                    if key in labels
                ]
    return list(dict.fromkeys(lines))


@contextmanager
def _kept(report: Restoration, kinds: tuple[str, ...] | None = None) -> Iterator[list[_ClosedJournal]]:
    """The journals whose makers have ended, oldest first; only those of some kinds of session, if named."""
    found: list[_ClosedJournal] = []
    with journal.looking():
        try:
            _adopt(report, found, kinds)
            yield found
        finally:
            for one in found:
                one.journal.keep()


def _adopt(report: Restoration, found: list[_ClosedJournal], kinds: tuple[str, ...] | None) -> None:
    for path in journal.paths():
        try:
            adopted = Journal.adopt(path)
        except UntrustedFile as error:
            report.refused.append(f"{error}; nothing of this journal of changes was carried out")
            continue
        except OSError as error:
            report.notes.append(f"{path}: this journal cannot be opened ({reason(error)}); left as it is")
            continue
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
            adopted.discard()  # its maker died before any change
        elif kinds is not None and story.kind not in kinds:
            adopted.keep()
        elif story.host != os.uname().nodename and story.boot != boot_id():
            report.notes.append(
                f"{path}: the changes of another machine ({story.host}); left alone: run `spindle restore` there, or "
                "remove it if that machine is no more"
            )
            adopted.keep()
        else:
            report.notes += _flaws(path, story)
            found.append(_ClosedJournal(adopted, story))


def _flaws(path: Path, story: History) -> Iterator[str]:
    if story.damaged:
        yield f"{path}: {story.damaged} damaged line(s); their changes are not known, the rest of the journal is used"
    if story.strange:
        yield (
            f"{path}: {story.strange} line(s) that this version of spindle does not understand; the rest is used, the "
            f"journal is kept: run `spindle restore` of the version that ran `{story.command}`, or remove it"
        )


def _groups(kept: list[_ClosedJournal]) -> list[tuple[str, str]]:
    """(boot, place), the latest change first, as changes are undone in reverse."""
    rows = [(one.story.boot, change.key) for one in kept for change in one.story.open_changes]
    return list(dict.fromkeys(reversed(rows)))


def _changes(kept: list[_ClosedJournal], boot: str, key: str) -> list[Change]:
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


def _place(changes: list[Change], boot: str, machine: Machine) -> KnobFolder | MissingReason:
    try:
        return found_again(changes[-1].place, boot == boot_id(), machine)
    except (ValueError, KeyError, TypeError):
        return MissingReason.UNKNOWN


def _undoing(
    place: KnobFolder,
    changes: list[Change],
    kept: list[_ClosedJournal],
    boot: str,
    key: str,
    files: Files,
    persisted: Mapping[str, str],
) -> Undo:
    return Undo(place, changes, files, plans=_plans(kept, boot, key), rebooted=boot != boot_id(), persisted=persisted)


def _plans(kept: list[_ClosedJournal], boot: str, key: str) -> list[Plan]:
    """Plans of killed undos that no later change has followed; the latest last."""
    plans: list[Plan] = []
    for one in kept:
        if one.story.boot != boot or key in one.story.undone:
            continue
        changed = {name for change in one.story.open_changes if change.key == key for name in concerned(change)}
        plans = [
            Plan({name: plan.values[name] for name in plan.values.keys() - changed}, plan.foreign - changed)
            for plan in plans
        ]
        plans += one.story.plans.get(key, [])
    return plans


def _restore_group(
    boot: str,
    key: str,
    kept: list[_ClosedJournal],
    report: Restoration,
    locks: Locks,
    machine: Machine,
    files: Files,
    persisted: Mapping[str, str],
) -> None:
    changes = _changes(kept, boot, key)
    place = _place(changes, boot, machine)
    left: frozenset[str] = frozenset()
    if isinstance(place, MissingReason):
        report.items += _lost(changes, place, _holding(kept, boot, key))
        if place is MissingReason.UNKNOWN:
            return
    else:
        if not locks.try_one(place.lock):
            report.items += _busy(place, changes)
            return
        undoing = _undoing(place, changes, kept, boot, key, files, persisted)
        _holding(kept, boot, key)[-1].journal.plan(key, undoing.plan)
        done = undoing.put_back()
        unknown = _unknown(undoing, changes, _holding(kept, boot, key))
        report.items += [*done, *unknown]
        if any(item.state is State.FAILED for item in done):
            return
        left = frozenset(undoing.unknown)
    for one in kept:
        if one.story.boot == boot and any(change.key == key for change in one.story.changes):
            one.journal.undone(key, left)
            one.story.undone[key] = left


def _holding(kept: list[_ClosedJournal], boot: str, key: str) -> list[_ClosedJournal]:
    """The journals with open changes of a place."""
    return [
        one for one in kept if one.story.boot == boot and any(change.key == key for change in one.story.open_changes)
    ]


def _unknown(undoing: Undo, changes: list[Change], holding: list[_ClosedJournal]) -> list[Item]:
    """Knobs of a newer version: they are reported, and the journal is kept for that version."""
    paths = [str(one.journal.path) for one in holding]
    found = []
    for name in undoing.unknown:
        rows = [change for change in changes if name in change.before]
        found.append(
            Item(
                f"{_label(rows)}.{name}",
                rows[0].before[name],
                rows[-1].after.get(name) if rows[-1].after is not None else None,
                None,
                State.UNKNOWN,
                ", ".join(paths),
            )
        )
    return found


def _running(path: Path) -> list[Item]:
    """Values that a running session holds."""
    try:
        story = journal.read(path)
    except (OSError, journal.Unknown, UntrustedFile):
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
    """(knob, value at the start, value that Spindle left)."""
    starts: dict[str, str | None] = {}
    lefts: dict[str, str | None] = {}
    for change in changes:
        starts.setdefault(change.knob, change.before.get(change.knob))
        lefts[change.knob] = change.after.get(change.knob) if change.after is not None else None
    for name in reversed(starts):
        yield name, starts[name], lefts[name]


def _label(changes: list[Change]) -> str:
    return str(changes[-1].place.get("label"))


def _lost(changes: list[Change], lost: MissingReason, holding: list[_ClosedJournal]) -> list[Item]:
    state, why = {
        MissingReason.GONE: (State.GONE, ", with its device"),
        MissingReason.REPLACED: (State.REPLACED, ""),
        MissingReason.UNKNOWN: (State.UNKNOWN, ", ".join(str(one.journal.path) for one in holding)),
    }[lost]
    return [
        Item(f"{_label(changes)}.{name}", start, left, None, state, why) for name, start, left in _asked_for(changes)
    ]


def _busy(place: KnobFolder, changes: list[Change]) -> list[Item]:
    who = f" ({holder(place.lock)})"
    return [
        Item(place.address(knob), start, left, None, State.BUSY, who)
        for name, start, left in _asked_for(changes)
        if (knob := known(place.scope, name)) is not None
    ]
