"""Having the machine quiet for the time of a measurement: checks of arrays paused, swap off, CPUs at full clock.

Everything goes through the journal of `knobs`, so that it is put back at the end, on an error and on a signal, and by
`spindle restore` after a kill or a crash. What cannot be done, or is better not done, is noted and left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .conditions.arrays import WORKING, action_of, arrays_of
from .devices import HERE, Device, Machine
from .errors import TargetError
from .knobs import swap
from .knobs.catalogue import SWAP_AREA, SYNC_ACTION, knob
from .knobs.files import Files
from .knobs.places import Place, every_cpu, of_device, of_swap
from .knobs.restore import QUIET
from .knobs.session import Outcome, Session, Setting
from .knobs.undo import Item, State
from .memory import memory
from .mounts import Swap, swaps
from .words import size

REQUESTED = ("check", "repair")
"""What an array does because somebody asked for it. The rest it does because data lack redundancy: that goes on."""
MARGIN_SHARE = 0.10
MARGIN_BYTES = 256 << 20
"""So much memory stays free when what is swapped comes back: a tenth of it, and at least this."""
IDLE, PERFORMANCE = "idle", "performance"
_BACK = (State.RESTORED, State.BACK, State.REBOOT)


@dataclass(frozen=True)
class Change:
    """Something that was changed, and what became of it."""

    name: str
    before: str | None
    during: str | None
    put_back: bool | None = None
    """None: not yet over."""
    why_not: str = ""


@dataclass
class Quiet:
    """What was changed, and what could not be."""

    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def quieting(devices: Iterable[Device], machine: Machine = HERE, files: Files | None = None) -> Iterator[Quiet]:
    """For the time of the `with`. What became of each change is in `changes` afterwards."""
    files = files or Files()
    found = Quiet()
    session = Session(QUIET, machine, files)
    try:
        with session:
            for one in (*_arrays(found, devices, machine), *_swap(found, machine), *_clocks(files, machine)):
                _change(session, found, one)
            yield found
    finally:
        undone = {item.knob: item for item in session.undone}
        found.changes = [_outcome(change, undone.get(change.name)) for change in found.changes]


def _change(session: Session, found: Quiet, wanted: Setting) -> None:
    """Each by itself: what one refuses, the next may still do."""
    try:
        made = session.change([wanted])
    except TargetError as error:
        found.notes.append(str(error).partition(";")[0])
    else:
        found.changes += [
            Change(one.knob, one.before, one.after) for one in made if one.outcome is not Outcome.UNCHANGED
        ]


def _arrays(found: Quiet, devices: Iterable[Device], machine: Machine) -> Iterator[Setting]:
    """`idle`, not `frozen`: a frozen array would not take up a spare when a drive fails, not even after a kill -9."""
    for array in arrays_of(devices, machine):
        action = action_of(array)
        if action in REQUESTED:
            yield Setting(of_device(array), SYNC_ACTION, IDLE)
        elif action in WORKING:
            found.notes.append(
                f"{array.name}: its {action} goes on, as pausing it would leave the data without redundancy for longer"
            )


def _swap(found: Quiet, machine: Machine) -> Iterator[Setting]:
    """The least wanted area first: they come back in reverse, so that those without a priority keep their order."""
    areas = [one for one in swaps(machine) if _place(one, machine).path(SWAP_AREA) is not None]
    if not areas:
        return
    used = sum(one.used_bytes for one in areas)
    told = memory(machine)
    free = told.get("MemAvailable", 0) - max(MARGIN_BYTES, int(told.get("MemTotal", 0) * MARGIN_SHARE))
    if used > free:
        found.notes.append(
            f"swap stays on: {size(used)} are swapped, and {size(max(free, 0))} of memory can be had for it"
        )
        return
    for one in sorted(areas, key=lambda area: area.priority or 0):
        yield Setting(_place(one, machine), SWAP_AREA, swap.OFF)


def _place(one: Swap, machine: Machine) -> Place:
    return of_swap(Path(one.path), machine)


def _clocks(files: Files, machine: Machine) -> Iterator[Setting]:
    governor = knob("cpu.governor")
    for place in every_cpu(machine):
        offered = place.offered(governor, files)
        if place.value(governor, files) != PERFORMANCE and (not offered or PERFORMANCE in offered):
            yield Setting(place, governor, PERFORMANCE)


def _outcome(change: Change, item: Item | None) -> Change:
    if item is None or item.state in _BACK:
        return Change(change.name, change.before, change.during, item is not None, "" if item else "not looked at")
    why = item.why or f"{item.state}, it is {item.now} now"
    return Change(change.name, change.before, change.during, False, why)
