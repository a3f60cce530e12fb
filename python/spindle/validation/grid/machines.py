"""Shared by the points of all grids: levels of arrays, drives, and values dealt out evenly."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import TypeVar

DRIVES = {
    "plain": "service = '100us'\ntransfer_rate = '200 MB/s'\nflush = '100us'\nqueue_depth = 32\ncapacity = '4GiB'",
    "disk": "model = 'HDS725050KLA360'\nqueue_depth = 31",
    "flash": "model = '860-EVO-1TB'",
}
"""A plain service time, a disk of 7200 rpm, a flash drive; the last two on SATA."""
T = TypeVar("T")


def drives_of(level: str) -> int:
    """Drives of a machine of this level."""
    return {"single": 1, "raid1": 2}.get(level, 4)


def array_lines(level: str, chunk_kib: int) -> list[str]:
    """The array of a machine file. `level`: `single`, or md's level with RAID10's layout: `raid10f2`."""
    if level == "single":
        return []
    name, _, layout = level.partition("raid10")
    lines = ["[array]", f"level = '{name or 'raid10'}'", "data_offset = '1MiB'"]
    lines += [f"layout = '{layout}'"] if layout else []
    lines += [f"chunk = '{chunk_kib}KiB'"] if level != "raid1" else []
    return lines


def out_of(outstanding: int, threads: bool) -> str:
    """Requests outstanding, for people: `8t` for 8 threads."""
    return f"{outstanding}{'t' if threads else ''}"


def direct_load(operation: str, requests: int, region: str, size_kib: int, outstanding: int, threads: bool) -> str:
    """A workload file of direct I/O. `operation`: lines; `threads`: as many with one request each, or one with all."""
    workers, depth = (outstanding, 1) if threads else (1, outstanding)
    lines = ["direct = true", "seconds = 'none'", f"requests = {requests}", operation, f"region = '{region}'"]
    return "\n".join([*lines, f"size = '{size_kib}KiB'", f"workers = {workers}", f"depth = {depth}"]) + "\n"


def dealt(deal: random.Random, values: Iterable[T], count: int) -> list[T]:
    """Each value equally often, up to one, in the order that `deal` draws."""
    found = list(itertools.islice(itertools.cycle(values), count))
    deal.shuffle(found)
    return found
