"""fio's `--output-format`: the requested formats, and records in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spindle.result.record import Record

from . import fio_terse_writer, fio_writer
from .fio_writer import ReportOptions

NAMES = ("normal", "terse", "json", "json+")
"""Names in fio's HOWTO."""
ALIASES = {"minimal": "terse", "csv": "terse", "fio-json": "json", "fio-json+": "json+", "fio-terse": "terse"}
"""fio's other names, and those of the readers of these formats."""


@dataclass(frozen=True)
class OutputFormats:
    """The formats of one output. fio always writes them in this order."""

    terse: bool = False
    json: bool = False
    bins: bool = False
    """`json+`: JSON with the counts of all latencies."""
    normal: bool = False
    """A page for people."""
    terse_version: int = fio_terse_writer.VERSION


def parse(text: str, terse_version: int = fio_terse_writer.VERSION) -> OutputFormats:
    """Parse names separated by commas. Raises ValueError with the unknown name."""
    names = {ALIASES.get(name, name) for name in text.split(",")}
    if unknown := names.difference(NAMES):
        raise ValueError(min(unknown))
    return OutputFormats(
        terse="terse" in names,
        json=bool(names & {"json", "json+"}),
        bins="json+" in names,
        normal="normal" in names,
        terse_version=terse_version,
    )


def write(records: Record | Sequence[Record], wanted: OutputFormats, shape: ReportOptions | None = None) -> bytes:
    """Write all formats but the page. Raises `Unreadable` for imported results."""
    shape = shape or ReportOptions()
    found = b""
    if wanted.terse:
        found += fio_terse_writer.write(records, shape, wanted.terse_version)
    if wanted.json:
        found += fio_writer.write(records, shape, wanted.bins)
    return found
