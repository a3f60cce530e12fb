"""Facts about a store, and release of the space of removed objects."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from . import schema
from .check import count
from .connection import in_words
from .database import Database
from .filesystem import type_of
from .upgrade import version

COUNTED = ("records", "runs", "campaigns", "trials", "recordings", "samples", "artefacts")


@dataclass(frozen=True, kw_only=True)
class Info:
    """Facts about a store."""

    place: str
    database: str
    """Name and version."""
    schema: str
    journal: str | None
    """SQLite: `wal`, or `delete` if that is unsafe."""
    file_system: str | None
    size_bytes: int
    counts: dict[str, int]
    tags: int


def info(database: Database) -> Info:
    """Read the facts."""
    file = database.place.file

    def work(connection: Connection) -> Info:
        is_sqlite = connection.dialect.name == "sqlite"
        engine_version = connection.execute(
            text("SELECT sqlite_version()" if is_sqlite else "SHOW server_version")
        ).scalar()
        size = _size(file) if file is not None else connection.execute(text(_SERVER_SIZE)).scalar()
        return Info(
            place=str(database.place),
            database=f"{'SQLite' if is_sqlite else 'PostgreSQL'} {engine_version}",
            schema=version(connection) or "",
            journal=connection.execute(text("PRAGMA journal_mode")).scalar() if is_sqlite else None,
            file_system=type_of(file) if file is not None else None,
            size_bytes=int(size or 0),
            counts={name: count(connection, schema.metadata.tables[name]) for name in COUNTED},
            tags=connection.execute(text("SELECT count(DISTINCT tag) FROM tags")).scalar_one(),
        )

    return database.read(work)


def vacuum(database: Database) -> tuple[int, int]:
    """Release space: bytes before and after."""
    before = info(database).size_bytes
    try:
        if database.place.file is not None:
            _vacuum_file(database)
        else:
            with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM (FULL, ANALYZE)")
    except (DBAPIError, sqlite3.Error) as error:
        raise in_words(error, database.place) from None
    return before, info(database).size_bytes


def _vacuum_file(database: Database) -> None:
    """Vacuum without SQLAlchemy, which would begin a transaction."""
    connection = database.engine.raw_connection()
    try:
        driver = connection.driver_connection
        assert driver is not None
        for command in ("VACUUM", "ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"):
            driver.execute(command).fetchall()
    finally:
        connection.close()


_SERVER_SIZE = "SELECT pg_database_size(current_database())"


def _size(file: Path) -> int:
    """Size of the file with its log."""
    sizes = 0
    for suffix in ("", "-wal"):
        try:
            sizes += os.stat(f"{file}{suffix}").st_size
        except FileNotFoundError:
            continue
    return sizes
