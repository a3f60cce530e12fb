"""`spindle.knobs`: settings of the kernel, changed for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from spindle.host.devices import HERE, Machine
from spindle.host.signals import unwinding_here
from spindle.knobs import asking
from spindle.knobs import profile as profiles
from spindle.knobs.errors import KnobRefusal, KnobUsage
from spindle.knobs.files import Files
from spindle.knobs.places import KnobFolder, named
from spindle.knobs.restore import interrupted
from spindle.knobs.session import IN_FORCE, ChangeResult, Session, Setting
from spindle.knobs.undo import State
from spindle.library.arguments import public
from spindle.library.session import LOGGER


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
    say: Callable[[str], None],
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


def changed(
    session: Session, wanted: Sequence[Setting], strict: bool, say: Callable[[str], None]
) -> list[ChangeResult]:
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
