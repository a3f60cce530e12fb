"""elbencho's `--csvfile`: a line for each phase, columns by name (csv-docs.md among its pages).

The figures are those of the end, when the slowest thread was done (`[last]`); those of the first thread's end are kept
under their own names. MiB/s are 2^20 bytes, times microseconds.
"""

from __future__ import annotations

import csv

from spindle.result.imported import PartialLatency, PartialOp, PartialStream

from .found import Repetition, known
from .numbers import amount, scaled, scaled_whole, whole
from .text import Text

MIB = 1 << 20
ASKED = (
    "label",
    "path type",
    "paths",
    "hosts",
    "threads",
    "dirs",
    "files",
    "file size",
    "block size",
    "direct io",
    "random",
    "random aligned",
    "io depth",
    "shared paths",
    "truncate",
    "command",
)
EXTRA = ("iops [first]", "mib/s [first]", "entries/s [first]", "time ms [first]", "cpu% [first]", "cpu% [last]", "cpu%")
OPERATIONS = {"rmfiles": "delete", "rmdirs": "delete", "mkdirs": "create", "statfiles": "stat", "stat": "stat"}


def looks(text: Text) -> bool:
    """True for its line of column names."""
    return any(_is_heading(line) for line in text.head.split("\n")[:200])


def _is_heading(line: str) -> bool:
    names = [_name(cell) for cell in line.split(",")]
    return "operation" in names and any(name.startswith("mib/s") for name in names) and "," in line


def _name(cell: str) -> str:
    """Remove the quotes and brackets that some versions have."""
    name = cell.strip().strip('"').lower()
    for part in ("first", "last", "min", "avg", "max"):
        if name.endswith((f" {part}", f" {part} done")):
            name = f"{name.rpartition(f' {part}')[0]} [{part}]"
    return name


def read(text: Text) -> list[Repetition]:
    """Read the phases. A phase repeated with the same parameters begins another repetition."""
    runs: list[dict[str, PartialStream]] = []
    version: str | None = None
    columns: list[str] = []
    reader = csv.reader(line.replace("\0", " ") for line in text.lines)
    try:
        for cells in reader:
            at = reader.line_num - 1
            if _is_heading(",".join(cells)):
                columns = [_name(cell) for cell in cells]
            elif columns and any(cell.strip() for cell in cells):
                if len(cells) != len(columns):
                    text.fail(at, f"{len(cells)} values under {len(columns)} columns: cut off")
                row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
                version = row.get("version") or version
                stream = _stream(text, at, row)
                if stream is None:
                    continue
                if not runs or stream.name in runs[-1]:
                    runs.append({})
                runs[-1][stream.name] = stream
    except csv.Error as error:
        text.fail(reader.line_num - 1, f"not CSV ({error})")
    return [
        Repetition(
            tool="elbencho",
            version=version,
            workload=next((label for s in run.values() if (label := s.settings.get("label"))), None),
            streams=[
                PartialStream(
                    name=s.name,
                    group=at,
                    seconds=s.seconds,
                    operations=s.operations,
                    settings=s.settings,
                    extra=s.extra,
                )
                for at, s in enumerate(run.values())
            ],
        )
        for run in runs
    ]


def _stream(text: Text, at: int, row: dict[str, str]) -> PartialStream | None:
    operation = row["operation"].lower()
    if not operation or len(operation) > 40:
        text.fail(at, "no operation")
    operations = {
        OPERATIONS.get(operation, "write" if operation.startswith("rwmix") else operation): _operation(row, "")
    }
    if any(row.get(f"rwmix read {name} [last]") for name in ("iops", "mib/s")):
        operations["read"] = _operation(row, "rwmix read ")
    operations = {name: op for name, op in operations.items() if op != PartialOp()}
    if not operations:
        return None  # sync, drop of caches
    moves = any(op.bytes_per_s is not None for op in operations.values())
    depth = row.get("io depth", "") if moves else ""
    block = whole(row.get("block size")) if moves else None
    parts = [
        operation,
        "random" if row.get("random") == "1" else "",
        _size(block) if block else "",
        f"{row['threads']}t" if row.get("threads") else "",
        f"{depth}d" if depth and depth != "1" else "",
        f"{row['hosts']}h" if row.get("hosts", "1") not in ("", "1") else "",
    ]
    return PartialStream(
        name="-".join(part for part in parts if part),
        seconds=scaled(row.get("time ms [last]"), 1e-3),
        operations=operations,
        settings={name: row[name] for name in ("iso date", *ASKED) if row.get(name)},
        extra={name: value for name in EXTRA if (value := amount(row.get(name))) is not None},
    )


def _size(size: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size % 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}TiB"


def _operation(row: dict[str, str], prefix: str) -> PartialOp:
    """Return the operation; of files and directories without data: entries per second."""
    iops = amount(row.get(f"{prefix}iops [last]"))
    rate = scaled(row.get(f"{prefix}mib/s [last]"), MIB)
    entries = iops is None and rate is None
    times = f"{prefix}{'ent' if entries else 'io'} lat us"
    return PartialOp(
        requests=whole(row.get(f"{prefix}entries [last]")) if entries else None,
        bytes=scaled_whole(row.get(f"{prefix}mib [last]"), MIB),
        iops=amount(row.get(f"{prefix}entries/s [last]")) if entries else iops,
        bytes_per_s=rate,
        latency=known(
            PartialLatency(
                min_ns=scaled_whole(row.get(f"{times} [min]"), 1e3),
                mean_ns=scaled(row.get(f"{times} [avg]"), 1e3),
                max_ns=scaled_whole(row.get(f"{times} [max]"), 1e3),
            )
        ),
    )
