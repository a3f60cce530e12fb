"""Temperatures of the target's drives and of the CPUs, as drivers report them
(Documentation/hwmon/sysfs-interface.rst)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spindle.host.devices import HERE, Device, Machine, int_of, text_of, whole

_CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_OF_DRIVE = ("device/hwmon*/temp1_input", "device/hwmon/hwmon*/temp1_input", "device/device/hwmon/hwmon*/temp1_input")
"""Paths below the block device: NVMe, `drivetemp` of SATA and SAS; a namespace is one level deeper."""
_NO_LIMIT_MILLIDEGREES = 200_000
"""Drivers that know no limit report absurd values above this."""


@dataclass(frozen=True)
class Sensor:
    """One thermometer."""

    name: str
    """The drive, or `cpu`."""
    path: Path
    limit_celsius: float | None
    """The drive slows itself down at this temperature, where it reports one (temp1_max)."""

    def celsius(self) -> float | None:
        """The temperature now."""
        value = int_of(self.path)
        return None if value is None else value / 1000


def sensors(devices: Iterable[Device], machine: Machine = HERE) -> list[Sensor]:
    """The sensors of these devices' drives and of the CPUs."""
    found = []
    for disk in {device.name: device for device in map(whole, devices)}.values():
        for pattern in _OF_DRIVE:
            if places := sorted(disk.sysfs.glob(pattern)):
                found.append(Sensor(disk.name, places[0], _limit(places[0])))
                break
    for folder in sorted((machine.sys / "class/hwmon").glob("hwmon*")):
        place = folder / "temp1_input"
        if text_of(folder / "name") in _CPU_SENSORS and int_of(place) is not None:
            found.append(Sensor("cpu", place, None))  # `throttle_events` counts slowed-down CPUs
            break
    return found


def _limit(place: Path) -> float | None:
    value = int_of(place.with_name("temp1_max"))
    return value / 1000 if value is not None and 0 < value < _NO_LIMIT_MILLIDEGREES else None
