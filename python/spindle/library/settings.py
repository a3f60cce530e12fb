"""`spindle.knobs`: settings of the kernel, changed for a while."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from spindle.host.devices import HERE, Machine
from spindle.host.signals import Stopped, unwinding, unwinding_here
from spindle.knobs import asking, persist
from spindle.knobs import command as commands
from spindle.knobs import profile as profiles
from spindle.knobs.catalogue import Knob, Scope
from spindle.knobs.errors import KnobRefusal, KnobUsage
from spindle.knobs.files import Files
from spindle.knobs.persist import BootFile
from spindle.knobs.places import KnobFolder, interrupts_of, named
from spindle.knobs.restore import Restoration, interrupted, pending
from spindle.knobs.session import IN_FORCE, ChangeResult, Session, Setting
from spindle.knobs.undo import Item, State
from spindle.library.arguments import public
from spindle.library.session import LOGGER

Say = Callable[[str], None]
At = tuple[KnobFolder, Knob]
"""A knob and its place."""
_STOPPED = 128
"""Added to the number of a signal, as in the shell."""


@public
@contextmanager
def knobs(
    *words: str, profile: str | None = None, strict: bool = False, **values: object
) -> Iterator[list[ChangeResult]]:
    """Change settings, all of them or none, and put them back at the end of the `with` block, however it ends.

    `words`: a device first, if one is meant, and settings as on the command line: `"sda", "vm.swappiness=10"`.
    `values`: settings of the device by their names, `scheduler="none", nr_requests=64`. `profile`: the settings of this
    profile too. `strict`: refuse if the kernel takes another value than was asked for. Yields each change with the
    value before and after. A journal makes `spindle restore` put back what a killed process left changed.

    Raises `spindle.Error`, then everything is as it was; at the end, if a value could not be put back.
    """
    given = (*words, *(f"{name}={value}" for name, value in values.items()))
    with changing(wanted_of(given, profile), strict, logging.getLogger(LOGGER).warning) as done:
        yield done


@contextmanager
def changing(
    settings: Sequence[Setting],
    strict: bool,
    say: Say,
    *,
    machine: Machine = HERE,
    files: Files | None = None,
) -> Iterator[list[ChangeResult]]:
    """The change, for the time of a `with` block; `say` receives remarks about it."""
    session = Session("with", machine, files)
    with unwinding_here(), session:
        yield changed(session, settings, strict, say)
    if failed := [str(item) for item in session.undone if item.state is State.FAILED]:
        raise KnobRefusal("; ".join(failed))


def wanted_of(words: Sequence[str], profile: str | None = None, machine: Machine = HERE) -> list[Setting]:
    """The settings of a profile, and those of words, which win. Raises `KnobUsage`."""
    device, rest = _split(words, machine)
    asked = asking.settings(device, rest, machine)
    if profile is not None:
        overruled = {one.address for one in asked}
        overruled |= {f"{one.place.label}.{one.knob.zero_of}" for one in asked if one.knob.zero_of}
        kept = profiles.settings(profiles.load(profile), device)
        asked = [one for one in kept if one.address not in overruled] + asked
    if not asked:
        raise KnobUsage("nothing to set; write KNOB=VALUE, for example read_ahead_kb=4096")
    return asked


def _split(words: Sequence[str], machine: Machine) -> tuple[KnobFolder | None, Sequence[str]]:
    """The device in front, if there is one, and the rest."""
    if words and "=" not in words[0]:
        return named(words[0], machine), words[1:]
    return None, words


def changed(session: Session, wanted: Sequence[Setting], strict: bool, say: Say) -> list[ChangeResult]:
    """Make the changes. `say` receives a line for each value that the kernel made another, and for each that a killed
    session left. Raises `KnobRefusal` or `KnobUsage`."""
    for line in interrupted(list({one.place.key: one.place for one in wanted}.values())):
        say(line)
    done = session.change(wanted)
    for one in done:
        if one.outcome not in IN_FORCE:
            if strict:
                raise KnobRefusal(f"{one}; everything is as it was")
            say(str(one))
        for line in one.surprises():
            say(line)
    return done


@dataclass
class Changes:
    """Changes that are done, those that were put back, and the exit status of the command that ran under them."""

    done: list[ChangeResult] = field(default_factory=list)
    undone: list[Item] = field(default_factory=list)
    status: int = 0
    """128 + the signal's number if a signal stopped it."""
    has_run: bool = False
    """The command came to its end."""

    @property
    def failed(self) -> bool:
        """Something could not be put back."""
        return any(item.state is State.FAILED for item in self.undone)


def kept(wanted: Sequence[Setting], strict: bool, say: Say) -> Changes:
    """Make changes that stay until `spindle.restore`, all of them or none. Raises as `changed`."""
    return _changes(Session("set"), wanted, strict, say, Session.keep)


def with_command(line: Sequence[str], wanted: Sequence[Setting], strict: bool, say: Say) -> Changes:
    """Make changes, run a command, and put everything back. Raises as `changed`; a missing command has the status that
    the shell has for it."""
    try:
        commands.check(line)
    except commands.CommandNotFound as error:
        say(str(error))
        return Changes(status=error.status)
    statuses: list[int] = []

    def run(_session: Session) -> None:
        sys.stdout.flush()
        statuses.append(commands.run(line))

    found = _changes(Session("with"), wanted, strict, say, run)
    return replace(found, status=found.status or statuses[0], has_run=not found.status)


def _changes(
    session: Session, wanted: Sequence[Setting], strict: bool, say: Say, then: Callable[[Session], None]
) -> Changes:
    """Make the changes of a session, which are undone at its end unless `then` keeps them."""
    from spindle.report.terminal.knobs import troubles

    found = Changes()
    try:
        with unwinding(), session:
            found.done = changed(session, wanted, strict, say)
            then(session)
    except Stopped as stopped:
        say(f"stopped by {stopped}; everything was restored")
        found.status = _STOPPED + stopped.signum
    finally:
        for line in troubles(session.undone):
            say(line)
    found.undone = session.undone
    return found


def places_of(target: str) -> list[KnobFolder]:
    """The place that a word names, and the interrupts of a device. Raises `KnobUsage`."""
    place = named(target)
    return [place, *(interrupts_of(place) if place.scope is Scope.DEVICE else [])]


def chosen(words: Sequence[str]) -> list[At]:
    """The knobs that words name: `sda`, `sda read_ahead_kb`, `vm.swappiness`. Raises `KnobUsage`."""
    device, rest = _device_of(words)
    if device is not None and not rest:
        return [(device, one) for one in device.knobs(Files())]
    found = [one for word in rest for one in asking.meant(device, word)]
    for place, one in found:
        if place.path(one) is None:
            raise KnobUsage(f"{place.address(one)}: {place.label} has no `{one.name}` now")
    return found


def _device_of(words: Sequence[str]) -> tuple[KnobFolder | None, Sequence[str]]:
    """The device in front, if the first word is not a knob, and the rest. Raises `KnobUsage`."""
    try:
        return named(words[0]), words[1:]
    except KnobUsage as no_device:
        try:
            asking.meant(None, words[0].partition("=")[0])
        except KnobUsage as no_knob:
            raise (no_device if "/" in words[0] or len(words) > 1 else no_knob) from None
        return None, words


def left_changed(device: str | None = None) -> Restoration:
    """The settings that Spindle changed (of a device) and has not put back. Raises `KnobUsage`."""
    place = named(device) if device is not None else None
    report = pending(persisted=persist.persisted())
    if place is not None:
        report.items = [item for item in report.items if item.knob.startswith(f"{place.label}.")]
    return report


def different(profile: str, device: str | None = None) -> list[tuple[str, str, str | None]]:
    """(knob, value in the profile, value now) where they differ. Raises `KnobUsage`."""
    place = named(device) if device is not None else None
    files = Files()
    rows = [
        (one.address, one.value, one.place.value(one.knob, files))
        for one in profiles.settings(profiles.load(profile), place)
    ]
    return [row for row in rows if row[1] != row[2]]


def saved_profile(name: str, words: Sequence[str], force: bool) -> Path:
    """Save a profile: the settings of words, `KNOB=VALUE`, or the values in force, `KNOB`, or all of a device. Return
    its file. Raises `KnobUsage`."""
    if "=" in words[0]:
        settings = _settings(None, words)
    else:
        device, rest = _device_of(words)
        settings = _settings(device, rest) if rest or device is None else _all_of(device)
    # Of a pair such as dirty_ratio and dirty_bytes only one is in force.
    in_force = [one for one in settings if one.value != "0" or one.knob.values.parse("0") is not None]
    return profiles.save(name, in_force, force)


def _all_of(device: KnobFolder) -> list[Setting]:
    files = Files()
    return [
        Setting(device, one, value) for one in device.knobs(files) if (value := device.value(one, files)) is not None
    ]


def _settings(device: KnobFolder | None, words: Sequence[str]) -> list[Setting]:
    files, found = Files(), list[Setting]()
    for word in words:
        if "=" in word:
            found += asking.settings(device, [word])
            continue
        for at, one in asking.meant(device, word):
            if (value := at.value(one, files)) is None:
                raise KnobUsage(f"{at.address(one)}: cannot be read here")
            found.append(Setting(at, one, value))
    return found


def profile_files() -> list[tuple[str, Path]]:
    """(name, file) of each profile."""
    return [(one, profiles.path_of(one)) for one in profiles.names()]


def profile_values(name: str) -> profiles.Values:
    """The values of a profile, by scope and knob. Raises `KnobUsage`."""
    return profiles.load(name)


def boot_files(wanted: Sequence[Setting], root: Path, tuned: bool) -> list[BootFile]:
    """The files that make settings persistent, not written yet; `tuned`: a profile of tuned as well."""
    return persist.drafts(wanted, root, tuned)


def write_boot_files(files: Sequence[BootFile], root: Path, is_confirmed: bool | None) -> None:
    """Write them. `is_confirmed`: None if nobody could be asked. Raises `KnobRefusal` unless it is True."""
    if is_confirmed is None:
        raise KnobRefusal(
            "there is no terminal to confirm these files; `yes=` confirms beforehand, nothing was written"
        )
    if not is_confirmed:
        raise KnobRefusal("nothing was written")
    persist.write(files, root)


def remove_boot_files(root: Path, device: str | None) -> list[Path]:
    """Remove what was made persistent (of a device). Return the files."""
    return persist.remove(root, device.removeprefix("/dev/") if device is not None else None)
