"""Connections to the database: pragmas of SQLite, time limits of PostgreSQL, and errors of both as one line."""

from __future__ import annotations

import errno
import importlib.util
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from .errors import StoreError, StoreUsage
from .filesystem import is_unsafe, type_of
from .place import StorePlace

BUSY_S = 30
"""How long a writer waits for another."""
CONNECT_S = 10

Say = Callable[[str], None]


def connect(place: StorePlace, *, read_only: bool, create: bool, say: Say) -> Engine:
    """Make an engine. It reads nothing yet. Raises StoreError."""
    return _sqlite(place.file, read_only, create, say) if place.file is not None else _postgres(place, read_only)


def _sqlite(file: Path, read_only: bool, create: bool, say: Say) -> Engine:
    _look_at(file, create and not read_only)
    unsafe = type_of(file)
    journal = "wal"
    if is_unsafe(unsafe):
        journal = "delete"
        if not read_only:
            say(
                f"{file}: on {unsafe}, where SQLite's write-ahead log is unsafe: a rollback journal is used; "
                "readers and the writer wait for each other"
            )
    address = f"{file.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    if read_only and journal == "wal" and not os.access(file.parent, os.W_OK) and not _beside(file, "-wal").exists():
        address += "&immutable=1"  # nobody can write to it, and the log's index cannot be made

    def connection() -> sqlite3.Connection:
        opened = sqlite3.connect(
            address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            _set_up(opened, journal, read_only)
        except BaseException as error:
            opened.close()
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
                text = f"{file}: not a store (not a database of SQLite); nothing was changed, name another file"
                raise StoreUsage(text) from None
            raise
        return opened

    engine = create_engine("sqlite://", creator=connection, poolclass=QueuePool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # By default, the driver begins a read transaction and fails when it has to write later.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _set_up(opened: sqlite3.Connection, journal: str, read_only: bool) -> None:
    opened.execute("PRAGMA schema_version")  # reads the file: one of another kind is found here
    opened.execute("PRAGMA foreign_keys=ON")
    opened.execute(f"PRAGMA busy_timeout={BUSY_S * 1000}")
    if read_only:
        opened.execute("PRAGMA query_only=ON")
        return
    opened.execute(f"PRAGMA journal_mode={journal}")
    # FULL: a commit is on the disk when it returns. EXTRA: so is the end of its rollback journal.
    opened.execute(f"PRAGMA synchronous={'FULL' if journal == 'wal' else 'EXTRA'}")


def is_database(file: Path) -> bool:
    """True if it is a database of SQLite. Only SQLite opens it, see `_look_at`."""
    try:
        if not file.is_file() or file.stat().st_size == 0:
            return False
        opened = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)
    except (OSError, sqlite3.Error):
        return False  # the reader's error says why
    try:
        opened.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        return error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN)
    finally:
        opened.close()
    return True


def _look_at(file: Path, create: bool) -> None:
    """Check the file; the messages are clearer than SQLite's.

    It is not opened: closing it would drop the locks that SQLite has on it in this process, and another process that
    closes the store would take the write-ahead log away.
    """
    try:
        if file.is_dir():
            raise StoreUsage(f"{file}: a folder; give the file of a store, for example {file / 'store.db'}")
        if not file.exists():
            if not create:
                raise StoreUsage(f"{file}: no such store; `spindle run` with `store=True` makes one")
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return
        if not file.is_file():
            raise StoreUsage(f"{file}: not a regular file; name another file")
        if not os.access(file, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise StoreError(f"{file}: the store cannot be opened: {text}; check its name and rights") from None


def _beside(file: Path, suffix: str) -> Path:
    return file.with_name(file.name + suffix)


def _postgres(place: StorePlace, read_only: bool) -> Engine:
    assert place.url is not None
    if importlib.util.find_spec("psycopg") is None:
        raise StoreUsage(f"{place}: PostgreSQL needs its driver; pip install 'spindle[postgres]'")
    try:
        url = make_url(place.url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError) as error:
        raise StoreUsage(f"{place}: not a URL of a database ({error}); give postgresql://USER@HOST/DATABASE") from None
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_S,
        "application_name": "spindle",
        # A commit that returned is on the server's disk, whatever the server's default.
        "options": "-c synchronous_commit=on -c timezone=UTC"
        + (" -c default_transaction_read_only=on" if read_only else ""),
    }
    return create_engine(url, connect_args=options, pool_pre_ping=True)


def is_lost(error: DBAPIError) -> bool:
    """True if the server went away: a new connection may succeed."""
    return bool(error.connection_invalidated) or "connection" in type(error.orig).__name__.lower()


def may_come_back(error: DBAPIError) -> bool:
    """True if a later attempt may succeed: the server restarts, or two transactions conflict."""
    if isinstance(error.orig, sqlite3.Error):
        return False
    if is_lost(error):
        return True
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return str(state).startswith(_PASSING)
    text = str(error.orig).lower()  # an attempt to connect has no state
    return isinstance(error, OperationalError) and not any(word in text for word in _LASTING)


_PASSING = ("08", "40", "57P", "53300", "55006")
"""SQLSTATE (PostgreSQL manual, appendix A): connection, rollback of a conflict, shutdown and start, too many
connections, object in use."""
_LASTING = ("authentication failed", "password", "does not exist", "pg_hba", "host name", "resolve host", "invalid")


def in_words(error: Exception, place: StorePlace) -> StoreError:
    """One line for an error of the database."""
    text = str(getattr(error, "orig", None) or error).strip()
    first = text.splitlines()[0].strip() if text else type(error).__name__
    low = text.lower()
    for found, say in _SAYINGS:
        if found in low:
            return StoreError(f"{place}: {say}")
    if place.url is not None and "fatal:" in low and "does not exist" in low:
        return StoreError(f"{place}: {_last(text).removeprefix('FATAL:').strip()}; make it first, or check the URL")
    if place.url is not None and ("connection" in low or (isinstance(error, DBAPIError) and is_lost(error))):
        return StoreError(f"{place}: the server cannot be reached: {_last(text)}; check the URL, and that it runs")
    return StoreError(f"{place}: {first}; `spindle store check` looks for damage")


def _last(text: str) -> str:
    """The line with the reason, out of a driver's many."""
    line = next((line.strip() for line in text.splitlines() if "failed:" in line or "error:" in line.lower()), text)
    return line.rpartition("failed: ")[2].strip() or text.splitlines()[0]


_SAYINGS = (
    ("translate host name", "its host is not known; check the URL"),
    ("resolve host", "its host is not known; check the URL"),
    ("database is locked", f"another process has kept it locked for {BUSY_S} s; try again when it has ended"),
    ("database or disk is full", "the disk is full; nothing was stored, make room and try again"),
    ("no space left", "the server's disk is full; nothing was stored, make room and try again"),
    ("readonly database", "it cannot be written to; check the rights of the file and of its folder"),
    ("read-only transaction", "it was opened for reading only"),
    ("file is not a database", "not a store (not a database of SQLite); nothing was changed, name another file"),
    ("disk image is malformed", "damaged; `spindle store check` says where, and `spindle store export` saves the rest"),
    ("disk i/o error", "the disk reported an error; look into the kernel's log"),
    ("unable to open database file", "the file cannot be opened; check the rights of the file and of its folder"),
    ("password authentication failed", "the server refused user or password; check the URL"),
    ("no password supplied", "the server wants a password; give it in the URL, in $PGPASSWORD or in ~/.pgpass"),
    ("permission denied", "the server refused: permission denied; the user needs rights on the schema and its tables"),
)
