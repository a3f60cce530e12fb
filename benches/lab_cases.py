"""All cases of the kinds of `kernel61`, measured in the lab: tables that `spindle validate kernel DIR` takes.

    python benches/lab_cases.py DIR [--table elevators|requests] [--jobs 2] [--match TEXT]

The published folder has a part of them. What DIR holds already is kept. Needs the lab (`make lab`); about 15 minutes
of CPU time for all.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from spindle.validation.kernel.cases import ELEVATORS, REQUESTS, case_of, read_cases
from spindle.validation.kernel.exact import LabRunner
from spindle.validation.kernel.runner import CaseFigures

Row = dict[str, str]
CHUNKED = ("raid0", "raid10n2", "raid10f2", "raid10o2", "raid4", "raid5", "raid6")
LEVELS = ("single", "raid1", *CHUNKED)
PARITY = ("raid4", "raid5", "raid6")
OFFSET_SECTORS = {"64": "2048", "128": "2048", "256": "2048", "512": "4096", "1024": "6144", "": "2048"}
"""md's data offset on a drive of 512 MiB by the chunk."""
DEFAULTS = {"depth": "1", "ra_kib": "default", "scheduler": "mq-deadline", "degraded": "0", "bitmap": "none"}
DEFAULTS |= {"mem": "1G", "size_mib": "512", "max_sectors_kib": "1280", "rotational": "1", "fs": "", "chunk_kib": ""}
COUNTS = {"randread": "1500", "randwrite": "1500", "seqmerge": "3000", "bufread": "64", "bufwrite": "64"}
COLUMNS = {
    REQUESTS: "case level chunk_kib fs op bs_kib depth count ra_kib scheduler stripe_cache degraded bitmap mem "
    "size_mib max_sectors_kib rotational elapsed_ns mean_lat_ns max_lat_ns data_offset_sectors device drv_reads "
    "drv_read_sectors drv_writes drv_write_sectors read_sizes write_sizes trace_sha1",
    ELEVATORS: "case level scheduler op bs_kib depth count elapsed_ns load1_requests load1_elapsed_ns "
    "load1_mean_lat_ns load1_max_lat_ns load2_requests load2_elapsed_ns load2_mean_lat_ns load2_max_lat_ns device "
    "reads writes read_sizes write_sizes order_sha1 trace_sha1",
}


def main() -> None:
    """Measure what is missing in the folder."""
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--table", choices=["elevators", "requests"])
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--match", default="")
    options = options.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for table, rows in ((ELEVATORS, elevators()), (REQUESTS, requests())):
        if options.table in (None, table.removesuffix(".csv")):
            fill(options.folder / table, [row for row in rows if options.match in row["case"]], options.jobs)


def fill(path: Path, rows: list[Row], jobs: int) -> None:
    """Append the measured rows of cases that the table does not have."""
    is_new = not path.exists()
    known = set() if is_new else {case.name for case in read_cases(path.parent) if case.table == path.name}
    runner = LabRunner()
    with path.open("a", newline="") as file, ThreadPoolExecutor(jobs) as pool:
        table = csv.DictWriter(file, COLUMNS[path.name].split(), restval="", lineterminator="\n")
        if is_new:
            table.writeheader()
        missing = [row for row in rows if row["case"] not in known]
        for done, measured in enumerate(pool.map(lambda row: measure(runner, path.name, row), missing), 1):
            table.writerows(measured)
            file.flush()
            if sys.stdout.isatty():
                print(f"\r{path.name}: {done} of {len(missing)}", end="", flush=True)
    begin = "\r" if sys.stdout.isatty() else ""
    print(f"{begin}{path.name}: {len(missing)} measured, {len(rows) - len(missing)} there before")


def measure(runner: LabRunner, table: str, row: Row) -> list[Row]:
    """Rows of a case, one for each drive."""
    case = case_of(table, row)
    return list(_rows(table, row, runner.figures(case)))


def _rows(table: str, row: Row, figures: CaseFigures) -> Iterator[Row]:
    whole = {"elapsed_ns": str(figures.elapsed_ns)}
    for at, load in enumerate(figures.loads, 1):
        prefix = "" if table == REQUESTS else f"load{at}_"
        whole[f"{prefix}mean_lat_ns"], whole[f"{prefix}max_lat_ns"] = map(
            str, (load.mean_latency_ns, load.max_latency_ns)
        )
        if table == ELEVATORS:
            whole |= {f"{prefix}requests": str(load.requests), f"{prefix}elapsed_ns": str(load.elapsed_ns)}
    for of in figures.members:
        prefix = "drv_" if table == REQUESTS else ""
        yield row | whole | {
            "device": of.device, f"{prefix}reads": str(of.reads), f"{prefix}writes": str(of.writes),
            "read_sizes": _sizes(of.read_sizes), "write_sizes": _sizes(of.write_sizes),
            "trace_sha1": of.trace_sha1 or "",
        } | (
            {"drv_read_sectors": str(of.read_sectors), "drv_write_sectors": str(of.write_sectors)}
            if table == REQUESTS
            else {"order_sha1": of.order_sha1 or ""}
        )  # fmt: skip


def _sizes(of: dict[int, int]) -> str:
    return ";".join(f"{sectors}:{count}" for sectors, count in sorted(of.items(), key=lambda item: -item[1]))


def elevators() -> list[Row]:
    """Cases of elevators.csv: every scheduler, load, size and depth."""
    loads = ("randread", "randwrite", "mix", "mixw", "two", "rwseq", "prio", "seqmerge")
    rows = []
    for level, scheduler in product(("single", "raid10n2"), ("none", "mq-deadline", "bfq", "kyber")):
        shapes = [(op, *shape) for op, *shape in product(loads, ("4", "64"), ("8", "64"))]
        for op, size, depth in [*shapes, ("bufwrite", "1024", "1"), ("bufread", "1024", "1")]:
            if op == "seqmerge" and size == "64":
                continue
            name = f"el-{_array(level, '512')}-{op}-bs{size}" + (f"-d{depth}" if size != "1024" else "")
            name += "" if scheduler == "mq-deadline" else f"-{scheduler}"
            row = {"case": name, "level": level, "scheduler": scheduler, "op": op, "bs_kib": size, "depth": depth}
            rows.append(row | {"count": COUNTS.get(op, "1200")})
    return rows


def requests() -> list[Row]:
    """Cases of requests.csv, family by family."""
    return list(_requests())


def _requests() -> Iterator[Row]:
    yield from _usual()
    yield from _chunks()
    yield from _degraded()
    yield from _settings()
    yield from _mirrors_and_parity()


def _usual() -> Iterator[Row]:
    """Families a to f with chunks of 512 KiB."""
    for level in LEVELS:
        for ahead in ("default", "0", "16", "128", "1024", "4096"):
            yield _row("a", level, "bufread", "1024", "64", ra_kib=ahead)
        for (size, count), ahead in product((("4", "4096"), ("64", "512")), ("default", "0", "128")):
            yield _row("a", level, "bufread", size, count, ra_kib=ahead)
        yield _row("b", level, "bufwrite", "1024", "64")
        yield _row("b", level, "bufwrite", "1024", "160", mem="512M")
        yield from _direct(level, "512", ("64", "1024"), ("1", "8"))
        yield from _random(level, "512", ("4", "64"), ("1", "8", "32"))
        yield _row("e", level, "bufrandwrite-fsync", "4", "300")
        for fs in ("ext4", "xfs"):
            yield _row("f", level, "append-fsync", "0", "1000", fs=fs)
            yield _row("f", level, "bufwrite", "1024", "64", fs=fs)
            yield _row("f", level, "bufread", "1024", "64", fs=fs)


def _chunks() -> Iterator[Row]:
    """Families a to d with other chunks."""
    for level, chunk in product(CHUNKED, ("64", "128", "256", "1024")):
        for ahead in ("default", "128", "1024", "4096"):
            yield _row("a", level, "bufread", "1024", "64", chunk_kib=chunk, ra_kib=ahead)
        yield _row("b", level, "bufwrite", "1024", "64", chunk_kib=chunk)
        if chunk != "256":
            yield from _direct(level, chunk, ("1024",), ("1", "8"))
            yield from _random(level, chunk, ("64",), ("1", "8"))


def _degraded() -> Iterator[Row]:
    """Family g."""
    for level in LEVELS[1:]:
        for gone in {"raid0": (), "raid6": ("1", "2")}.get(level, ("1",)):
            yield _row("g", level, "bufread", "1024", "64", degraded=gone)
            yield _row("g", level, "bufwrite", "1024", "64", degraded=gone)
            for row in (*_direct(level, "512", ("1024",), ("8",)), *_random(level, "512", ("4", "64"), ("8",))):
                yield row | {"case": f"g{row['case'][1:]}-deg{gone}", "degraded": gone}


def _settings() -> Iterator[Row]:
    """Families s, t and u: schedulers, longest requests, drives that do not rotate."""
    for level, scheduler in product(("single", "raid0", "raid1", "raid10n2", "raid5"), ("none", "bfq", "kyber")):
        yield _row("s", level, "bufread", "1024", "64", scheduler=scheduler)
        yield _row("s", level, "bufwrite", "1024", "64", scheduler=scheduler)
        yield _row("s", level, "directread", "64", "512", depth="8", scheduler=scheduler)
        yield _row("s", level, "randread", "4", "1000", depth="32", scheduler=scheduler)
        yield _row("s", level, "randwrite", "4", "1000", depth="32", scheduler=scheduler)
    for level, limit in product(("raid0", "raid1", "raid10n2", "raid5", "raid6"), ("128", "512")):
        yield _row("t", level, "bufread", "1024", "64", max_sectors_kib=limit)
        yield _row("t", level, "bufwrite", "1024", "64", max_sectors_kib=limit)
        yield _row("t", level, "directwrite", "1024", "64", depth="8", max_sectors_kib=limit)
    for level in ("single", "raid1", "raid10n2", "raid10f2", "raid10o2"):
        yield _row("u", level, "bufread", "1024", "64", rotational="0")
        yield _row("u", level, "directread", "64", "512", depth="8", rotational="0")
        yield _row("u", level, "directread", "1024", "64", depth="8", rotational="0")
        for depth in ("1", "8", "32"):
            yield _row("u", level, "randread", "4", "1000", depth=depth, rotational="0")


def _mirrors_and_parity() -> Iterator[Row]:
    """Families h, i, k and r: stripe caches, bitmaps, part stripes, checks and rebuilds."""
    for level, cache in product(PARITY, ("1024", "4096")):
        yield _row("h", level, "bufread", "1024", "64", stripe_cache=cache)
        yield _row("h", level, "bufwrite", "1024", "64", stripe_cache=cache)
        yield _row("h", level, "directwrite", "1024", "64", depth="8", stripe_cache=cache)
        yield _row("h", level, "randwrite", "4", "1000", depth="32", stripe_cache=cache)
        yield _row("h", level, "randwrite", "64", "500", depth="32", stripe_cache=cache)
    for level in LEVELS[1:]:
        if level != "raid0":
            yield _row("i", level, "bufwrite", "1024", "64", bitmap="internal")
            yield _row("i", level, "bufrandwrite-fsync", "4", "300", bitmap="internal")
            yield _row("i", level, "randwrite", "4", "1000", bitmap="internal")
            yield _row("i", level, "randwrite", "4", "1000", depth="32", bitmap="internal")
            yield _row("r", level, "check", "1024", "128", size_mib="130")
            yield _row("r", level, "rebuild", "1024", "128", size_mib="130")
            yield _row("r", level, "rebuild-limit20000", "1024", "128", size_mib="130")
    for level, size, cache in product(PARITY, ("128", "192"), ("256", "4096")):
        yield _row("k", level, "directwrite", size, "256", chunk_kib="64", stripe_cache=cache)
    for level, chunk, cache in (("raid5", "64", "256"), ("raid5", "512", "4096"), ("raid6", "512", "4096")):
        for operation in ("check", "rebuild"):
            yield _row("r", level, operation, "1024", "128", chunk_kib=chunk, stripe_cache=cache, size_mib="130")


def _direct(level: str, chunk: str, sizes: tuple[str, ...], depths: tuple[str, ...]) -> Iterator[Row]:
    for operation, size, depth in product(("directread", "directwrite"), sizes, depths):
        yield _row("c", level, operation, size, "512" if size == "64" else "64", chunk_kib=chunk, depth=depth)


def _random(level: str, chunk: str, sizes: tuple[str, ...], depths: tuple[str, ...]) -> Iterator[Row]:
    for operation, size, depth in product(("randread", "randwrite"), sizes, depths):
        yield _row("d", level, operation, size, "1000" if size == "4" else "500", chunk_kib=chunk, depth=depth)


def _row(family: str, level: str, operation: str, size: str, count: str, **others: str) -> Row:
    """A case by what differs from DEFAULTS, and its name."""
    row = DEFAULTS | {"level": level, "op": operation, "bs_kib": size, "count": count}
    if level in CHUNKED:
        row["chunk_kib"] = "512"
    if level in PARITY:
        row["stripe_cache"] = "256"
    row |= {key: value for key, value in others.items() if key != "chunk_kib" or level in CHUNKED}
    row["data_offset_sectors"] = "0" if level == "single" else OFFSET_SECTORS[row["chunk_kib"]]
    fs = f"-{row['fs']}" if row["fs"] else ""
    name = f"{family}-{_array(level, row.get('chunk_kib', ''))}{fs}-{operation}"
    name += f"-bs{size}" if size != "0" else ""
    name += f"-d{row['depth']}" if operation.startswith(("direct", "rand")) else ""
    suffixes = {"ra_kib": "ra", "stripe_cache": "sc", "max_sectors_kib": "maxsec", "rotational": "rot"}
    usual = DEFAULTS | {"stripe_cache": "256"}
    for key, short in suffixes.items():
        if row.get(key, usual[key]) != usual[key]:
            name += f"-{short}{row[key]}"
    name += {"internal": "-bitmap"}.get(row["bitmap"], "") + ("-throttled-160m" if row["mem"] == "512M" else "")
    name += f"-deg{row['degraded']}" if row["degraded"] != "0" else ""
    name += f"-{row['scheduler']}" if row["scheduler"] != "mq-deadline" else ""
    name += "-64m" if row["fs"] and operation == "bufread" else ""
    return row | {"case": name}


def _array(level: str, chunk: str) -> str:
    return f"{level}-c{chunk}" if level in CHUNKED else level


if __name__ == "__main__":
    main()
