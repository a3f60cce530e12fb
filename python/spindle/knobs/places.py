"""Places that have knobs: a device, virtual memory, a CPU's frequency policy, an interrupt, a swap area.

Devices are identified by number and sequence number (`diskseq`), which no other device gets before the next boot. After
a boot, they are identified by world-wide name, serial number, UUID, or the file behind a loop device.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from spindle.host.devices import (
    HERE,
    Device,
    DevNumber,
    Machine,
    all_devices,
    by_name,
    by_number,
    int_of,
    text_of,
    whole,
    world_wide_name,
)

from .catalogue import IOSCHED, KNOBS, Knob, Scope, known
from .errors import KnobUsage
from .files import Files


@dataclass(frozen=True)
class DeviceIdentity:
    """The identity of a device, independent of its name."""

    name: str
    number: str
    diskseq: int | None
    lasting: str | None
    """Identification that survives a boot."""
    size_bytes: int


class MissingReason(StrEnum):
    """Reasons why a place that a journal names is not found."""

    GONE = "gone"
    REPLACED = "replaced"
    UNKNOWN = "unknown"
    """This version does not know the kind of place."""


@dataclass(frozen=True)
class KnobFolder:
    """The files of one scope."""

    scope: Scope
    label: str
    """Prefix of the knobs' names: 'loop3', 'vm', 'cpu0', 'irq35'."""
    folder: Path
    identity: DeviceIdentity | None = None

    @property
    def lock(self) -> str:
        """Name of the lock for this place."""
        if self.identity is None or self.scope is not Scope.DEVICE:
            return str(self.scope)
        return f"device-{self.identity.number}"

    @property
    def key(self) -> str:
        """Its name in a journal."""
        if self.identity is None or self.scope is not Scope.DEVICE:
            return self.label
        return f"{self.identity.number}/{self.identity.diskseq}"

    def address(self, knob: Knob) -> str:
        """'loop3.scheduler', 'vm.swappiness', 'cpu0.governor'."""
        return f"{self.label}.{knob.name}"

    def path(self, knob: Knob) -> Path | None:
        """The knob's file, if it exists; the area itself for a swap area."""
        if self.scope is Scope.SWAP:
            return self.folder if self.folder.exists() else None
        for where in knob.where:
            if "*" in where:
                found = sorted(self.folder.glob(where))
                if found:
                    return found[0]
            elif (self.folder / where).is_file():
                return self.folder / where
        return None

    def value(self, knob: Knob, files: Files) -> str | None:
        """The value in force; None: no such file, or not readable."""
        path = self.path(knob)
        if path is not None and self.scope is Scope.SWAP:
            return files.swap(path)
        text = files.read(path) if path is not None else None
        return knob.values.read(text) if text is not None and text.strip() else None

    def write(self, knob: Knob, value: str, files: Files) -> None:
        """Write a value; journal it before. Raises OSError."""
        path = self.path(knob)
        if path is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), knob.name)
        if self.scope is Scope.SWAP:
            files.switch_swap(path, value, self._is_area)
        else:
            files.write(path, value)

    def _is_area(self, fd: int) -> bool:
        """True if this is the swap area of this place, whatever its name leads to."""
        status = os.fstat(fd)
        if not stat.S_ISBLK(status.st_mode):
            return self.identity is None
        device = by_number(DevNumber.of(status.st_rdev), HERE)
        return device is not None and identity_of(whole(device)) == self.identity

    def offered(self, knob: Knob, files: Files) -> list[str]:
        """The words that the kernel offers here, where it lists them."""
        if self.scope is Scope.CPU:
            return (text_of(self.folder / _OFFERS[knob.name]) or "").split()
        path = self.path(knob)
        text = files.read(path) if path is not None else None
        return [word.strip("[]") for word in text.split()] if text is not None and "[" in text else []

    def knobs(self, files: Files) -> list[Knob]:
        """The writable knobs of this place, including parameters of the current elevator."""
        found = [
            one
            for one in KNOBS
            if one.scope is self.scope and (path := self.path(one)) is not None and files.writable(path)
        ]
        if self.scope is Scope.DEVICE:
            names = {one.name for one in found}
            try:
                parameters = sorted(os.listdir(self.folder / "queue/iosched"))
            except OSError:
                parameters = []
            for parameter in parameters:
                one = known(Scope.DEVICE, IOSCHED + parameter)
                path = self.folder / "queue/iosched" / parameter
                if one is not None and one.name not in names and files.writable(path):
                    found.append(one)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The JSON for the journal."""
        return {
            "scope": str(self.scope),
            "label": self.label,
            "device": asdict(self.identity) if self.identity is not None else None,
        }


_OFFERS = {
    "governor": "scaling_available_governors",
    "energy_performance_preference": "energy_performance_available_preferences",
}


# --- finding one -----------------------------------------------------------------------------------------------------


def of_device(device: Device) -> KnobFolder:
    """The place of a device: a disk, or the disk of a partition, which has the queue."""
    disk = whole(device)
    return KnobFolder(Scope.DEVICE, disk.name, disk.sysfs, identity_of(disk))


def identity_of(disk: Device) -> DeviceIdentity:
    """The identity of a whole device."""
    lasting = world_wide_name(disk)
    for name, path in (("serial", "serial"), ("serial", "device/serial"), ("dm", "dm/uuid"), ("md", "md/uuid")):
        lasting = lasting or ((text := text_of(disk.sysfs / path)) and f"{name}:{text.strip()}") or None
    behind = text_of(disk.sysfs / "loop/backing_file")
    return DeviceIdentity(
        name=disk.name,
        number=str(disk.dev),
        diskseq=int_of(disk.sysfs / "diskseq"),
        lasting=lasting or (f"file:{behind}" if behind else None),
        size_bytes=disk.size_bytes,
    )


def named(name: str, machine: Machine = HERE) -> KnobFolder:
    """The place with this name: 'loop3', '/dev/disk/by-id/...', 'vm', 'raid', 'cpu0', 'irq35'."""
    if name in (Scope.VM, Scope.RAID):
        return _machine_wide(Scope(name), machine)
    if found := re.fullmatch(r"(cpu|irq)([0-9]{1,6})", name):
        place = (_cpu if found[1] == "cpu" else _irq)(int(found[2]), machine)
        if place is None:
            why = "the kernel does not set its clock frequency here" if found[1] == "cpu" else "no such interrupt"
            raise KnobUsage(f"{name}: {why}")
        return place
    device = _device(name, machine)
    if device is None:
        raise KnobUsage(f"{name}: no such block device; `lsblk` lists them")
    return of_device(device)


_SWAP = f"{Scope.SWAP}:"


def of_swap(area: Path, machine: Machine = HERE) -> KnobFolder:
    """The place of a swap area: a file, or a device, identified by number and not by name."""
    disk = _device(str(area), machine)
    return KnobFolder(Scope.SWAP, f"{_SWAP}{area}", area, identity_of(whole(disk)) if disk is not None else None)


def _device(name: str, machine: Machine) -> Device | None:
    if "/" not in name:
        return by_name(name, machine) if re.fullmatch(r"[A-Za-z0-9_.!:-]+", name) and name != ".." else None
    try:
        status = os.stat(name)
    except OSError:
        return None
    return by_number(DevNumber.of(status.st_rdev), machine) if stat.S_ISBLK(status.st_mode) else None


def _machine_wide(scope: Scope, machine: Machine) -> KnobFolder:
    folder = machine.proc / ("sys/vm" if scope is Scope.VM else "sys/dev/raid")
    return KnobFolder(scope, str(scope), folder)


def _cpu(number: int, machine: Machine) -> KnobFolder | None:
    """The frequency policy of a CPU, perhaps shared with others; named after its first CPU."""
    cpus = machine.sys / "devices/system/cpu"
    for folder in (cpus / f"cpufreq/policy{number}", (cpus / f"cpu{number}/cpufreq").resolve()):
        if folder.is_dir():
            first = folder.name.removeprefix("policy")
            return KnobFolder(Scope.CPU, f"cpu{first if first.isdigit() else number}", folder)
    return None


def _irq(number: int, machine: Machine) -> KnobFolder | None:
    folder = machine.proc / f"irq/{number}"
    return KnobFolder(Scope.IRQ, f"irq{number}", folder) if folder.is_dir() else None


def every_cpu(machine: Machine = HERE) -> list[KnobFolder]:
    """All frequency policies."""
    folders = (machine.sys / "devices/system/cpu/cpufreq").glob("policy[0-9]*")
    numbers = sorted(int(folder.name.removeprefix("policy")) for folder in folders if folder.name[6:].isdigit())
    return [place for number in numbers if (place := _cpu(number, machine)) is not None]


def interrupts_of(place: KnobFolder, machine: Machine = HERE) -> list[KnobFolder]:
    """The interrupts of a device's controller."""
    for folder in (place.folder / "device").resolve().parents:
        if (folder / "msi_irqs").is_dir():
            numbers = sorted(int(one.name) for one in (folder / "msi_irqs").iterdir() if one.name.isdigit())
            return [found for number in numbers if (found := _irq(number, machine)) is not None]
        if not folder.is_relative_to(machine.sys.resolve() / "devices"):
            break
    return []


def found_again(data: dict[str, Any], same_boot: bool, machine: Machine = HERE) -> KnobFolder | MissingReason:
    """Find the place that a journal names. Raises ValueError, KeyError or TypeError on malformed data."""
    scope, label = Scope(data["scope"]), str(data["label"])
    if scope is Scope.SWAP:
        return _swap_again(label, data["device"], same_boot, machine)
    if scope is not Scope.DEVICE:
        if not re.fullmatch(scope if scope in (Scope.VM, Scope.RAID) else f"{scope}[0-9]+", label):
            raise ValueError(label)
        try:
            return named(label, machine)
        except KnobUsage:
            return MissingReason.GONE
    identity = DeviceIdentity(**data["device"])
    if same_boot:
        device = by_number(DevNumber.parse(identity.number), machine)
        if device is None:
            return MissingReason.GONE
        now = identity_of(device)
        if identity.diskseq is not None and now.diskseq is not None:
            return of_device(device) if now.diskseq == identity.diskseq else MissingReason.REPLACED
        return of_device(device) if now.lasting == identity.lasting else MissingReason.REPLACED
    if identity.lasting is not None:
        for device in all_devices(machine):
            if device.partition is None and identity_of(device).lasting == identity.lasting:
                return of_device(device)
        return MissingReason.GONE
    device = by_name(identity.name, machine)
    if device is None:
        return MissingReason.GONE
    now = identity_of(device)
    same = now.lasting is None and (now.size_bytes, now.number) == (identity.size_bytes, identity.number)
    return of_device(device) if same else MissingReason.REPLACED


def _swap_again(
    label: str, device: dict[str, Any] | None, same_boot: bool, machine: Machine
) -> KnobFolder | MissingReason:
    area = Path(label.removeprefix(_SWAP))
    if not label.startswith(_SWAP) or not area.is_absolute() or not area.exists():
        return MissingReason.GONE
    place = of_swap(area, machine)
    if device is None or place.identity is None:
        return place if device is None and place.identity is None else MissingReason.REPLACED
    then, now = DeviceIdentity(**device), place.identity
    if same_boot and then.diskseq is not None and now.diskseq is not None:
        return place if then.diskseq == now.diskseq else MissingReason.REPLACED
    return place if (then.lasting, then.size_bytes) == (now.lasting, now.size_bytes) else MissingReason.REPLACED
