"""sequential_2008.csv: one stream of sdd on the raw device of six drives."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from spindle.validation.published.assumed import (
    ASSUMED_2008,
    DESTAGE_ORDER,
    KERNEL_2008,
    MEMORY_2008,
    first_sync,
    synced,
)
from spindle.validation.published.machines import LAYOUTS, hardware, md
from spindle.validation.published.md_stream import dd
from spindle.validation.published.prediction import Prediction, Quantity, Run, sdd_megabytes_per_s
from spindle.validation.published.randomio import HOST, controlled, drives_of

ASSUMED = (*ASSUMED_2008, KERNEL_2008, MEMORY_2008, DESTAGE_ORDER)
WHOLE_HOST = replace(HOST, memory=MEMORY_2008.plain)
WRITTEN = "10000MiB"
"""As the write-up has it: caches take a part of a shorter stream."""
READ = "4GiB"
"""Enough: 0.1 % off."""
SHORT = "256MiB"
"""Without read-ahead: a request a page."""
_WITHOUT_READ_AHEAD = re.compile(r"read-ahead 0: ([\d.]+) MB/s read")


def predictions(row: dict[str, str]) -> Iterator[Prediction]:
    """Yield the figures of a row: `raid10_md_f2` is md's RAID10 with the layout f2. A note may have one more:
    "read-ahead 0: 22 MB/s read"."""
    level, _, rest = row["setup"].partition("_")
    kind, _, layout = rest.partition("_")
    drives = drives_of(row["drives"])
    is_md = kind == "md"
    array = md(level, layout or LAYOUTS.get(level, ""), 64) | synced(level) if is_md else hardware(level, 64)
    assumed = (*ASSUMED, *(first_sync(level, drives.count) if is_md else ()))

    def run(writes: int, length: str, read_ahead: str | None = None) -> Run:
        queue: dict[str, str | int] = {"read_ahead": read_ahead} if read_ahead is not None else {}
        text = controlled(WHOLE_HOST, [drives], array=array, queue=queue)
        return Run(text, dd(writes, length), assumed)

    def prediction(figure: str, published: str, of: Run) -> Prediction:
        return Prediction(
            table="sequential_2008.csv",
            row=row["setup"],
            figure=figure,
            unit="MB/s of sdd",
            quantity=Quantity.RATE,
            published=float(published),
            runs=(of,),
            value=sdd_megabytes_per_s,
        )

    for column, writes in (("read_mb_s", 0), ("write_mb_s", 1)):
        if row[column]:
            yield prediction(column, row[column], run(writes, WRITTEN if writes else READ))
    if found := _WITHOUT_READ_AHEAD.search(row["note"] or ""):
        yield prediction("read_mb_s, read-ahead 0", found[1], run(0, SHORT, "0KiB"))
