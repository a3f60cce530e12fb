"""Sweep for side effects of knobs: writes every knob and compares all files of its group before and after.

Groups are a queue with its scheduler and its share of the page cache (bdi), and the virtual memory of the machine. Used
by the test beside it, and by `make knob-effects`, which writes the table in docs/reference/knobs.md. It makes and
removes its own devices, a loop and a zram device: the kernel keeps what was set for the next user.
Virtual memory is the machine's: values stay near those in force, each for a moment.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from spindle.host.devices import HERE
from spindle.host.settings import chosen
from spindle.host.signals import held_back, unwinding
from spindle.knobs.catalogue import IOSCHED, KNOBS, Knob, Scope, known, may_move
from spindle.knobs.errors import KnobRefusal
from spindle.knobs.files import Files
from spindle.knobs.places import KnobFolder, named
from spindle.knobs.session import Session, Setting

_LOOP_SET_FD, _LOOP_CLR_FD, _LOOP_ADD, _LOOP_REMOVE = 0x4C00, 0x4C01, 0x4C80, 0x4C81  # linux/loop.h
_FIRST_LOOP = 4000  # far from those that others find free
MIB = 1 << 20
MACHINE = "virtual memory"
"""The kind of what is no queue."""
GROUPS = {Scope.DEVICE: ("queue", "queue/iosched", "bdi"), Scope.VM: ("",)}
"""Where the files are that are looked at, in the folder of a place."""
ALIASES = ("bdi/read_ahead_kb", "bdi/min_bytes", "bdi/max_bytes")
"""Other names of the same value; the bytes follow the free memory besides."""
STARTS = ("as it comes", "all low", "all high")
"""How the other knobs are set before: some of them move others only beyond a threshold."""


@dataclass
class Effects:
    """The results of a sweep."""

    moved: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """(mover, moved) -> kinds of queues."""
    written: dict[str, set[str]] = field(default_factory=dict)
    """Knobs that took another value -> kinds of queues."""
    untaken: dict[str, set[str]] = field(default_factory=dict)
    """Knobs that took none."""
    faults: list[str] = field(default_factory=list)
    """Where a session did not leave the queue as it was, or moved what it should not."""

    def undeclared(self) -> list[str]:
        """Moves that the catalogue does not know."""
        return [
            f"{mover} moves {name} ({', '.join(sorted(kinds))})"
            for (mover, name), kinds in sorted(self.moved.items())
            if not may_move(_knob(mover), _plain(name))
        ]

    def unseen(self) -> list[str]:
        """Moves that the catalogue lists and that did not happen when the knobs were written."""
        there = self.written.keys() | self.untaken.keys()
        return [
            f"{mover} moves {pattern}"
            for mover in sorted(self.written)
            for pattern in (*_knob(mover).moves, *_knob(mover).disturbs)
            if any(_fits(name, pattern) for name in there)
            and not any(of == mover and _fits(name, pattern) for of, name in self.moved)
        ]

    def untried(self) -> list[str]:
        """Knobs of the catalogue whose file no device here has."""
        return [one.id for one in KNOBS if one.id not in self.written and one.id not in self.untaken]

    def refused(self) -> list[str]:
        """Knobs that exist here but took no other value."""
        return sorted(self.untaken.keys() - self.written.keys())


def _knob(name: str) -> Knob:
    """The knob with this name in the catalogue: 'nr_requests', 'vm.swappiness'."""
    scope, _, rest = name.rpartition(".")
    found = known(Scope(scope), rest) if scope else known(Scope.DEVICE, name)
    assert found is not None
    return found


def _plain(name: str) -> str:
    """The name without its scope, as the knobs of a scope refer to each other."""
    return name.rpartition(".")[2]


def _named(scope: Scope, name: str) -> str:
    return name if scope is Scope.DEVICE else f"{scope}.{name}"


def _fits(name: str, pattern: str) -> bool:
    plain = _plain(name)
    return plain.startswith(pattern[:-1]) if pattern.endswith("*") else plain == pattern


def table(effects: Effects) -> list[str]:
    """The table of docs/reference/knobs.md: moves in the catalogue, and the queues where they were seen."""
    lines = ["| knob | also changes | then | seen on |", "|---|---|---|---|"]
    for knob in KNOBS:
        for patterns, then in ((knob.moves, "stays, as it depends on the knob"), (knob.disturbs, "put back at once")):
            for pattern in patterns:
                seen = [at for (of, name), at in effects.moved.items() if of == knob.id and _fits(name, pattern)]
                kinds = {kind for at in seen for kind in at}
                moved = _named(knob.scope, pattern)
                lines.append(f"| `{knob.id}` | `{moved}` | {then} | {_queues(knob, kinds, effects)} |")
    return lines


def beside_the_table(effects: Effects) -> list[str]:
    """The results that are not in the table."""
    tried = sorted(effects.written)
    return [
        f"{len(tried)} knobs took other values here, with no side effects but those of the table: {_list(tried)}.",
        "",
        f"On this machine, but they took no other value: {_list(effects.refused())}.",
        "",
        f"Not tried (no such device here): {_list(effects.untried())}.",
    ]


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _queues(knob: Knob, kinds: set[str], effects: Effects) -> str:
    if not kinds:
        if knob.id in effects.written:
            return "not here"
        return "not here: no value was taken" if knob.id in effects.untaken else "not tried here: no such device"
    if kinds == {MACHINE}:
        return "this machine"
    every = {kind for of in effects.written.values() for kind in of} - {MACHINE}
    return (
        "all"
        if kinds == every
        else "; ".join(sorted(kinds))
        if len(kinds) < 5
        else f"{len(kinds)} of {len(every)} kinds of queue"
    )


# --- devices of one's own --------------------------------------------------------------------------------------------


@contextmanager
def undone() -> Iterator[ExitStack]:
    """A stack that is undone at the end; no signal cuts that short."""
    undo = ExitStack()
    try:
        yield undo
    finally:
        with held_back():
            undo.close()


@contextmanager
def own_loop(folder: Path) -> Iterator[str]:
    """A loop device that did not exist before and does not afterwards. Raises OSError where that cannot be."""
    image = folder / "swept"
    image.touch()
    os.truncate(image, 64 * MIB)
    with undone() as undo:
        with held_back():
            name = _made_loop(folder, image, undo)
        yield name


def _made_loop(folder: Path, image: Path, undo: ExitStack) -> str:
    control = os.open("/dev/loop-control", os.O_RDWR)
    undo.callback(os.close, control)
    number = _added(control)
    undo.callback(_removed, control, number)
    node = folder / f"loop{number}"
    os.mknod(node, 0o600 | 0o060000, os.makedev(*_numbers(f"loop{number}")))
    device, behind = os.open(node, os.O_RDWR), os.open(image, os.O_RDWR)
    undo.callback(os.close, device)
    undo.callback(os.close, behind)
    fcntl.ioctl(device, _LOOP_SET_FD, behind)
    undo.callback(fcntl.ioctl, device, _LOOP_CLR_FD, 0)
    return f"loop{number}"


def _added(control: int) -> int:
    for number in range(_FIRST_LOOP, _FIRST_LOOP + 100):
        with suppress(FileExistsError):
            return int(fcntl.ioctl(control, _LOOP_ADD, number))
    raise FileExistsError(f"/dev/loop{_FIRST_LOOP}")


def _removed(control: int, number: int) -> None:
    for _ in range(100):
        with suppress(BlockingIOError):  # udev may look at it
            fcntl.ioctl(control, _LOOP_REMOVE, number)
            return
        time.sleep(0.02)
    raise BlockingIOError(f"/dev/loop{number} stays: something holds it open")


def _numbers(name: str) -> tuple[int, int]:
    major, _, minor = Path(f"/sys/block/{name}/dev").read_text().strip().partition(":")
    return int(major), int(minor)


@contextmanager
def own_zram() -> Iterator[str]:
    """A zram device that did not exist before and does not afterwards."""
    with undone() as undo:
        with held_back():
            number = Path("/sys/class/zram-control/hot_add").read_text().strip()
            undo.callback(Path("/sys/class/zram-control/hot_remove").write_text, number)
        Path(f"/sys/block/zram{number}/disksize").write_text(str(64 * MIB))
        undo.callback(Path(f"/sys/block/zram{number}/reset").write_text, "1")
        yield f"zram{number}"


def swept(folder: Path, thorough: bool) -> Effects:
    """Sweep everything on this machine. SIGINT, SIGTERM and SIGHUP raise `Stopped`, with devices gone and values
    back."""
    effects = Effects()
    with unwinding():
        with own_loop(folder) as name:
            sweep_loop(name, effects, thorough)
        if Path("/sys/class/zram-control/hot_add").exists():
            with own_zram() as name:
                sweep_plain(name, "zram", effects, thorough)
        sweep_memory(effects, thorough)
    return effects


# --- the sweep -------------------------------------------------------------------------------------------------------


def sweep_loop(name: str, effects: Effects, thorough: bool) -> None:
    """Sweep a loop device with every scheduler, once as rotating and once as not."""
    place = named(name, HERE)
    for rotational in ("0", "1"):
        for scheduler in place.offered(_knob("scheduler"), Files()):
            for start in STARTS if thorough else (STARTS[int(rotational)],):
                _set(place, "scheduler", scheduler)
                _prepare(place, start)
                _set(place, "rotational", rotational)
                turns = "rotational" if rotational == "1" else "not rotational"
                sweep(place, f"loop, {turns}, {scheduler}", effects, thorough)


def sweep_plain(name: str, kind: str, effects: Effects, thorough: bool) -> None:
    """Sweep a device without schedulers."""
    place = named(name, HERE)
    for start in STARTS if thorough else STARTS[:1]:
        _prepare(place, start)
        sweep(place, kind, effects, thorough)


def sweep_memory(effects: Effects, thorough: bool) -> None:
    """Sweep virtual memory, with limits of dirty pages as shares of memory and as bytes."""
    place = named(Scope.VM, HERE)
    shares = {"dirty_background_ratio": "10", "dirty_ratio": "20"}
    sizes = {"dirty_background_bytes": str(256 * MIB), "dirty_bytes": str(512 * MIB)}
    with undone() as undo:
        undo.callback(_put_straight, place, files_of(place))
        for limits in (shares, sizes):
            for name, value in limits.items():
                _set(place, name, value)
            sweep(place, MACHINE, effects, thorough)


def sweep(place: KnobFolder, kind: str, effects: Effects, thorough: bool) -> None:
    """Sweep each knob from the current state, with a read-ahead that the kernel would raise."""
    files = Files()
    if place.scope is Scope.DEVICE:
        _set(place, "read_ahead_kb", "64")
    plain = not place.offered(_knob("scheduler"), files) or place.value(_knob("scheduler"), files) == "none"
    for knob in place.knobs(files):
        # What no elevator has a part in need not go through a session under each of them.
        in_session = thorough or plain or knob.name in ("scheduler", "discard_max_bytes") or IOSCHED in knob.name
        now = place.value(knob, files)
        if now is None or not _is_looked_at(place, knob):
            continue
        taken = 0
        for value in _others(place, knob, now):
            if thorough or taken < 2 or knob.name == "scheduler":
                taken += _one(
                    place,
                    Setting(place, knob, value),
                    kind,
                    effects,
                    through_session=thorough or (in_session and not taken),
                )
        (effects.written if taken else effects.untaken).setdefault(knob.id, set()).add(kind)


def _is_looked_at(place: KnobFolder, knob: Knob) -> bool:
    path = place.path(knob)
    return path is not None and str(path.parent.relative_to(place.folder)).replace(".", "") in GROUPS[place.scope]


def _others(place: KnobFolder, knob: Knob, now: str) -> list[str]:
    """Values to try: a lower one, a higher one, and others."""
    if offered := place.offered(knob, Files()):
        return [one for one in offered if one != now]
    if knob.values.kind == "choice":
        return [one for one in knob.values.range.split(", ") if one != now][:2]
    if not now.lstrip("-").isdecimal():
        return []
    number = int(now)
    if knob.scope is Scope.VM:  # the whole machine lives with it for a moment
        tries: tuple[int, ...] = (number // 2, number * 2, number + 1) if number else (1, 64 * MIB)
        return [str(one) for one in tries if one not in (0, number) and knob.values.parse(str(one)) is not None]
    if knob.name.startswith("bdi/"):  # a millionth that is a percent too is far from the others
        tries = (number // 2, 20_000, 500_000, number - 1, 64, 1)
        return [str(one) for one in dict.fromkeys(tries) if one != number and knob.values.parse(str(one)) is not None]
    tries = (number // 2, number * 2, number - 1, number + 1, 0, 1, 64, 4096)
    return [str(one) for one in dict.fromkeys(tries) if one != number and knob.values.parse(str(one)) is not None]


def _one(place: KnobFolder, wanted: Setting, kind: str, effects: Effects, *, through_session: bool) -> bool:
    """Try a value; True if the kernel took it. First through a session, which must leave everything as it was; then
    straight, to see what moves."""
    before = files_of(place)
    if through_session and not _in_session(place, wanted, kind, effects):
        return False
    moved = _moved(place, wanted, before)
    if moved is None:
        return False
    if moved and place.scope is not Scope.DEVICE:  # others set the machine too: what is true is seen again
        moved &= _moved(place, wanted, before) or set()
    for name in moved - {wanted.knob.name}:
        effects.moved.setdefault((wanted.knob.id, _named(place.scope, name)), set()).add(kind)
    return bool(moved)


def _moved(place: KnobFolder, wanted: Setting, before: dict[str, str]) -> set[str] | None:
    """Differences after one write, which is undone. None: it was refused."""
    try:
        place.write(wanted.knob, wanted.value, Files())
    except OSError:
        return None
    after = files_of(place)
    _put_straight(place, before)
    return _differences(before, after)


def _in_session(place: KnobFolder, wanted: Setting, kind: str, effects: Effects) -> bool:
    before = files_of(place)
    session = Session("with")
    taken = True
    try:
        with session:
            made = session.change([wanted])[0]
            moved = _differences(before, files_of(place))
            said = {wanted.knob.name, *(one.knob.partition(".")[2] for one in made.moved)}
            if wanted.knob.name == "scheduler":  # parameters of elevators are not listed one by one
                said |= {name for name in moved if name.startswith(IOSCHED)}
            effects.faults += [f"{kind}: {wanted} moved {name} and did not say so" for name in sorted(moved - said)]
            effects.faults += [f"{kind}: {line}" for line in made.surprises()]
    except KnobRefusal:
        taken = False
    after = files_of(place)
    effects.faults += [
        f"{kind}: after {wanted} {name} is {after.get(name)}, not {before.get(name)}"
        for name in sorted(_differences(before, after))
    ]
    return taken


def files_of(place: KnobFolder) -> dict[str, str]:
    """Every file of its groups, also those that can only be read, by the names that knobs have."""
    found = {}
    for group in GROUPS[place.scope]:
        prefix = group.removeprefix("queue").lstrip("/")
        with suppress(OSError), os.scandir(place.folder / group) as entries:
            for entry in entries:
                name = f"{prefix}/{entry.name}".lstrip("/")
                if entry.is_file() and name not in ALIASES:
                    with suppress(OSError, UnicodeDecodeError):
                        found[name] = chosen(Path(entry.path).read_text().strip())
    return found


def _differences(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _prepare(place: KnobFolder, start: str) -> None:
    """All numbers as low, or as high, as the kernel takes them from a few."""
    if start == "as it comes":
        return
    for knob in place.knobs(Files()):
        if knob.values.kind != "number" or knob.name == "discard_max_bytes":
            continue
        now = place.value(knob, Files()) or "0"
        tries = ("0", "1", "4", "64") if start == "all low" else (str(int(now) * 4), str(int(now) * 2))
        for value in tries:
            if knob.values.parse(value) is not None and _set(place, knob.name, value):
                break


def _put_straight(place: KnobFolder, before: dict[str, str]) -> None:
    for _ in range(3):
        wrong = {name for name in _differences(before, files_of(place)) if name in before}
        for name in sorted(wrong, key=lambda name: (name == "read_ahead_kb", name != "scheduler", name)):
            _set(place, name, before[name])
        if not wrong:
            return


def _set(place: KnobFolder, name: str, value: str) -> bool:
    is_queues = place.scope is Scope.DEVICE and not name.startswith("bdi/")
    try:
        Files().write(place.folder / ("queue" if is_queues else "") / name, value)
    except OSError:
        return False
    return True
