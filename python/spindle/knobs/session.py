"""A session: the changes of one call of Spindle, each journalled, made and verified; then undone, or kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from types import TracebackType

from spindle.base.plain import Plain
from spindle.host.devices import HERE, Machine, int_of, text_of
from spindle.host.errors import reason
from spindle.host.signals import held_back

from .catalogue import IOSCHED, SCHEDULER, TEMPORARY, Knob, known, may_move, movers_first
from .errors import KnobRefusal, KnobUsage
from .files import Files
from .journal import Change, Journal
from .locks import Locks
from .places import KnobFolder
from .undo import Item, Undo

_ROUNDS = 2
"""Limit for setting a moved value again; two knobs that move each other would never settle."""
_OF_MEMORY = 10
"""`min_free_kbytes` may take at most 1/10 of the memory: with much more the kernel kills programs to get it."""


@dataclass(frozen=True)
class Setting:
    """A requested value of a knob."""

    place: KnobFolder
    knob: Knob
    value: str

    @property
    def address(self) -> str:
        """'loop3.scheduler'."""
        return self.place.address(self.knob)

    def __str__(self) -> str:
        return f"{self.address}={self.value}"


class Outcome(StrEnum):
    """Reaction of the kernel to a change."""

    SET = "set"
    UNCHANGED = "unchanged"
    """It had this value already."""
    CLAMPED = "clamped"
    """The kernel chose another value."""
    MOVED = "moved"
    """The kernel took it, and reset it with another of the requested values."""


IN_FORCE = (Outcome.SET, Outcome.UNCHANGED)
"""The requested value is in force."""


@dataclass(frozen=True)
class SideEffect:
    """A value that nobody requested and that the kernel reset."""

    knob: str
    before: str | None
    after: str | None
    expected: bool
    """True if the catalogue lists this side effect."""

    def __str__(self) -> str:
        return f"{self.knob}: {self.before or '-'} -> {self.after or '-'}"


@dataclass(frozen=True)
class ChangeResult(Plain):
    """A change, read back."""

    knob: str
    before: str | None
    wanted: str
    after: str | None
    outcome: Outcome
    moved: tuple[SideEffect, ...] = ()
    """Values that the kernel reset with it, and that stay so; parameters of the elevator, which come and go, are left
    out."""

    def __str__(self) -> str:
        if self.outcome is Outcome.UNCHANGED:
            return f"{self.knob}: {self.after} already"
        if self.outcome is Outcome.CLAMPED:
            return f"{self.knob}: {self.before} -> {self.after}, not {self.wanted}: the kernel adjusted the value"
        if self.outcome is Outcome.MOVED:
            return (
                f"{self.knob}: {self.after} is in force, not {self.wanted}: the kernel reset it when another "
                "requested value was set"
            )
        return f"{self.knob}: {self.before} -> {self.after}"

    def surprises(self) -> list[str]:
        """Lines about side effects that the catalogue does not list."""
        return [
            f"{one}: the kernel changed it when {self.knob} was set; this version of spindle did not expect it "
            "(`spindle restore` undoes it too)"
            for one in self.moved
            if not one.expected
        ]


class Session:
    """At the end of `with`, everything is undone; a session that is kept leaves that to `spindle restore`."""

    def __init__(self, kind: str, machine: Machine = HERE, files: Files | None = None) -> None:
        self._kind, self._machine = kind, machine
        self._files = files or Files()
        self._locks = Locks()
        self._journal: Journal | None = None
        self._changes: list[Change] = []
        self._places: dict[str, KnobFolder] = {}
        self._kept = False
        self.undone: list[Item] = []

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with held_back():
            self.close(undo=not self._kept or error is not None)

    def keep(self) -> None:
        """Leave the changes in force until `spindle restore`."""
        self._kept = True

    # --- changing ---

    def change(
        self, settings: Sequence[Setting], on_made: Callable[[ChangeResult], None] | None = None
    ) -> list[ChangeResult]:
        """Make all changes, or raise and leave none."""
        wanted = movers_first(settings, lambda one: one.knob)
        _check_once(wanted)
        with held_back():  # a signal between taking a lock and recording it would leave the lock behind
            self._locks.take({one.place.lock: one.place.label for one in wanted})
        for one in wanted:
            self._check(one, wanted)
        first = [self._value(one) for one in wanted]
        done = []
        for at, one in enumerate(wanted):
            with held_back():
                made = _with_first(self._make(one, wanted[at + 1 :]), first[at])
            done.append(made)
            if on_made is not None:
                on_made(made)
        return self._looked_at_again(wanted, done)

    def _looked_at_again(self, wanted: Sequence[Setting], done: list[ChangeResult]) -> list[ChangeResult]:
        """Read all values once more: those that a later change moved are set again, or reported as not in force."""
        for _ in range(_ROUNDS):
            lost = [at for at, one in enumerate(wanted) if self._value(one) != done[at].after]
            if not lost:
                return done
            for at in lost:
                with held_back():
                    again = self._make(wanted[at])
                before = done[at].before
                done[at] = replace(again, before=before, moved=(*done[at].moved, *again.moved))
        return [
            made if (now := self._value(one)) == made.after else replace(made, after=now, outcome=Outcome.MOVED)
            for one, made in zip(wanted, done, strict=True)
        ]

    def _value(self, wanted: Setting) -> str | None:
        return wanted.place.value(wanted.knob, self._files)

    def _check(self, wanted: Setting, all_wanted: Sequence[Setting]) -> None:
        """Check everything that can be known before a change."""
        place, knob = wanted.place, wanted.knob
        path = place.path(knob)
        if path is None:
            coming = next((o.value for o in all_wanted if o.knob.name == SCHEDULER and o.place.key == place.key), None)
            if knob.name.startswith(IOSCHED) and coming in knob.schedulers:
                return
            raise KnobUsage(f"{wanted}: {self._missing(wanted, coming)}; nothing was changed")
        if not self._files.writable(path):
            raise KnobRefusal(f"{wanted}: {path} cannot be written to; {_rights(path)}, nothing was changed")
        if place.value(knob, self._files) is None:
            raise KnobRefusal(f"{wanted}: {path} cannot be read, so it could not be undone; nothing was changed")
        if knob.id == "vm.min_free_kbytes":
            _check_memory(wanted, self._machine)
        if knob.id == "discard_max_bytes":
            _check_discard(wanted, self._value(wanted) or "")

    def _missing(self, wanted: Setting, coming: str | None) -> str:
        place, knob = wanted.place, wanted.knob
        if knob.schedulers:
            current = next((one for one in place.knobs(self._files) if one.name == SCHEDULER), None)
            force = coming or (place.value(current, self._files) if current is not None else None) or "none"
            return (
                f"the scheduler `{force}` has no such parameter, {' and '.join(knob.schedulers)} "
                f"ha{'ve' if len(knob.schedulers) > 1 else 's'}; set scheduler={knob.schedulers[0]} along with it"
            )
        return f"{place.label} has no `{knob.name}` (kernels {knob.since} and later, where the device supports it)"

    def _make(self, wanted: Setting, still_to_come: Sequence[Setting] = ()) -> ChangeResult:
        place, knob = wanted.place, wanted.knob
        path = place.path(knob)
        before = self._snapshot(place, knob)
        found = before.get(knob.name)
        if path is None or found is None:
            raise KnobUsage(f"{wanted}: {self._missing(wanted, None)}; everything is as it was")
        if found == wanted.value:
            return ChangeResult(wanted.address, found, wanted.value, found, Outcome.UNCHANGED)
        if self._journal is None:
            self._journal = Journal.begin(self._kind)
        change = self._journal.intent(place, knob.name, wanted.value, before)
        self._changes.append(change)
        self._places[place.key] = place
        try:
            place.write(knob, wanted.value, self._files)
            trouble = None
        except OSError as error:
            trouble = reason(error)
        self._set_back(wanted, before, still_to_come)
        after = self._snapshot(place, knob, before)
        self._journal.made(change, after)
        now = after.get(knob.name)
        if trouble is not None or now == found:
            raise KnobRefusal(f"{wanted}: {self._refusal(wanted, trouble)}; everything is as it was")
        outcome = Outcome.SET if now == wanted.value else Outcome.CLAMPED
        if wanted.value == "-1" and knob.name == "wbt_lat_usec":
            outcome = Outcome.SET  # -1 asks for the default, whatever its value
        coming = {one.knob.name for one in still_to_come if one.place.key == place.key}
        return ChangeResult(wanted.address, found, wanted.value, now, outcome, _moved(wanted, before, after, coming))

    def _set_back(self, wanted: Setting, before: dict[str, str | None], still_to_come: Sequence[Setting]) -> None:
        """Restore values that the kernel reset as a side effect, unless a requested value follows. The intent covers
        it: an undo of a change with unknown outcome treats such values as moved."""
        place = wanted.place
        coming = {one.knob.name for one in still_to_come if one.place.key == place.key}
        for name in wanted.knob.disturbs:
            knob, value = known(place.scope, name), before.get(name)
            if (
                knob is not None
                and value is not None
                and name not in coming
                and place.value(knob, self._files) != value
            ):
                with suppress(OSError):  # then it is reported as moved
                    place.write(knob, value, self._files)

    def _refusal(self, wanted: Setting, trouble: str | None) -> str:
        offered = wanted.place.offered(wanted.knob, self._files)
        said = f"the kernel refuses it: {trouble}" if trouble is not None else "the kernel ignored it"
        return said + (f" (it offers {', '.join(offered)})" if offered and wanted.value not in offered else "")

    def _snapshot(
        self, place: KnobFolder, knob: Knob, earlier: dict[str, str | None] | None = None
    ) -> dict[str, str | None]:
        """Values of the knob and all others of its place, so that any side effect is seen and undone."""
        moved = [*place.knobs(self._files), *(one for one in TEMPORARY if one.id == knob.id)]
        found = {one.name: place.value(one, self._files) for one in moved}
        return {**dict.fromkeys(earlier or {}), **found}

    # --- undoing ---

    def close(self, undo: bool) -> None:
        """Undo the changes of this session, or leave that to the journal; then release the locks."""
        try:
            if self._journal is not None:
                self._end(self._journal, undo)
        finally:
            self._journal = None
            self._locks.release()

    def _end(self, journal: Journal, undo: bool) -> None:
        if not undo:
            journal.keep()
            return
        failed = False
        for key, place in reversed(self._places.items()):
            rows = [change for change in self._changes if change.key == key]
            undoing = Undo(place, rows, self._files)
            journal.plan(key, undoing.plan)
            done = undoing.put_back()
            self.undone += done
            if any(item.state == "failed" for item in done):
                failed = True
            else:
                journal.undone(key)
        if failed:
            journal.keep()  # `spindle restore` tries again
        else:
            journal.discard()


def _with_first(made: ChangeResult, first: str | None) -> ChangeResult:
    """The result with the value before the whole series, as an earlier change may have moved it. None: the knob came
    with one of them, as the parameters of a scheduler do."""
    if first is None:
        return made
    same = made.outcome is Outcome.SET and first == made.after == made.wanted
    return replace(made, before=first, outcome=Outcome.UNCHANGED if same else made.outcome)


def _check_once(wanted: Sequence[Setting]) -> None:
    seen: dict[str, Setting] = {}
    for one in wanted:
        other = seen.get(one.address) or (
            seen.get(f"{one.place.label}.{one.knob.zero_of}") if one.knob.zero_of is not None else None
        )
        if other is not None:
            raise KnobUsage(f"{other} and {one} exclude each other; give one of them")
        seen[one.address] = one


def _check_memory(wanted: Setting, machine: Machine) -> None:
    found = re.search(r"^MemTotal:\s+(\d+) kB$", text_of(machine.proc / "meminfo") or "", re.MULTILINE)
    if found and int(wanted.value) > int(found[1]) // _OF_MEMORY:
        raise KnobRefusal(
            f"{wanted}: more than a tenth of the memory ({int(found[1]) // _OF_MEMORY} KiB) would leave programs "
            "without; nothing was changed"
        )


def _check_discard(wanted: Setting, now: str) -> None:
    """Refuse a discard size that cannot be undone. The kernel takes multiples of the granularity, up to 32 bits; 0
    removes the granularity, and then it takes no value (queue_max_discard_sectors_store, block/blk-sysfs.c;
    blk_validate_limits, block/blk-settings.c)."""
    granularity = int_of(wanted.place.folder / "queue/discard_granularity") or 1
    if now != "0" and wanted.value == "0":
        raise KnobRefusal(
            f"{wanted}: could not be undone, as the kernel takes no other value after a 0 until the device is set up "
            f"again; nothing was changed, {granularity} is the smallest value that works"
        )
    if not now.isdecimal() or int(now) % granularity or int(now) >= 1 << 32:
        raise KnobRefusal(
            f"{wanted}: {now}, which is in force, could not be restored, as the kernel takes only multiples of "
            f"{granularity} below 4 GiB; nothing was changed"
        )


def _moved(
    wanted: Setting, before: dict[str, str | None], after: dict[str, str | None], coming: set[str]
) -> tuple[SideEffect, ...]:
    return tuple(
        SideEffect(f"{wanted.place.label}.{name}", value, after.get(name), may_move(wanted.knob, name))
        for name, value in before.items()
        if name not in coming | {wanted.knob.name}
        and after.get(name) != value
        and value is not None
        and name in after
        and not (wanted.knob.name == SCHEDULER and name.startswith(IOSCHED))
    )


def _rights(path: object) -> str:
    return "this kernel makes it read-only" if os.geteuid() == 0 else "try as root"
