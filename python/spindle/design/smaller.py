"""Smaller flash drives in place of large ones in simulations.

The work of collection depends on shares alone (docs/explanation/drives.md, "Flash"), and the rest of the model knows no
capacity. A drive of a few hundred superblocks is as fast as one of thousands, but made in a fraction of the time.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache

from spindle import _core

SUPERBLOCKS = 256
"""Least superblocks of a smaller drive: one block of each die."""
LEAST_BYTES = 64_000_000_000
PAGES_PER_BLOCK = 768
"""Where the sheet is silent."""
NAME = "smaller"


@dataclass(frozen=True)
class SmallerDrive:
    """A smaller drive."""

    sheet: str
    """Its table of a machine file."""
    scale: float
    """Bytes of the drive for each byte of the smaller one."""


@lru_cache(maxsize=256)
def smaller_drive(name: str) -> SmallerDrive | None:
    """The smaller drive for a flash drive of the catalogue; None: it is small enough, or a disk."""
    text = _core.drive_sheet(name)
    sheet = tomllib.loads(text)
    if sheet["kind"] != "flash":
        return None
    block = _core.parse_size(str(sheet["page"])) * int(sheet.get("pages_per_block", PAGES_PER_BLOCK))
    superblock = block * int(sheet["channels"]) * int(sheet["dies_per_channel"])
    capacity = _core.parse_size(str(sheet["capacity"]))
    wanted = max(LEAST_BYTES, SUPERBLOCKS * superblock)
    if wanted >= capacity:
        return None
    wanted -= wanted % (1 << 20)
    text = re.sub(r"(?m)^capacity = .*$", f'capacity = "{wanted}"', text, count=1)
    text = re.sub(r"(?m)^name = .*$", f'name = "{NAME}"', text, count=1)
    text = re.sub(r"(?m)^\[(\w+)\]", r"[sheet.\1]", text)
    return SmallerDrive(f"[[sheet]]\n{text}", capacity / wanted)
