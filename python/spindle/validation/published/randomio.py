"""randomio_2008.csv and randomio_setups_2008.csv: random reads and writes of many threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from spindle.validation.published.assumed import ASSUMED_2008, BATTERY, DESTAGE_ORDER, KERNEL_2008, plain
from spindle.validation.published.machines import LAYOUTS, SECTOR_63, Drives, Host, hardware, machine, md
from spindle.validation.published.prediction import Prediction, Quantity, Run, iops, read_ms, write_ms

HOST = Host(memory="256MiB", **plain(*ASSUMED_2008, KERNEL_2008))
"""The memory was cut to 256 MB."""
HITACHI = Drives("HDS725050KLA360", 6, queue_depth=31)
WD = Drives("WD10EACS", 2, queue_depth=31)
HALF_WD = Drives("WD10EACS", 4, queue_depth=31, region="0-500GB")
"""As the arrays of ten drives used them."""
CONTROLLER = "9650SE-16ML"
"""The drives of md's arrays are single units of it."""
controlled = partial(machine, controller=CONTROLLER, battery=True, destage_order=DESTAGE_ORDER.plain)
"""A machine file of a host with this controller."""
SECONDS = 180
"""Three times as long as the measured runs: means of rare long waits differ less from run to run."""
RAMP_S = 60
"""Runs followed one another, so the caches were not empty when one began."""
SETUPS_RAMP_S = 300
"""The same; two drives take minutes to fill the controller's cache."""
FILE = "0-278GB"
"""The file of the table, at the start of the file system."""
FILE_SYSTEM = "xfs"
"""That of all loads which are not on the device."""
_LEVELS = {
    "10": ("raid10", "f2"),
    "5": ("raid5", "left-symmetric"),
    "6": ("raid6", "left-symmetric"),
    "0": ("raid0", ""),
}


def of_threads(row: dict[str, str]) -> Iterator[Prediction]:
    """Yield the figures of a row: threads and sizes on ten drives."""
    found = re.fullmatch(r"(md|3w)(\d+)fs", row["array"])
    if found is None:
        raise ValueError(f"array {row['array']}: expected md or 3w, a level and fs, as in md10fs")
    level, layout = _LEVELS.get(found[2], ("raid" + found[2], ""))
    array = md(level, layout, 64) if found[1] == "md" else hardware(level, 64)
    # mkfs.xfs aligns a file to the chunks of md's array; of a controller's unit it sees a partition, and no geometry.
    partition = None if found[1] == "md" else SECTOR_63
    text = controlled(
        HOST,
        [HITACHI, HALF_WD],
        array=array,
        partition=partition,
        files={"type": FILE_SYSTEM},
    )
    load = randomio(int(row["threads"]), int(row["io_bytes"]), SECONDS, FILE)
    name = f"{row['array']} {row['threads']} threads {row['io_bytes']} B"
    yield from _figures("randomio_2008.csv", name, row, Run(text, load, (BATTERY, DESTAGE_ORDER)))


def of_setups(row: dict[str, str]) -> Iterator[Prediction]:
    """Yield the figures of a row: 48 threads on different arrays."""
    drives = drives_of(row["drives"])
    if row["ncq"] == "off":
        drives = replace(drives, queue_depth=1)
    queue: dict[str, str | int] = {"scheduler": row["scheduler"]} if row["scheduler"] else {}
    if found := re.search(r"nr_requests=(\d+)", row["note"]):
        queue["nr_requests"] = int(found[1])
    array, is_raw = _array(row), row["target"] in ("", "raw")
    text = controlled(
        HOST,
        [drives],
        array=array,
        queue=queue,
        partition=None if is_raw or "type" not in array else SECTOR_63,
        files=None if is_raw else {"type": FILE_SYSTEM},
    )
    name = " ".join(filter(None, (row["setup"], row["drives"], row["layout"], row["scheduler"], row["note"])))
    load = randomio(48, 65536, 120, "all" if is_raw else FILE, SETUPS_RAMP_S)
    yield from _figures("randomio_setups_2008.csv", name, row, Run(text, load, (DESTAGE_ORDER,)))


def drives_of(words: str) -> Drives:
    """Return the drives of words such as `6xHitachi` and `2xWD10EACS`."""
    count, _, name = words.partition("x")
    of = next((of for of in (HITACHI, WD) if name in ("Hitachi", of.model)), None)
    if of is None:
        raise ValueError(f"drives {words}: expected a count and Hitachi or {WD.model}, as in 6xHitachi")
    return replace(of, count=int(count))


def _array(row: dict[str, str]) -> dict[str, str | int]:
    """The array of words such as `raid5-md-ls`, `raid1-hw` and `f2`, or of the setup: `raid0_md`."""
    chunk_kib = int(row["chunk_kib"] or 64)
    if re.fullmatch(r"[nfo]\d", row["layout"]):
        return md("raid10", row["layout"], chunk_kib)
    level, _, kind = (row["layout"] or row["setup"].replace("_", "-")).partition("-")
    return hardware(level, chunk_kib) if kind in ("hw", "3w") else md(level, LAYOUTS.get(level, ""), chunk_kib)


def _figures(table: str, name: str, row: dict[str, str], run: Run) -> Iterator[Prediction]:
    for column, unit, quantity, value in (
        ("iops", "IOPS", Quantity.RATE, iops),
        ("r_avg_ms", "ms", Quantity.READ_LATENCY, read_ms),
        ("w_avg_ms", "ms", Quantity.WRITE_LATENCY, write_ms),
    ):
        if row[column]:
            yield Prediction(
                table=table,
                row=name,
                figure=column,
                unit=unit,
                quantity=quantity,
                published=float(row[column]),
                runs=(run,),
                value=value,
            )


def randomio(threads: int, size_bytes: int, seconds: int, region: str, ramp_s: int = RAMP_S) -> str:
    """Return what randomio does: aligned random requests, a fifth writes, a tenth of those followed by fsync."""
    where = f"region = '{region}'\n" if region != "all" else ""
    return (
        f"pattern = 'uniform'\nsize = {size_bytes}\nworkers = {threads}\nwrite_fraction = 0.2\nfsync_fraction = 0.1\n"
        f"direct = true\nseconds = {seconds}\nramp = '{ramp_s}s'\n{where}"
    )
