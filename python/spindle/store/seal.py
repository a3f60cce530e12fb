"""Seals: a digest in each row that has no document to be compared with. `spindle store check` finds changes by other
programs, and a campaign with a changed plan is not resumed.

Rows that come from a document are compared with it instead. A seal detects damage, not forgery: a program that can
write to the store can also make seals.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from math import isnan
from typing import Any

import msgspec
from sqlalchemy import Column, ColumnElement, Connection, Double, LargeBinary, Table, bindparam, select, update

from . import schema
from .columns import SEAL
from .database import insert_new, insert_row
from .errors import StoreError

SEALED = tuple(table for table in schema.metadata.sorted_tables if SEAL in table.c)
Row = Mapping[str, Any]


def seal_of(table: Table, row: Row) -> int:
    """64 bits of BLAKE2b over the table's name and all values of the row."""
    values = [_plain(column, row.get(column.name)) for column in table.c if _is_sealed(column)]
    data = msgspec.json.encode([str(table.name), *values])
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)


def sealed(table: Table, row: Row) -> dict[str, Any]:
    """The row with its seal. If the table has keys of its own, the key must be known."""
    return {**row, SEAL: seal_of(table, row)}


def is_whole(table: Table, row: Row) -> bool:
    """True if the row is unchanged since it was written."""
    return bool(row[SEAL] == seal_of(table, row))


def insert_sealed(connection: Connection, table: Table, row: Row) -> int:
    """Insert a row that gets a key, and return the key."""
    key = insert_row(connection, table, dict(row))
    connection.execute(update(table).where(table.c.key == key).values({SEAL: seal_of(table, {**row, "key": key})}))
    return key


def insert_new_sealed(connection: Connection, table: Table, rows: Iterable[Row]) -> None:
    """Insert the rows that do not exist yet, into a table without keys of its own."""
    insert_new(connection, table, [sealed(table, row) for row in rows])


def update_sealed(connection: Connection, table: Table, where: ColumnElement[bool], values: Row) -> int:
    """Change rows and their seals, and return their number. Raises StoreError if one is damaged: damage must not get
    a new seal.
    """
    rows = sealed_rows(connection, table, where)
    own = list(table.primary_key.columns)
    for row in rows:
        new = sealed(table, {**row, **values})
        this = [column == row[column.name] for column in own]
        connection.execute(update(table).where(*this).values({name: new[name] for name in (*values, SEAL)}))
    return len(rows)


def sealed_rows(connection: Connection, table: Table, where: ColumnElement[bool]) -> list[dict[str, Any]]:
    """The rows, unchanged. Raises StoreError if one is damaged."""
    rows = [dict(row) for row in connection.execute(select(table).where(where).with_for_update()).mappings()]
    if any(not is_whole(table, row) for row in rows):
        raise StoreError(
            f"table {table.name}: a row was changed since it was written; `spindle store check` says where"
        )
    return rows


def seal_all(connection: Connection, table: Table, where: ColumnElement[bool] | None = None) -> None:
    """Give every row a new seal, for rows that were inserted without their key."""
    own = list(table.primary_key.columns)
    query = select(*(column for column in table.c if not isinstance(column.type, LargeBinary)))
    rows = connection.execute(query if where is None else query.where(where)).mappings()
    found = [
        {f"own_{column.name}": row[column.name] for column in own} | {"new": seal_of(table, dict(row))} for row in rows
    ]
    if found:
        this = [column == bindparam(f"own_{column.name}") for column in own]
        connection.execute(update(table).where(*this).values({SEAL: bindparam("new")}), found)


def _is_sealed(column: Column[Any]) -> bool:
    """Contents have digests of their own. The key of a record identifies all its other rows, which are compared with
    its document.
    """
    if isinstance(column.type, LargeBinary) or column.name == SEAL:
        return False
    return column is not schema.records.c.key


def _plain(column: Column[Any], value: Any) -> Any:
    """The value as every database returns it."""
    if isinstance(column.type, Double) and isinstance(value, int | float):
        number = float(value) + 0.0  # never a negative zero
        return None if isnan(number) else number
    return ["bytes", value.hex()] if isinstance(value, bytes) else value
