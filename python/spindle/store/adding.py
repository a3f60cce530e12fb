"""Records into the tables."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select

from spindle.result.document import decode, encode
from spindle.result.record import Record

from . import schema
from .database import insert_row, key_of
from .rows import (
    RunRows,
    canonical,
    device_interval_rows,
    digest,
    metric_rows,
    record_row,
    run_rows,
    runs_of,
    verdict_rows,
)
from .seal import insert_new_sealed, sealed
from .times import now
from .words import storable


@dataclass(frozen=True)
class StoredRecord:
    """A record in the store."""

    key: int
    id: str


@dataclass(frozen=True)
class Document:
    """A record that is ready to be stored, so that the transaction is short."""

    record: Record
    data: bytes
    sha256: str
    body: bytes
    runs: list[RunRows]
    metrics: list[dict[str, Any]]

    @classmethod
    def of(cls, record: Record, data: bytes | None = None) -> Document:
        """Make one. `data`: the original document, which is kept; else the record is encoded as for a file."""
        data = encode(record) if data is None else data
        record = decode(data, record.id)  # as every reader gets it: without control characters
        return cls(
            record=record,
            data=data,
            sha256=digest(data),
            body=zlib.compress(data, 6),
            metrics=metric_rows(record),
            runs=[run_rows(run, ordinal) for ordinal, run in enumerate(runs_of(record))],
        )


def add(connection: Connection, document: Document, tags: Iterable[str], source: str | None) -> StoredRecord:
    """Store the record, unless the same is stored already. An id that is used for other content gets `.2`, `.3` ..."""
    kept = _there(connection, document) or _insert(connection, document, source)
    tag(connection, [kept.key], tags)
    return kept


def tag(connection: Connection, keys: Iterable[int], tags: Iterable[str]) -> None:
    """Add each tag to each record."""
    names = list(dict.fromkeys(tags))
    insert_new_sealed(connection, schema.tags, [{"tag": name, "record_key": key} for key in keys for name in names])


def untag(connection: Connection, keys: Iterable[int], tags: Iterable[str]) -> None:
    """Remove each tag from each record."""
    table = schema.tags
    names = list(tags)
    for key in keys:
        connection.execute(delete(table).where(table.c.record_key == key, table.c.tag.in_(names)))


def _there(connection: Connection, document: Document) -> StoredRecord | None:
    table = schema.records.c
    own = document.record.id
    for key, name in connection.execute(
        select(table.key, table.id).where(table.sha256 == document.sha256).order_by(table.key)
    ):
        if name == own or name.rpartition(".")[0] == own:
            return StoredRecord(key, name)
    return None


def _insert(connection: Connection, document: Document, source: str | None) -> StoredRecord:
    name, number = document.record.id, 1
    while key_of(connection, schema.records, id=name) is not None:
        number += 1
        name = f"{document.record.id}.{number}"
    row = record_row(document.record) | {
        "id": name,
        "sha256": document.sha256,
        "size_bytes": len(document.data),
        "body": document.body,
        "added": now(),
        "source": storable(source) if source is not None else None,
    }
    key = insert_row(connection, schema.records, sealed(schema.records, row))
    for run in document.runs:
        _insert_run(connection, key, run)
    _insert_all(connection, schema.device_intervals, "record_key", key, device_interval_rows(document.record))
    _insert_all(connection, schema.metrics, "record_key", key, document.metrics)
    _insert_all(connection, schema.verdicts, "record_key", key, list(verdict_rows(document.record)))
    return StoredRecord(key, name)


def _insert_run(connection: Connection, record_key: int, rows: RunRows) -> None:
    keys = {
        "record_key": record_key,
        "settings_key": _settings(connection, rows.settings),
        "settings_after_key": _settings(connection, rows.settings_after),
        "environment_key": _once(connection, schema.environments, rows.environment, body=rows.environment)[0],
    }
    key = insert_row(connection, schema.runs, rows.run | keys)
    for name, found in rows.tables.items():
        _insert_all(connection, schema.metadata.tables[name], "run_key", key, found)


def _settings(connection: Connection, values: dict[str, str]) -> int:
    key, is_new = _once(connection, schema.settings_sets, canonical(values))
    if is_new:
        rows = [{"name": name, "value": value} for name, value in sorted(values.items())]
        _insert_all(connection, schema.settings, "set_key", key, rows)
    return key


def _once(connection: Connection, table: Table, content: str, **values: Any) -> tuple[int, bool]:
    """The key of the row with this content, and true if it was inserted now."""
    sha256 = digest(content)
    key = key_of(connection, table, sha256=sha256)
    return (key, False) if key is not None else (insert_row(connection, table, {"sha256": sha256, **values}), True)


def _insert_all(connection: Connection, table: Table, owner: str, key: int, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), [{owner: key, **row} for row in rows])


def opened(body: bytes) -> bytes:
    """The document of a row, uncompressed."""
    return zlib.decompress(body)
