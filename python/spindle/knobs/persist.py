"""Settings that are applied at every boot: a udev rule for each device, a sysctl.d file, and optionally a tuned
profile.

The head of each file says that Spindle wrote it, what it sets, and which folders were made for it. So removing it
leaves no trace and touches nothing of anybody else's. Files are written below a root, so an image can be prepared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spindle.base.commands import given, shell
from spindle.host.devices import HERE, Machine, by_name, text_of, world_wide_name
from spindle.host.durably import write_whole
from spindle.host.errors import TargetError, reason

from .catalogue import Knob, Scope, known, movers_first
from .errors import KnobRefusal, KnobUsage
from .places import KnobFolder
from .session import Setting

_REMOVES = shell("spindle", "knobs", "persist", *given(remove=True))
MARK = f"# Written by `spindle knobs persist`; `{_REMOVES}` takes it away again."
_SETS, _MADE = "# sets: ", "# folders made: "
_RULES, _SYSCTL, _TUNED = "etc/udev/rules.d", "etc/sysctl.d/90-spindle.conf", "etc/tuned"
_LATE = ("loop", "md", "dm")
"""Kinds of devices that are set up after they appear: their queue is ready with the `change` event."""


@dataclass(frozen=True)
class BootFile:
    """A boot file to be written."""

    kind: Literal["udev", "sysctl", "tuned"]
    path: Path
    body: str
    sets: Mapping[str, str]

    def text(self, made: Iterable[str]) -> str:
        """Its text with the head."""
        head = [MARK, _SETS + json.dumps(dict(self.sets)), *([_MADE + json.dumps(list(made))] if made else [])]
        return "\n".join(head) + "\n" + self.body


def drafts(settings: Sequence[Setting], root: Path, tuned: bool = False, machine: Machine = HERE) -> list[BootFile]:
    """The files that apply these settings at boot, together with those persisted before. Writes nothing."""
    wanted = movers_first(settings, lambda one: one.knob)
    for one in wanted:
        if one.place.scope is Scope.IRQ:
            raise KnobUsage(f"{one}: interrupts get other numbers at every boot; use irqbalance for them")
        if one.place.scope is Scope.CPU and not tuned:
            raise KnobUsage(f"{one}: only a tuned profile can set it at boot; add `tuned=`")
        if one.place.path(one.knob) is None:
            raise KnobUsage(f"{one}: {one.place.label} has no `{one.knob.name}`")
    found = []
    places = {one.place.label: one.place for one in wanted if one.place.scope is Scope.DEVICE}
    for place in places.values():
        rules = [one for one in wanted if one.place.label == place.label]
        found.append(_rule(place, rules, root, machine))
    if sysctls := [one for one in wanted if one.place.scope in (Scope.VM, Scope.RAID)]:
        found.append(_sysctl(sysctls, root))
    if tuned:
        found.append(_tuned(wanted, root))
    for draft in found:
        if draft.path.exists() and _head(draft.path) is None:
            raise KnobRefusal(f"{draft.path} is there and not from spindle; nothing was written, move it away first")
    return found


def _merged(path: Path, wanted: Sequence[Setting]) -> dict[str, str]:
    sets = dict((_head(path) or ({}, []))[0])
    for one in wanted:
        if one.knob.zero_of is not None:
            sets.pop(f"{one.place.label}.{one.knob.zero_of}", None)
        sets[one.address] = one.value
    return dict(movers_first(sets.items(), lambda item: _knob_at(item[0])))


def _knob_at(address: str) -> Knob | None:
    label, _, name = address.partition(".")
    found = re.fullmatch(r"(vm|raid|cpu)[0-9]*", label)
    return known(Scope(found[1]) if found else Scope.DEVICE, name)


def _rule(place: KnobFolder, wanted: Sequence[Setting], root: Path, machine: Machine) -> BootFile:
    path = root / _RULES / f"61-spindle-{re.sub(r'[^A-Za-z0-9_-]', '_', place.label)}.rules"
    sets = _merged(path, wanted)
    match, comment = _match(place, machine)
    device = by_name(place.label, machine)
    late = device is not None and device.kind in _LATE
    parts = [f'ACTION=="{"add|change" if late else "add"}"', 'SUBSYSTEM=="block"', 'ENV{DEVTYPE}=="disk"', match]
    for address, value in sets.items():
        parts.append(f'ATTR{{{_attribute(place, address)}}}="{value}"')
    return BootFile("udev", path, f"# {comment}\n{', '.join(parts)}\n", sets)


def _attribute(place: KnobFolder, address: str) -> str:
    one = known(Scope.DEVICE, address.removeprefix(f"{place.label}."))
    if one is None:
        raise KnobUsage(f"{address}: not in the catalogue")
    return next((where for where in one.where if "*" not in where and (place.folder / where).exists()), one.where[0])


def _match(place: KnobFolder, machine: Machine) -> tuple[str, str]:
    """The udev match for a device: by an attribute that never changes, where there is one."""
    device = by_name(place.label, machine)
    for attribute in ("device/wwid", "wwid", "serial", "device/serial", "dm/uuid", "md/uuid"):
        text = (text_of(place.folder / attribute) or "").rstrip()
        usual = device is None or attribute not in ("serial", "device/serial") or not world_wide_name(device)
        if text and usual and re.fullmatch(r"[A-Za-z0-9 _.:+/-]+", text):
            return f'ATTR{{{attribute}}}=="{text}"', f"{place.label} today, known by {attribute} whatever its name"
    return f'KERNEL=="{place.label.replace("!", "/")}"', f"{place.label}, by its name: it has no serial number"


def _sysctl(wanted: Sequence[Setting], root: Path) -> BootFile:
    path = root / _SYSCTL
    sets = _merged(path, wanted)
    lines = [f"{_sysctl_name(address)} = {value}" for address, value in sets.items()]
    return BootFile("sysctl", path, "\n".join(lines) + "\n", sets)


def _sysctl_name(address: str) -> str:
    return f"dev.{address}" if address.startswith("raid.") else address


def _tuned(wanted: Sequence[Setting], root: Path) -> BootFile:
    base = root / _TUNED
    # Since 2.23 profiles have a folder of their own; before, they were beside the daemon's configuration.
    path = (base / "profiles" if (base / "profiles").is_dir() else base) / "spindle/tuned.conf"
    sets = _merged(path, wanted)
    files = {one.address: one for one in wanted}
    active = (text_of(base / "active_profile") or "").split()
    lines = ["[main]", "summary=Settings chosen with spindle"]
    if active and active != ["spindle"]:
        lines.append(f"include={active[0]}")
    sections: dict[str, list[str]] = {"cpu": [], "sysctl": [], "sysfs": []}
    for address, value in sets.items():
        label, _, name = address.partition(".")
        if label in ("vm", "raid"):
            sections["sysctl"].append(f"{_sysctl_name(address)}={value}")
        elif re.fullmatch(r"cpu[0-9]+", label):
            option = "governor" if name == "governor" else "energy_performance_preference"
            if f"{option}={value}" not in sections["cpu"]:
                sections["cpu"].append(f"{option}={value}")
        else:
            one = files.get(address)
            relative = _attribute(one.place, address) if one is not None else f"queue/{name}"
            sections["sysfs"].append(f"/sys/block/{label}/{relative}={value}")
    for section, options in sections.items():
        if options:
            lines += ["", f"[{section}]", *options]
    return BootFile("tuned", path, "\n".join(lines) + "\n", sets)


# --- files -----------------------------------------------------------------------------------------------------------


def write(files: Sequence[BootFile], root: Path) -> None:
    """Write each file completely or not at all."""
    for draft in files:
        earlier = [one for path in written(root) for one in (_head(path) or ({}, []))[1]]
        try:
            made = _make_folders(draft.path.parent, root)
            # The last of our files in a folder removes the folder, whichever file it is.
            made += [one for one in earlier if draft.path.is_relative_to(root / one) and one not in made]
            write_whole(draft.path, draft.text(made).encode())
        except OSError as error:
            raise TargetError(f"{draft.path}: cannot be written: {reason(error)}") from None


def _make_folders(folder: Path, root: Path) -> list[str]:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [str(one.relative_to(root)) for one in missing if one.is_relative_to(root) and one != root]


def written(root: Path) -> list[Path]:
    """The files of Spindle below a root."""
    places = [
        *sorted((root / _RULES).glob("61-spindle-*.rules")),
        root / _SYSCTL,
        root / _TUNED / "spindle/tuned.conf",
        root / _TUNED / "profiles/spindle/tuned.conf",
    ]
    return [path for path in places if path.is_file() and _head(path) is not None]


def remove(root: Path, only: str | None = None) -> list[Path]:
    """Remove them (of one device, if named), and the folders that were made for them."""
    gone = []
    folders: list[str] = []
    for path in written(root):
        if only is not None and path.name != f"61-spindle-{re.sub(r'[^A-Za-z0-9_-]', '_', only)}.rules":
            continue
        head = _head(path)
        try:
            path.unlink()
        except OSError as error:
            raise TargetError(f"{path}: cannot be removed: {reason(error)}") from None
        gone.append(path)
        folders += head[1] if head is not None else []
    for folder in sorted(set(folders), key=len, reverse=True):
        place = root / folder
        if not folder.startswith("/") and ".." not in Path(folder).parts:
            try:
                place.rmdir()
            except OSError:
                continue  # somebody else's file is in it
    return gone


def persisted(root: Path = Path("/")) -> dict[str, str]:
    """The settings of these files: 'loop3.scheduler' -> value."""
    found: dict[str, str] = {}
    for path in written(root):
        head = _head(path)
        found.update(head[0] if head is not None else {})
    return found


def _head(path: Path) -> tuple[dict[str, str], list[str]] | None:
    """(its settings, folders made for it); None: not written by Spindle."""
    lines = (text_of(path) or "").split("\n")[:3]
    if not lines or lines[0] != MARK:
        return None
    sets: dict[str, str] = {}
    made: list[str] = []
    try:
        for line in lines[1:]:
            if line.startswith(_SETS):
                sets = {str(key): str(value) for key, value in json.loads(line.removeprefix(_SETS)).items()}
            elif line.startswith(_MADE):
                made = [str(one) for one in json.loads(line.removeprefix(_MADE))]
    except (ValueError, AttributeError, TypeError):
        return {}, []
    return sets, made
