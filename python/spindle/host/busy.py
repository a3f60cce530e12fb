"""Unmounting, and the users that keep a file system busy, which umount(2) does not name."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

from spindle.base.words import listed

from . import kernel
from .devices import HERE, DevNumber, Machine, loops, text_of
from .kernel import Node
from .mounts import Mount, mount_of, own_mounts, swaps
from .openers import mapped_files, others, tables
from .patience import ResourceBusy, patiently

_MOST = 3
_PLACES = {"cwd": "works in it", "root": "has its root in it"}


def unmount(point: str, called: str) -> None:
    """Unmount, and retry while it is busy. `called`: its name for people. Raises ResourceBusy with the users;
    OSError for another reason."""
    patiently(lambda: _unmount(point, called))


def _unmount(point: str, called: str) -> None:
    try:
        kernel.unmount(point)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise ResourceBusy(f"{called} on {point} is busy: {holders_of(point)}") from None


def holders_of(point: str, machine: Machine = HERE) -> str:
    """`process 12 (bash) works in it and process 40 (less) has /data/x open`; says so if no user can be seen."""
    found = _found(point, machine)
    if not found:
        return "no user of it can be seen"
    return listed(found[:_MOST]) + (f" and {len(found) - _MOST} more" if len(found) > _MOST else "")


def _found(point: str, machine: Machine) -> list[str]:
    mount = mount_of(point, machine)
    node = kernel.node_at(point)
    if mount is None or node is None:
        return []
    return list(dict.fromkeys([*_processes(mount, node, machine), *_kernel(mount, node, machine)]))


def _processes(mount: Mount, top: Node, machine: Machine) -> Iterator[str]:
    def on_it(place: str) -> bool:
        node = kernel.node_at(place)
        return node is not None and _same(node, mount, top)

    for process in others(machine):
        name = f"process {process.name} ({text_of(process / 'comm') or '?'})"
        for table in tables(process, machine):
            yield from (f"{name} {how}" for place, how in _PLACES.items() if on_it(f"{table}/{place}"))
            for descriptor in _entries(f"{table}/fd"):
                if on_it(descriptor):
                    yield f"{name} has {_link(descriptor)} open"
        for mapped in mapped_files(process):
            if _same(mapped.node, mount, top):
                yield f"{name} has {_link(mapped.place)} mapped"


def _kernel(mount: Mount, top: Node, machine: Machine) -> Iterator[str]:
    inside = mount.point.rstrip("/") + "/"
    yield from (f"{one.point} is mounted in it" for one in own_mounts(machine) if one.point.startswith(inside))
    device = DevNumber(*top.device)
    yield from (
        f"{loop.path} is set up over a file in it" for loop, behind in loops(machine) if _on(behind.file, device)
    )
    yield from (f"{swap.path} is in use as swap" for swap in swaps(machine) if _on(swap.file, device))


def _on(file: tuple[DevNumber, int] | None, device: DevNumber) -> bool:
    return file is not None and file[0] == device


def _same(node: Node, mount: Mount, top: Node) -> bool:
    return node.mount_id == mount.mount_id if node.mount_id is not None else node.device == top.device


def _entries(folder: str) -> list[str]:
    try:
        return [str(entry) for entry in Path(folder).iterdir()]
    except OSError:
        return []


def _link(place: str) -> str:
    try:
        return str(Path(place).readlink())
    except OSError:
        return "a file in it"
