"""Published measurements of real arrays that charts draw beside modelled ones."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Multiple:
    """Streaming speed of an array as a multiple of one drive's."""

    level: str
    layout: str
    scheduler: str
    chunk: int
    """Bytes."""
    read: float
    write: float


STREAMS_2008 = "measured in 2008: dd on Linux 2.6.25 md, CFQ, mean of 5 runs"
_DRIVES_2008 = ("HDT725032VLA360", "HD321KJ", "ST3320620AS", "WD3200AAKS")


def streams(drives: Sequence[str]) -> list[Multiple]:
    """Return published figures of an array of these drives: four partitions of 4 GB on four SATA drives, 2008."""
    return _streams_2008() if Counter(drives) == Counter(_DRIVES_2008) else []


@cache
def _streams_2008() -> list[Multiple]:
    text = resources.files(__name__).joinpath("md_stream_2008.csv").read_text(encoding="utf-8")
    return [
        Multiple(
            level=row["level"],
            layout=row["layout"],
            scheduler=row["scheduler"],
            chunk=int(row["chunk_kib"]) << 10,
            read=float(row["read_x"]),
            write=float(row["write_x"]),
        )
        for row in csv.DictReader(text.splitlines())
    ]
