"""Writes dirty data before a run, so that it is not written during the run."""

from __future__ import annotations

import os
from collections.abc import Iterable

from . import kernel
from .devices import HERE, Device, Machine
from .mounts import Mount, devices_of, own_mounts
from .stack import above


def sync_stack(fd: int, devices: Iterable[Device], machine: Machine = HERE) -> list[str]:
    """Sync the file system of an open target, and all that use these devices: those that share a disk with the target,
    or contain the file behind a loop device. Returns their mount points; those that could not be opened are left
    out."""
    synced: list[Mount] = []
    for mount in mounted_on(devices, machine):
        if mount.dev in {one.dev for one in synced}:
            continue
        if _sync(mount.point):
            synced.append(mount)
    try:
        kernel.sync_file_system(fd)  # also if it is on no block device (NFS, tmpfs)
    except OSError:
        os.sync()
    return [mount.point for mount in synced]


def mounted_on(devices: Iterable[Device], machine: Machine = HERE) -> list[Mount]:
    """File systems that use one of the devices, or a device built on one."""
    numbers = {one.dev for device in devices for one in (device, *above(device, machine))}
    return [mount for mount in own_mounts(machine) if numbers & devices_of(mount, machine)]


def _sync(point: str) -> bool:
    try:
        fd = os.open(point, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        kernel.sync_file_system(fd)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
