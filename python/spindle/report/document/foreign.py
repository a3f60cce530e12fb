"""Results imported from other tools' files: their figures unchanged, with their verdict."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.report.document.entry import Entry
from spindle.report.document.model import Block, Sheet
from spindle.report.terminal import imported
from spindle.report.terminal.table import Column
from spindle.result.record import ImportedRecord


def blocks(entries: Sequence[Entry]) -> list[Block]:
    """Return tables of each record, unknown figures as `-`."""
    found: list[Block] = []
    for entry in entries:
        record = entry.record
        if isinstance(record, ImportedRecord):
            title = f"{imported.title(record)}, from {record.source.file}"
            for columns, rows in imported.tables(record):
                with_verdict = [[*row, record.level] for row in rows]
                found.append(
                    Sheet(title, [*columns, Column("verdict", words=True)], with_verdict, folded=len(rows) > 24)
                )
    return found
