"""Quiets the machine for a measurement: pauses checks of arrays, turns swap off, runs the CPUs at full clock.

All changes go through the journal of `knobs`, so they are undone at the end, on an error and on a signal, and by
`spindle restore` after a kill or a crash. A change that is not possible, or not wise, is skipped with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from spindle.base.units import si_size
from spindle.host.devices import HERE, Device, Machine
from spindle.host.errors import TargetError
from spindle.host.memory import memory
from spindle.host.mounts import Swap, swaps
from spindle.knobs import swap
from spindle.knobs.catalogue import SWAP_AREA, SYNC_ACTION, knob
from spindle.knobs.files import Files
from spindle.knobs.places import KnobFolder, every_cpu, of_device, of_swap
from spindle.knobs.restore import QUIET
from spindle.knobs.session import Outcome, Session, Setting
from spindle.knobs.undo import Item, State
from spindle.result.record import QuietSetting

from .arrays import WORKING, action_of, arrays_of

REQUESTED = ("check", "repair")
"""Array activity that somebody asked for. All other activity restores redundancy of data, so it goes on."""
MARGIN_SHARE = 0.10
MARGIN_BYTES = 256 << 20
"""Memory that must stay free after swapped pages come back: a tenth of it, and at least this."""
IDLE, PERFORMANCE = "idle", "performance"
_BACK = (State.RESTORED, State.BACK, State.REBOOT)


@dataclass
class QuietLog:
    """The changes made, and notes on those skipped."""

    changes: list[QuietSetting] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def quieting(devices: Iterable[Device], machine: Machine = HERE, files: Files | None = None) -> Iterator[QuietLog]:
    """QuietLog the machine within the `with`. Afterwards `changes` says if each old value is in force again."""
    files = files or Files()
    found = QuietLog()
    session = Session(QUIET, machine, files)
    try:
        with session:
            for one in (*_arrays(found, devices, machine), *_swap(found, machine), *_clocks(files, machine)):
                _change(session, found, one)
            yield found
    finally:
        undone = {item.knob: item for item in session.undone}
        found.changes = [_outcome(change, undone.get(change.name)) for change in found.changes]


def _change(session: Session, found: QuietLog, wanted: Setting) -> None:
    """Make one change; a refusal becomes a note, and the next change is still tried."""
    try:
        made = session.change([wanted])
    except TargetError as error:
        found.notes.append(str(error).partition(";")[0])
    else:
        found.changes += [
            QuietSetting(name=one.knob, before=one.before, during=one.after)
            for one in made
            if one.outcome is not Outcome.UNCHANGED
        ]


def _arrays(found: QuietLog, devices: Iterable[Device], machine: Machine) -> Iterator[Setting]:
    """Write `idle`, not `frozen`: a frozen array would not use a spare when a drive fails, even after a kill -9."""
    for array in arrays_of(devices, machine):
        action = action_of(array)
        if action in REQUESTED:
            yield Setting(of_device(array), SYNC_ACTION, IDLE)
        elif action in WORKING:
            found.notes.append(
                f"{array.name}: its {action} goes on; a pause would leave the data without redundancy for longer"
            )


def _swap(found: QuietLog, machine: Machine) -> Iterator[Setting]:
    """The lowest priority first: areas come back in reverse, so those without a set priority keep their order."""
    areas = [one for one in swaps(machine) if _place(one, machine).path(SWAP_AREA) is not None]
    if not areas:
        return
    used = sum(one.used_bytes for one in areas)
    known = memory(machine)
    free = known.get("MemAvailable", 0) - max(MARGIN_BYTES, int(known.get("MemTotal", 0) * MARGIN_SHARE))
    if used > free:
        found.notes.append(
            f"swap stays on: {si_size(used)} are swapped, but only {si_size(max(free, 0))} of memory are free for it"
        )
        return
    for one in sorted(areas, key=lambda area: area.priority or 0):
        yield Setting(_place(one, machine), SWAP_AREA, swap.OFF)


def _place(one: Swap, machine: Machine) -> KnobFolder:
    return of_swap(Path(one.path), machine)


def _clocks(files: Files, machine: Machine) -> Iterator[Setting]:
    governor = knob("cpu.governor")
    for place in every_cpu(machine):
        offered = place.offered(governor, files)
        if place.value(governor, files) != PERFORMANCE and (not offered or PERFORMANCE in offered):
            yield Setting(place, governor, PERFORMANCE)


def _outcome(change: QuietSetting, item: Item | None) -> QuietSetting:
    if item is None:
        return replace(change, restored=False, reason="not checked")
    if item.state in _BACK:
        return replace(change, restored=True)
    return replace(change, restored=False, reason=item.why or f"{item.state}, it is {item.now} now")
