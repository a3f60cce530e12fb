"""hw_raid_2004.csv and bonnie_14sas_2011.csv: streams and seeks of dd, bonnie++ and iozone in large files.

The files follow one another from the start of the array. bonnie++ makes files of 1 GiB; since 1.9 it makes a single one
(`CFileOp::m_open`), which is in one piece: XFS goes from one allocation group to the next only for new files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from spindle.run.simulate import SimulatedRun
from spindle.validation.published.assumed import (
    ALLOCATE_PAGE_2004_EXT3,
    ASK_PAGE_2004,
    COPY_2004,
    COPY_2011,
    DESTAGE_ORDER,
    KERNEL_2011,
    MEMORY_2011,
    READ_PAGE_2004,
    READ_PAGE_2011,
    SEND_PAGE_2004,
    SEND_PAGE_2011,
    SYNCED_2011,
    WRITE_PAGE_2004_EXT3,
    WRITE_PAGE_2004_PLAIN,
    WRITE_PAGE_2011,
    first_sync,
    plain,
    synced,
)
from spindle.validation.published.machines import Drives, Host, hardware, machine, md
from spindle.validation.published.prediction import (
    Prediction,
    Quantity,
    Run,
    iops,
    kibibytes_per_s,
    megabytes_per_s,
)


class Seekers(Struct, frozen=True):
    """How a version of bonnie++ seeks."""

    processes: int
    """Until 1.03 there are 3, since 1.90 there are 5 (README-2.00)."""
    syncs: str = ""
    """Lines of the workload: fsyncs of the file."""


HOST_2004 = Host(kernel="2.6.5", memory="512MiB", **plain(COPY_2004, ASK_PAGE_2004, SEND_PAGE_2004))
"""Two Xeons of 2.4 GHz; what a page costs is assumed."""
RAPTORS = Drives("WD740GD-00FLA0", 12)
READ_AHEAD = {"untuned": "128KiB", "tuned": "8MiB"}
CHUNK_2004_KIB = 64
FILE_2004 = "20GB"
RECORDS = {"dd": "1MiB", "bonnie++": "8KiB", "iozone": "64KiB"}
FILE_SIZE_BONNIE_2004 = "1GiB"
SEEKERS_2004 = Seekers(processes=3)

HOST_2011 = Host(ask_page="0s", **plain(KERNEL_2011, MEMORY_2011, COPY_2011, SEND_PAGE_2011))
CHEETAHS = Drives("ST3600057SS", 14)
CHUNK_2011_KIB = 512
FILE_2011 = "320GB"
SEEKERS_2011 = Seekers(processes=5, syncs=f"end_fsync = true\n{SYNCED_2011.line}\n")
"""The time ends after an fsync of each (since 1.90b: README-2.00, `CFileOp::action`)."""
MADE_2011: dict[str, str | int] = {"bitmap": "internal", "data_offset": "1MiB"}
"""The write-up's command: `mdadm --create --bitmap=internal --level=raid10 --raid-devices=14`; mdadm makes metadata 1.2
since 3.1.1."""

WRITTEN_PAGE_2004 = {
    "ext2": (WRITE_PAGE_2004_PLAIN,),
    "xfs": (WRITE_PAGE_2004_PLAIN,),
    "ext3": (WRITE_PAGE_2004_EXT3, ALLOCATE_PAGE_2004_EXT3),
}
"""Times of a written page by file system."""

ASSUMED_2011 = (
    KERNEL_2011,
    COPY_2011,
    MEMORY_2011,
    READ_PAGE_2011,
    WRITE_PAGE_2011,
    SEND_PAGE_2011,
    *first_sync("raid10", CHEETAHS.count),
)

LENGTHS = {HOST_2004.kernel: "2GiB", HOST_2011.kernel: "32GiB"}
"""Bytes of a stream by the kernel of the host: several times the memory."""
SEEKS = 8192


def of_hardware(row: dict[str, str]) -> Iterator[Prediction]:
    """Yield the figure of a row: one metric of one trial."""
    if row["fs"] not in ("raw", *WRITTEN_PAGE_2004):
        raise ValueError(f"file system {row['fs']}: expected raw, {', '.join(WRITTEN_PAGE_2004)}")
    queue: dict[str, str | int] = {"read_ahead": READ_AHEAD[row["read_ahead"]]}
    array = hardware(row["raid"], CHUNK_2004_KIB)
    text = machine(
        HOST_2004,
        [RAPTORS],
        array=array,
        queue=queue,
        controller="9500S-12",
        destage_order=DESTAGE_ORDER.plain,
        files=_files_of_2004(row["fs"], row["tool"], is_new=row["metric"] == "seq_write"),
    )
    load, value = _load(row["metric"], row["tool"], HOST_2004, FILE_2004, SEEKERS_2004, row["unit"])
    of_files = (READ_PAGE_2004, *WRITTEN_PAGE_2004[row["fs"]]) if row["fs"] != "raw" else (ASK_PAGE_2004,)
    assumed = (COPY_2004, SEND_PAGE_2004, DESTAGE_ORDER, *of_files)
    name = f"{row['tool']} {row['fs']} {row['read_ahead']} trial {row['trial']}"
    yield _prediction(
        "hw_raid_2004.csv", name, row["metric"], row["unit"], row["value"], Run(text, load, assumed), value
    )


def of_bonnie(row: dict[str, str]) -> Iterator[Prediction]:
    """Yield the rates of a row."""
    array = md("raid10", row["layout"], CHUNK_2011_KIB) | MADE_2011 | synced("raid10")
    files: dict[str, str | int] = {
        "type": row["fs"],
        "read_page": READ_PAGE_2011.plain,
        "write_page": WRITE_PAGE_2011.plain,
    }
    text = machine(HOST_2011, [CHEETAHS], array=array, controller="9211-8i", controllers=2, files=files)
    name = f"{row['layout']} {row['fs']} {row['mkfs']}"
    for column, metric, unit in (
        ("write_kib_s", "seq_write", "KiB/s"),
        ("rewrite_kib_s", "rewrite", "KiB/s"),
        ("read_kib_s", "seq_read", "KiB/s"),
        ("seeks_s", "seeks", "1/s"),
    ):
        load, value = _load(metric, "bonnie++", HOST_2011, FILE_2011, SEEKERS_2011, unit)
        assumed = (*ASSUMED_2011, SYNCED_2011) if metric == "seeks" else ASSUMED_2011
        yield _prediction("bonnie_14sas_2011.csv", name, column, unit, row[column], Run(text, load, assumed), value)


def _files_of_2004(fs: str, tool: str, *, is_new: bool) -> dict[str, str | int] | None:
    """The file system of a row; `raw` is none."""
    if fs == "raw":
        return None
    several: dict[str, str | int] = {"file_size": FILE_SIZE_BONNIE_2004} if tool == "bonnie++" else {}
    return {"type": fs, "new": is_new, **several, **plain(READ_PAGE_2004, *WRITTEN_PAGE_2004[fs])}


def _prediction(
    table: str, row: str, figure: str, unit: str, published: str, run: Run, value: Callable[..., float]
) -> Prediction:
    return Prediction(
        table=table,
        row=row,
        figure=figure,
        unit=unit,
        quantity=Quantity.RATE,
        published=float(published),
        runs=(run,),
        value=value,
    )


def _load(
    metric: str, tool: str, host: Host, file: str, seekers: Seekers, unit: str
) -> tuple[str, Callable[..., float]]:
    """The workload of a metric, and how its figure is read."""
    common = f"direct = false\nsize = '{RECORDS[tool]}'\nregion = '0-{file}'\nseconds = 'none'\n"
    if metric == "seeks":
        load = f"pattern = 'uniform'\nworkers = {seekers.processes}\nrewrite_fraction = '10%'\nrequests = {SEEKS}\n"
        return common + load + seekers.syncs, _seeks
    rate = {"KiB/s": kibibytes_per_s, "MB/s": megabytes_per_s}[unit]
    stream = f"pattern = 'sequential'\nbytes = '{LENGTHS[host.kernel]}'\n"
    if metric == "rewrite" and tool == "bonnie++":
        return common + stream + "rewrite_fraction = 1\nend_fsync = true\n", lambda run: rate(run) / 2
    if metric in ("seq_write", "rewrite"):
        return common + stream + "write_fraction = 1\nend_fsync = true\n", rate
    if metric in ("seq_read", "reread"):
        return common + stream + "write_fraction = 0\n", rate
    raise ValueError(f"metric {metric}: expected seq_read, seq_write, reread, rewrite or seeks")


def _seeks(run: SimulatedRun) -> float:
    """Reads per second: the write-back of a seek is a part of it."""
    read = run.run.streams[0].read
    return read.requests / run.run.elapsed_ns * 1e9 if read is not None else iops(run)
