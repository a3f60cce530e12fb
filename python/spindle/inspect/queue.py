"""A device's queue, as sysfs shows it (Documentation/ABI/stable/sysfs-block)."""

from __future__ import annotations

import re

from spindle.host import queue_files
from spindle.host.settings import chosen

from .model import Queue
from .reading import Reading, value
from .tree import Tree, natural

_NUMBERS = tuple(name for name in queue_files.NUMBERS if name in Queue.__struct_fields__)
_MOST_PARAMETERS = 100
_OF_REQUESTS = ("wbt_lat_usec", "io_timeout")
"""Missing on devices that pass requests on (md, dm), as they make none of their own."""


def queue_of(folder: str, stacked: bool, tree: Tree) -> Queue | None:
    """None if the device has no queue of its own (partitions)."""
    place = f"{folder}/queue"
    if tree.resolve(place) is None:
        return None
    queue = Queue()
    read = Reading(tree, queue.unknown)
    for name in _NUMBERS:
        setattr(queue, name, read.number(name, f"{place}/{name}"))
        if stacked and name in _OF_REQUESTS and tree.resolve(f"{place}/{name}") is None:
            read.known(name)
    queue.write_cache = read.text("write_cache", f"{place}/write_cache")
    queue.zoned = read.text("zoned", f"{place}/zoned")
    schedulers = read.text("scheduler", f"{place}/scheduler")
    if schedulers is not None:
        queue.scheduler = chosen(schedulers)
        queue.schedulers = re.findall(r"[^\s\[\]]+", schedulers)
    for name in tree.names(f"{place}/iosched")[:_MOST_PARAMETERS]:
        found = read.text(f"iosched.{name}", f"{place}/iosched/{name}")
        if found is not None:
            queue.iosched[name] = found
    hardware = [name for name in tree.names(f"{folder}/mq") if name.isdigit()]
    if hardware:
        queue.hardware_queues = len(hardware)
        queue.tags = read.number("tags", f"{folder}/mq/{sorted(hardware, key=natural)[0]}/nr_tags")
    return queue


def read_only(folder: str, tree: Tree) -> bool | None:
    """True if the kernel refuses writes to it."""
    found = value(tree, f"{folder}/ro")
    return {"0": False, "1": True}.get(found or "")
