"""Selection of the devices to watch: names as people write them, or every disk that ever did I/O."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spindle.host.devices import HERE, DevNumber, Machine, all_devices, by_name
from spindle.host.errors import TargetError, reason
from spindle.host.stack import device_of

from .disks import UNREADABLE, Disk, folder, number_in


class UnknownDevice(TargetError):
    """The name does not lead to a block device."""

    exit_code = 2


@dataclass(frozen=True)
class _GivenName:
    """A name as given. A kernel's name stays itself; a path is looked up again each time, as a link may change."""

    name: str
    path: str | None


class Selection:
    """The devices to watch. Without names: all whole disks with a size that ever did I/O."""

    def __init__(self, given: Sequence[str] = (), machine: Machine = HERE) -> None:
        self.machine = machine
        self._given = [_resolve(name, machine) for name in given]
        self.aliases = {
            found.name: name
            for name, found in zip(given, self._given, strict=True)
            if name.removeprefix("/dev/") != found.name
        }
        """Kernel's name -> the given name, where it differs."""

    def pick(self, found: Mapping[str, Disk]) -> dict[str, Disk]:
        """The watched devices among all that the kernel counts, in the order they were given."""
        if not self._given:
            return {name: disk for name, disk in found.items() if self._listed(name, disk)}
        names = dict.fromkeys(self._name_now(given) for given in self._given)
        there = {name: self._reading(name, found) for name in names}
        return {name: disk for name, disk in there.items() if disk is not None}

    def _listed(self, name: str, disk: Disk) -> bool:
        if not disk.ever_used:
            return False
        if not os.path.isdir(self.machine.sys / "class/block"):
            return disk.counters is not None
        place = folder(name, self.machine)
        # Empty card readers and loop devices without a file have no size; they are skipped until they get one.
        return os.path.isdir(place) and not os.path.exists(place / "partition") and number_in(place / "size") != 0

    def _name_now(self, given: _GivenName) -> str:
        if given.path is None:
            return given.name
        try:
            number = os.stat(given.path).st_rdev
        except OSError:
            return given.name
        return _name_of(DevNumber.of(number), self.machine) or given.name

    def _reading(self, name: str, found: Mapping[str, Disk]) -> Disk | None:
        """Unreadable if the device exists but its line is missing; None if neither exists."""
        if name in found:
            return found[name]
        return UNREADABLE if os.path.isdir(folder(name, self.machine)) else None


def _resolve(name: str, machine: Machine) -> _GivenName:
    """Resolve a kernel's name, a device node or link under any path, a device-mapper or md name, a name in
    /dev/disk/by-*, or a file or directory, which stands for its device."""
    known = _by_name(name, machine) if "/" not in name else None
    here = known is not None and os.path.lexists(name)  # a file of this name here comes before a device, as everywhere
    if known is not None and not here:
        return _GivenName(known, None)
    for path in [name] if here else _paths(name, machine):
        try:
            found = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UnknownDevice(f"{name}: {reason(error)}") from None
        except ValueError:
            break
        if stat.S_ISBLK(found.st_mode) and (known := _name_of(DevNumber.of(found.st_rdev), machine)):
            return _GivenName(known, path)
        if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
            below = device_of(path, machine)
            if below is None:
                raise UnknownDevice(f"{name}: it is on no block device; name a device, or none to watch all")
            return _GivenName(below.name.replace("!", "/"), None)
        raise UnknownDevice(f"{name}: not a block device; name one, or none to watch all disks")
    if (labelled := _by_label(name, machine)) is not None:
        return _GivenName(labelled, None)
    raise UnknownDevice(_nobody(name, machine))


def _paths(name: str, machine: Machine) -> Iterable[str]:
    if "/" in name:
        yield name
    yield str(machine.dev / name)
    for folder_name in sorted(_names(machine.dev / "disk")):
        yield str(machine.dev / "disk" / folder_name / name)
    yield str(machine.dev / "mapper" / name)
    yield str(machine.dev / "md" / name)
    if "/" not in name:
        yield name


def _by_name(name: str, machine: Machine) -> str | None:
    try:
        device = by_name(name, machine)
    except (ValueError, OSError):
        return None
    return device.name.replace("!", "/") if device is not None and device.name == name else None


def _by_label(name: str, machine: Machine) -> str | None:
    try:
        return next((device.name for device in all_devices(machine) if device.label == name), None)
    except (ValueError, OSError):
        return None


def _name_of(number: DevNumber, machine: Machine) -> str | None:
    place = machine.sys / "dev/block" / str(number)
    return os.path.basename(os.path.realpath(place)).replace("!", "/") if os.path.exists(place) else None


def _nobody(name: str, machine: Machine) -> str:
    there = _names(machine.sys / "class/block")
    near = difflib.get_close_matches(name.removeprefix("/dev/"), there, n=1)
    hint = f"did you mean {near[0]}?" if near else "`ls /sys/class/block` lists them"
    return f"no block device {name!r}; {hint}"


def _names(place: os.PathLike[str]) -> list[str]:
    try:
        return os.listdir(place)
    except OSError:
        return []
