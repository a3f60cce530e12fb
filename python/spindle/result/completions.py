"""Reader of completion logs (`log=` of a run, docs/reference/log.md)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COLUMNS = (
    "time_ns",
    "latency_ns",
    "service_ns",
    "operation",
    "file",
    "offset",
    "bytes",
    "stream",
    "worker",
)
"""First line of a log; the core writes it (`crates/engine/src/log.rs`)."""


class Completion(NamedTuple):
    """One line: a request, or an fsync, that was completed."""

    time_ns: int
    """Time of its completion, from the start of the run, ramp included."""
    latency_ns: int
    """From its issue; in an open loop from its intended start."""
    service_ns: int
    """From its issue."""
    operation: str
    """`read`, `write`, `trim`, `zero`, `fsync` ..."""
    file: int
    """Number of the file within the stream; 0 if the stream has one file."""
    offset: int
    """First byte in the file; 0 for an fsync."""
    bytes: int
    stream: str
    worker: int


class NotALog(ValueError):
    """The file is not a completion log, or is damaged. The message has one line and names the place."""


def completions(path: Path) -> Iterator[Completion]:
    """Yield the lines in file order: one worker's lines are sorted by time, those of several nearly so. Needs memory
    for one line. Raises NotALog, OSError.
    """
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        lines = csv.reader(file)
        if tuple(next(lines, ())) != COLUMNS:
            raise NotALog(f"{path}:1: not a completion log; `spindle run` with `log=FILE` writes one")
        for line in lines:
            try:
                time, latency, service, operation, number, offset, length, stream, worker = line
                yield Completion(
                    int(time),
                    int(latency),
                    int(service),
                    operation,
                    int(number),
                    int(offset),
                    int(length),
                    stream,
                    int(worker),
                )
            except ValueError:
                raise NotALog(f"{path}:{lines.line_num}: not a line of a completion log") from None
