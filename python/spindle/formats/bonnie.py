"""bonnie++'s CSV: formats 1.96 to 2.00, and the 27 fields of 1.03 without a version; and its tables
(`bonnie_table`), if no CSV follows them.

The order of the fields is that of bon_csv2html(1). Rates are KiB/s, files/s or seeks/s; `+++++` means that it was too
fast to be measured, an empty field that it was not run. The latencies are the worst of each phase.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from spindle.result.imported import PartialLatency, PartialOp, PartialStream

from . import bonnie_table
from .found import Repetition
from .numbers import amount, scaled, time_ns
from .text import Text

TOO_FAST = re.compile(r"\++")
KIB = 1024.0
PHASES = (
    ("char-write", "write", True),
    ("block-write", "write", True),
    ("rewrite", "rewrite", True),
    ("char-read", "read", True),
    ("block-read", "read", True),
    ("seeks", "seek", False),
    ("sequential-create", "create", False),
    ("sequential-stat", "stat", False),
    ("sequential-delete", "delete", False),
    ("random-create", "create", False),
    ("random-stat", "stat", False),
    ("random-delete", "delete", False),
)
"""(stream, operation, True if its rate is KiB/s); each has a rate and a CPU share, in this order."""
_VERSIONED = re.compile(r"(1\.9[6-9]|2\.\d\d?)[a-z]?,[^,\n]*,[^,\n]*,\d*,", re.M)
_OLD = re.compile(r"[^,\s<>\"]+,\d+[KMG]?(:\d+[kKMG]?)?,(\d+|\+*)?,(\d+|\+*)?,", re.M)


def looks(text: Text) -> bool:
    """True for a line of 48, 50 or 27 fields with their beginning, or a table."""
    return any(_layout(line) for line in text.head.split("\n")) or bonnie_table.looks(text)


def read(text: Text) -> list[Repetition]:
    """Read a run per line. bonnie++ prints the table of a run, then its line: the table is not another run."""
    found = []
    begun = 0
    for at, line in enumerate(text.lines):
        begins = _VERSIONED.match(line) or (_OLD.match(line) if line.count(",") >= 26 else None)
        if begins is None:
            continue
        layout = _layout(line)
        if layout is None:
            text.fail(at, f"{line.count(',') + 1} fields, where bonnie++ writes 48 or 50: cut off")
        run = _run(text, at, next(csv.reader([line])), layout)
        pending = bonnie_table.tables(text, range(begun, at))
        found += [_of_table(text, table) for table in pending[:-1]]
        found.append(run)
        begun = at + 1
    return found + [_of_table(text, table) for table in bonnie_table.tables(text, range(begun, len(text.lines)))]


def _of_table(text: Text, table: bonnie_table.Table) -> Repetition:
    settings = {"file size": table.size, "files": table.files}
    return Repetition(
        tool="bonnie++",
        version=table.version,
        host=table.host or None,
        settings={name: value for name, value in settings.items() if value},
        streams=list(_streams(text, table.at, table.rates, table.latencies)),
    )


def _layout(line: str) -> str | None:
    fields = line.count(",") + 1
    if _VERSIONED.match(line):
        return {48: "1.96", 49: "1.96", 50: "1.98"}.get(fields)
    return "1.03" if fields == 27 and _OLD.match(line) else None


def _run(text: Text, at: int, fields: Sequence[str], layout: str) -> Repetition:
    if layout == "1.03":
        settings = {"file size": fields[1], "files": fields[14]}
        rates, latencies = [*fields[2:14], *fields[15:27]], [""] * len(PHASES)
        version, host = None, fields[0]
    else:
        extra = 2 if layout == "1.98" else 0  # the number of seeks and of seeking processes
        version, host = fields[1], fields[2]
        settings = {
            "format": fields[0],
            "concurrency": fields[3],
            "seed": fields[4],
            "file size": fields[5],
            "chunk size": fields[6],
            **({"seeks": fields[7], "seekers": fields[8]} if extra else {}),
        }
        start = 7 + extra
        names = ("files", "largest file", "smallest file", "directories", "file chunk size")
        settings |= dict(zip(names, fields[start + 12 : start + 17], strict=True))
        rates = [*fields[start : start + 12], *fields[start + 17 : start + 29]]
        latencies = list(fields[start + 29 : start + 41])
    return Repetition(
        tool="bonnie++",
        version=version,
        host=host or None,
        settings={name: value for name, value in settings.items() if value},
        streams=list(_streams(text, at, rates, latencies)),
    )


def _streams(text: Text, at: int, rates: Sequence[str], latencies: Sequence[str]) -> Iterator[PartialStream]:
    for place, (name, operation, in_kib) in enumerate(PHASES):
        rate, cpu, worst = rates[2 * place], rates[2 * place + 1], latencies[place]
        if not rate and not worst:
            continue  # it was not run
        value, latency = amount(rate), time_ns(worst) if worst else None
        if rate and value is None and not TOO_FAST.fullmatch(rate):
            text.fail(at, f"{name}: {rate[:30]!r} is not a rate")
        if worst and latency is None and not TOO_FAST.fullmatch(worst):
            text.fail(at, f"{name}: {worst[:30]!r} is not a latency")
        share = amount(cpu)
        yield PartialStream(
            name=name,
            group=place,
            operations={
                operation: PartialOp(
                    iops=None if in_kib else value,
                    bytes_per_s=scaled(value, KIB) if in_kib else None,
                    latency=None if latency is None else PartialLatency(max_ns=latency),
                )
            },
            extra={} if share is None else {"%CP": share},
        )
