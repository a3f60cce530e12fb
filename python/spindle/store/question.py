"""Read-only SQL queries: the database itself enforces that a query only reads.

SQLite: a read-only connection with an authorizer, which SQLite calls for each action of the statement while compiling
it (https://www.sqlite.org/c3ref/set_authorizer.html). PostgreSQL: one statement, by the extended query protocol, which
refuses a second one; in a READ ONLY transaction that has begun reading, so that its mode is fixed (PostgreSQL manual,
SET TRANSACTION); as the query of a cursor, which the grammar limits to SELECT, VALUES and TABLE.
docs/reference/store.md says what only the rights of the role can prevent.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from .connection import Say
from .errors import StoreUsage

if TYPE_CHECKING:
    import psycopg

Value = str | int | float | bytes | None
Answer = tuple[list[str], list[tuple[Value, ...]]]

_WORDS = ("select", "with", "values", "table", "explain", "show", "pragma", "(")
_SILENCE = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)+", re.S)
_EXPLAINS = re.compile(
    r"explain\s+((query\s+plan|analyze|verbose|\([^()]*\))\s*)*(\b(select|with|values|table)\b|\()", re.I
)
_STEPS = 10_000
"""SQLite's instructions between two checks for Ctrl-C: about 0.1 ms."""
_LARGEST = 2**63


def ask(engine: Engine, sql: str, say: Say) -> Answer:
    """Return the names of columns, and rows. `say` receives a warning if the role may do more than read. Raises
    StoreUsage, KeyboardInterrupt, and the driver's exceptions.
    """
    if "\0" in sql:
        raise StoreUsage("SQL: the query contains a NUL character")
    begins = _SILENCE.sub("", sql, count=1) if _SILENCE.match(sql) else sql
    word = re.match(r"\(|\w*", begins)
    first = word[0].lower() if word is not None else ""
    if first not in _WORDS:
        raise StoreUsage(f"SQL: `{first or begins[:20]}` is not a query; a query begins with SELECT, WITH or VALUES")
    if first == "explain" and _EXPLAINS.match(begins) is None:
        raise StoreUsage("SQL: EXPLAIN takes a query, which begins with SELECT, WITH or VALUES")
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        try:
            return (
                _of_file(driver, begins) if engine.dialect.name == "sqlite" else _of_server(driver, begins, first, say)
            )
        finally:
            connection.invalidate()  # settings that a server's function made end with the session


# --- SQLite ----------------------------------------------------------------------------------------------------------

_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_FUNCTIONS_THAT_ACT = {"load_extension", "writefile", "edit", "fts3_tokenizer"}
_PRAGMAS = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
"""Pragmas that describe tables; others change the connection or the file."""
_TABLE_FUNCTIONS = ("json_each", "json_tree", *(f"pragma_{name}" for name in sorted(_PRAGMAS - {"table_list"})))


def _of_file(connection: sqlite3.Connection, sql: str) -> Answer:
    connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
    for table in _TABLE_FUNCTIONS:  # their first use declares a table, which is more than the authorizer allows
        connection.execute(f"SELECT 1 FROM {table}('[]')")
    connection.set_authorizer(_allowed)
    # Each call lets Python handle Ctrl-C, which ends an endless query.
    connection.set_progress_handler(lambda: 0, _STEPS)
    try:
        cursor = connection.execute(sql)
        names = [str(column[0]) for column in cursor.description or ()]
        return names, [tuple(_plain(value) for value in row) for row in cursor]
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            raise KeyboardInterrupt from None
        raise
    except (sqlite3.Warning, sqlite3.ProgrammingError) as error:  # several statements, or parameters
        raise StoreUsage(f"SQL: {str(error).rstrip('.').lower()}; give one query") from None


def _allowed(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if str(second).lower() in _FUNCTIONS_THAT_ACT else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA:
        return sqlite3.SQLITE_OK if str(first).lower() in _PRAGMAS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


def _of_server(connection: psycopg.Connection[Any], sql: str, first: str, say: Say) -> Answer:
    try:
        with connection.cursor() as cursor:
            _execute(cursor, "BEGIN TRANSACTION READ ONLY")
            # The first query takes the snapshot: from now on the transaction cannot become a writing one.
            _execute(cursor, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
            if (_rows(cursor) or [(0,)])[0][0]:
                say("a superuser can call functions that write; `spindle help store` has a role that only reads")
            if first in ("explain", "show"):
                _execute(cursor, sql)
            else:
                _execute(cursor, "SET LOCAL cursor_tuple_fraction = 1")  # the plan is for all rows
                _execute(cursor, f"DECLARE question NO SCROLL CURSOR FOR {sql}")
                _execute(cursor, "FETCH ALL FROM question")
            return [column.name for column in cursor.description or ()], _rows(cursor)
    finally:
        if not connection.closed:
            connection.rollback()


def _execute(cursor: psycopg.Cursor[Any], sql: str) -> None:
    """Execute by the extended protocol, which refuses a second statement."""
    cursor.execute(sql.encode(), prepare=True)


def _rows(cursor: psycopg.Cursor[Any]) -> list[tuple[Value, ...]]:
    """Convert the server's text: Python's types do not cover all of PostgreSQL's (dates, numbers)."""
    result = cursor.pgresult
    if result is None:
        return []
    types = [_TYPES.get(result.ftype(at), _text) for at in range(result.nfields)]
    return [
        tuple(
            None if (value := result.get_value(row, at)) is None else types[at](value) for at in range(result.nfields)
        )
        for row in range(result.ntuples)
    ]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _number(value: bytes) -> Value:
    text = value.decode()
    try:
        return _plain(int(text)) if text.lstrip("-").isdigit() else _plain(float(text))
    except ValueError:  # more digits than Python converts
        return text


def _hexadecimal(value: bytes) -> bytes:
    return bytes.fromhex(value.decode().removeprefix("\\x"))


_TYPES: dict[int, Callable[[bytes], Value]] = {
    **dict.fromkeys((20, 21, 23, 26, 700, 701, 1700), _number),  # int8, int2, int4, oid, float4, float8, numeric
    16: lambda value: int(value == b"t"),
    17: _hexadecimal,
}
"""By type number in pg_type.dat."""


def _plain(value: Any) -> Value:
    """A value for JSON, CSV and tables: `inf`, `nan` and integers beyond 64 bits as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not -_LARGEST <= value < 2 * _LARGEST:
        return str(value)
    return value  # type: ignore[no-any-return]
