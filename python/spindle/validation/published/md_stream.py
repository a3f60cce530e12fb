"""md_stream_2008.csv: one stream of dd on arrays of four partitions, as multiples of one drive."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.validation.published.assumed import (
    ASK_PAGE_2008_MD,
    COPY_2008_MD,
    SEND_PAGE_2008_MD,
    STRIPE_PAGE_2008_MD,
    plain,
)
from spindle.validation.published.machines import Drives, Host, machine, md
from spindle.validation.published.prediction import Prediction, Quantity, Run, ratio

ASSUMED = (COPY_2008_MD, ASK_PAGE_2008_MD, SEND_PAGE_2008_MD, STRIPE_PAGE_2008_MD)
HOST = Host(kernel="2.6.25", memory="1GiB", **plain(*ASSUMED))
"""Two cores at 1000 MHz; what a page costs is assumed."""
DRIVES = [
    Drives("HDT725032VLA360", 1, region="4GB-8GB"),
    Drives("HD321KJ", 1, region="4GB-8GB"),
    Drives("ST3320620AS", 1, region="4GB-8GB"),
    Drives("WD3200AAKS", 1, region="4GB-8GB"),
]
ONE = [Drives("HD321KJ", 1, region="4GB-8GB")]
LENGTH = "3GiB"
"""Less than a partition; several times the memory."""


def predictions(row: dict[str, str]) -> Iterator[Prediction]:
    """Yield the two figures of a row."""
    queue: dict[str, str | int] = {"scheduler": row["scheduler"]}
    array = md(row["level"], row["layout"], int(row["chunk_kib"] or 0))
    name = f"{row['scheduler']} {row['level']} {row['layout']} {row['chunk_kib']} KiB"
    for figure, workload in (("write_x", dd(1)), ("read_x", dd(0))):
        if not row[figure]:
            continue
        yield Prediction(
            table="md_stream_2008.csv",
            row=name,
            figure=figure,
            unit="x",
            quantity=Quantity.RATE,
            published=float(row[figure]),
            runs=(
                Run(machine(HOST, DRIVES, array=array, queue=queue), workload, ASSUMED),
                Run(machine(HOST, ONE, queue=queue), workload, ASSUMED),
            ),
            value=ratio,
        )


def dd(write_fraction: int, length: str = LENGTH) -> str:
    """Return one stream through the page cache; the sync at the end of a write counts."""
    return (
        f"pattern = 'sequential'\nsize = '1MiB'\ndirect = false\nwrite_fraction = {write_fraction}\n"
        f"end_fsync = {'true' if write_fraction else 'false'}\nseconds = 'none'\nbytes = '{length}'\n"
    )
