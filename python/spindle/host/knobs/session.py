"""A session: a row of changes by one call of Spindle, each journalled, made and verified; then undone, or kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import TracebackType

from ..devices import HERE, Machine, text_of
from ..errors import reason
from ..signals import held_back
from .catalogue import DEPTH, IOSCHED, PASSING, SCHEDULER, Knob, Scope
from .errors import KnobRefused, KnobUsage
from .files import Files
from .journal import Change, Journal
from .locks import Locks
from .places import Place
from .undo import Item, Undoing

_OF_MEMORY = 10
"""`min_free_kbytes` may take one part in so many of the memory: much more, and the kernel kills programs to get it."""


@dataclass(frozen=True)
class Setting:
    """What is wanted."""

    place: Place
    knob: Knob
    value: str

    @property
    def address(self) -> str:
        """'loop3.scheduler'."""
        return self.place.address(self.knob)

    def __str__(self) -> str:
        return f"{self.address}={self.value}"


class Outcome(StrEnum):
    """What the kernel made of it."""

    SET = "set"
    UNCHANGED = "unchanged"
    """It was so already."""
    CLAMPED = "clamped"
    """The kernel took another value."""


@dataclass(frozen=True)
class Made:
    """A change, read back."""

    knob: str
    before: str | None
    wanted: str
    after: str | None
    outcome: Outcome

    def to_dict(self) -> dict[str, object]:
        """For --json."""
        return asdict(self)

    def __str__(self) -> str:
        if self.outcome is Outcome.UNCHANGED:
            return f"{self.knob}: {self.after} already"
        if self.outcome is Outcome.CLAMPED:
            return f"{self.knob}: {self.before} -> {self.after}, not {self.wanted}: that is what the kernel made of it"
        return f"{self.knob}: {self.before} -> {self.after}"


def ordered(settings: Sequence[Setting]) -> list[Setting]:
    """The scheduler first, as it sets the others anew; then nr_requests, on which its parameters depend."""
    return sorted(settings, key=lambda one: {SCHEDULER: 0, DEPTH: 1}.get(one.knob.name, 2))


class Session:
    """`with` puts everything back at its end; one that is kept leaves that to `spindle restore`."""

    def __init__(self, kind: str, machine: Machine = HERE, files: Files | None = None) -> None:
        self._kind, self._machine = kind, machine
        self._files = files or Files()
        self._locks = Locks()
        self._journal: Journal | None = None
        self._changes: list[Change] = []
        self._places: dict[str, Place] = {}
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
        """What was changed stays until `spindle restore`."""
        self._kept = True

    # --- changing ---

    def change(self, settings: Sequence[Setting], on_made: Callable[[Made], None] | None = None) -> list[Made]:
        """All of it, or an error and nothing."""
        wanted = ordered(settings)
        _check_once(wanted)
        with held_back():  # nothing has a place to unwind to between taking a lock and knowing of it
            self._locks.take({one.place.lock: one.place.label for one in wanted})
        for one in wanted:
            self._check(one, wanted)
        done = []
        for one in wanted:
            with held_back():
                made = self._make(one)
            done.append(made)
            if on_made is not None:
                on_made(made)
        return done

    def _check(self, wanted: Setting, all_wanted: Sequence[Setting]) -> None:
        """What can be known before anything is changed."""
        place, knob = wanted.place, wanted.knob
        path = place.path(knob)
        if path is None:
            coming = next((o.value for o in all_wanted if o.knob.name == SCHEDULER and o.place.key == place.key), None)
            if knob.name.startswith(IOSCHED) and coming in knob.schedulers:
                return
            raise KnobUsage(f"{wanted}: {self._missing(wanted, coming)}; nothing was changed")
        if not self._files.writable(path):
            raise KnobRefused(f"{wanted}: {path} cannot be written to; {_rights(path)}, nothing was changed")
        if place.value(knob, self._files) is None:
            raise KnobRefused(f"{wanted}: {path} cannot be read, so it could not be put back; nothing was changed")
        if knob.id == "vm.min_free_kbytes":
            _check_memory(wanted, self._machine)

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

    def _make(self, wanted: Setting) -> Made:
        place, knob = wanted.place, wanted.knob
        path = place.path(knob)
        before = self._snapshot(place, knob)
        found = before.get(knob.name)
        if path is None or found is None:
            raise KnobUsage(f"{wanted}: {self._missing(wanted, None)}; everything is as it was")
        if found == wanted.value:
            return Made(wanted.address, found, wanted.value, found, Outcome.UNCHANGED)
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
        after = self._snapshot(place, knob, before)
        self._journal.made(change, after)
        now = after.get(knob.name)
        if trouble is not None or now == found:
            raise KnobRefused(f"{wanted}: {self._refusal(wanted, trouble)}; everything is as it was")
        outcome = Outcome.SET if now == wanted.value else Outcome.CLAMPED
        if wanted.value == "-1" and knob.name == "wbt_lat_usec":
            outcome = Outcome.SET  # -1 asks for the default, whatever that is
        return Made(wanted.address, found, wanted.value, now, outcome)

    def _refusal(self, wanted: Setting, trouble: str | None) -> str:
        offered = wanted.place.offered(wanted.knob, self._files)
        said = f"the kernel refuses it: {trouble}" if trouble is not None else "the kernel took no notice of it"
        return said + (f" (it offers {', '.join(offered)})" if offered and wanted.value not in offered else "")

    def _snapshot(
        self, place: Place, knob: Knob, earlier: dict[str, str | None] | None = None
    ) -> dict[str, str | None]:
        """The knob and all that the kernel may change along with it."""
        if knob.scope is Scope.DEVICE and knob.name == SCHEDULER:
            moved = place.knobs(self._files)
        else:
            names = {knob.name, *knob.disturbs}
            moved = [
                one for one in (*place.knobs(self._files), *PASSING) if one.name in names and one.scope is place.scope
            ]
        found = {one.name: place.value(one, self._files) for one in moved}
        return {**dict.fromkeys(earlier or {}), **found}

    # --- undoing ---

    def close(self, undo: bool) -> None:
        """Put back what this session changed, or leave it to the journal; then let go."""
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
            undoing = Undoing(place, rows, self._files)
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
        raise KnobRefused(
            f"{wanted}: more than a tenth of the memory ({int(found[1]) // _OF_MEMORY} KiB) would leave programs "
            "without; nothing was changed"
        )


def _rights(path: object) -> str:
    return "this kernel only shows it" if os.geteuid() == 0 else "try as root"
