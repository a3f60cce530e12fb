"""Profiles: values saved under a name, for any device. Each is a TOML file that people can read and edit."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from spindle.host.devices import HERE, Machine
from spindle.host.errors import TargetError, reason
from spindle.host.outputs import Kind, Output, begins
from spindle.host.trusted import read_chosen

from .asking import value_of
from .catalogue import Scope, known
from .errors import KnobUsage
from .places import KnobFolder, every_cpu, named
from .session import Setting

SECTIONS = (Scope.DEVICE, Scope.VM, Scope.RAID, Scope.CPU)
"""Scopes that a profile can contain. Interrupts have other numbers on every machine."""

_HEAD = "# spindle knobs profile apply"
KIND = Kind("a profile that Spindle saved", begins(f"{_HEAD} ".encode()))

Values = Mapping[Scope, Mapping[str, str]]


def folder() -> Path:
    """Folder of the profiles (XDG base directory specification)."""
    named_folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(named_folder) if os.path.isabs(named_folder) else Path.home() / ".config"
    return base / "spindle/profiles"


def names() -> list[str]:
    """Names of the saved profiles."""
    return sorted(path.stem for path in folder().glob("*.toml"))


def path_of(name: str) -> Path:
    """File of a profile."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise KnobUsage(f"{name!r} is not a name for a profile; use letters, digits, - and _")
    return folder() / f"{name}.toml"


def save(name: str, settings: Iterable[Setting], force: bool) -> Path:
    """Write the profile, all or nothing. Replaces one of that name if Spindle wrote it, or with `force`."""
    values: dict[Scope, dict[str, str]] = {}
    for one in settings:
        if one.place.scope not in SECTIONS:
            raise KnobUsage(f"{one}: interrupts have other numbers on every machine; a profile cannot contain them")
        values.setdefault(one.place.scope, {})[one.knob.name] = one.value
    path = path_of(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TargetError(f"{path}: the profile cannot be saved: {reason(error)}") from None
    Output(path, KIND, "profile", force).save(text(name, values).encode())
    return path


def text(name: str, values: Values) -> str:
    """The profile as TOML."""
    lines = [f"{_HEAD} {name} DEVICE"]
    for scope in SECTIONS:
        if scope in values:
            lines += ["", f"[{scope}]"]
            for knob, value in values[scope].items():
                key = knob if re.fullmatch(r"[A-Za-z0-9_-]+", knob) else json.dumps(knob)
                lines.append(f"{key} = {value if re.fullmatch('0|-?[1-9][0-9]*', value) else json.dumps(value)}")
    return "\n".join(lines) + "\n"


def load(name: str) -> Values:
    """Load a profile and check it against the catalogue. Raises KnobUsage; UntrustedFile where others could have
    written it."""
    path = path_of(name)
    try:
        data = tomllib.loads(read_chosen(path).decode())
    except FileNotFoundError:
        there = names()
        hint = f"there are {', '.join(there)}" if there else "`spindle knobs profile save` makes one"
        raise KnobUsage(f"no profile `{name}`; {hint}") from None
    except OSError as error:
        raise KnobUsage(f"{path}: {reason(error)}") from None
    except ValueError as error:
        raise KnobUsage(f"{path}: not TOML: {error}") from None
    found: dict[Scope, dict[str, str]] = {}
    for section, content in data.items():
        if section not in SECTIONS or not isinstance(content, dict):
            raise KnobUsage(
                f"{path}: no section [{section}]; a profile has {', '.join(f'[{one}]' for one in SECTIONS)}"
            )
        scope = Scope(section)
        for key, value in content.items():
            one = known(scope, key)
            if one is None:
                raise KnobUsage(f"{path}: no knob `{key}` in [{section}]; `spindle knobs list` shows them")
            found.setdefault(scope, {})[one.name] = value_of(one, str(value), f"{path}: {key}={value}")
    return found


def settings(values: Values, device: KnobFolder | None, machine: Machine = HERE) -> list[Setting]:
    """The profile's settings for a device (and the machine)."""
    if Scope.DEVICE in values and device is None:
        raise KnobUsage("the profile has settings of a device; name one")
    found = []
    for scope, knobs in values.items():
        for place in _places(scope, device, machine):
            for name, value in knobs.items():
                if (one := known(scope, name)) is not None:
                    found.append(Setting(place, one, value))
    return found


def _places(scope: Scope, device: KnobFolder | None, machine: Machine) -> Sequence[KnobFolder]:
    if scope is Scope.DEVICE:
        return [device] if device is not None else []
    if scope is Scope.CPU:
        return every_cpu(machine)
    return [named(scope, machine)]
