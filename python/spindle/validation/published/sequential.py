"""sequential_2008.csv: one stream of sdd on the raw device of six drives."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.validation.published.assumed import COPY_2008, KERNEL_2008
from spindle.validation.published.machines import LAYOUTS, Drives, Host, hardware, machine, md
from spindle.validation.published.md_stream import dd
from spindle.validation.published.prediction import Prediction, Quantity, Run, megabytes_per_s
from spindle.validation.published.randomio import CONTROLLER, HITACHI

HOST = Host(kernel="2.6.18", memory="256MiB", copy_rate="2 GB/s")
"""The text does not name the kernel. Six drives of RAID5 gave 84 MB/s, so reads went through the stripe cache, as they
do until 2.6.19."""
LENGTH = "4GiB"


def predictions(row: dict[str, str]) -> Iterator[Prediction]:
    """Yield the figures of a row: `raid10_md_f2` is md's RAID10 with the layout f2."""
    level, _, rest = row["setup"].partition("_")
    kind, _, layout = rest.partition("_")
    count = int(row["drives"].partition("x")[0])
    drives = [Drives(HITACHI.model, count, queue_depth=HITACHI.queue_depth)]
    array = hardware(level, 64) if kind == "3w" else md(level, layout or LAYOUTS.get(level, ""), 64)
    text = machine(HOST, drives, array=array, controller=CONTROLLER, battery=True)
    for column, writes in (("read_mb_s", 0), ("write_mb_s", 1)):
        if row[column]:
            yield Prediction(
                table="sequential_2008.csv",
                row=row["setup"],
                figure=column,
                unit="MB/s",
                quantity=Quantity.RATE,
                published=float(row[column]),
                runs=(Run(text, dd(writes, LENGTH), (COPY_2008, KERNEL_2008)),),
                value=megabytes_per_s,
            )
