"""Columns and tables as the schema and its migrations write them down."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Integer, MetaData, Text

Columns = list[Column[Any]]

CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}
"""SQLite: rows are in the order of their key, which is not stored twice."""

Key = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""

SEAL = "seal"


def tables() -> MetaData:
    """A new, empty set of tables, whose constraints get their names from their columns."""
    return MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )


def key() -> Column[int]:
    """The number of a row."""
    return Column("key", Key, primary_key=True)


def belongs(table: str, *, primary: bool = False, name: str | None = None, nullable: bool = False) -> Column[int]:
    """A reference to a row of another table; the row is deleted with it."""
    column = name or f"{table.removesuffix('s')}_key"
    return Column(column, Key, ForeignKey(f"{table}.key", ondelete="CASCADE"), primary_key=primary, nullable=nullable)


def refers(name: str, table: str, *, nullable: bool = False) -> Column[int]:
    """A reference to a row of another table, which cannot be deleted."""
    return Column(name, Key, ForeignKey(f"{table}.key"), nullable=nullable)


def texts(*names: str, nullable: bool = False, unique: bool = False) -> Columns:
    """Columns of text."""
    return [Column(name, Text, nullable=nullable, unique=unique) for name in names]


def bigs(*names: str, nullable: bool = False, primary: bool = False) -> Columns:
    """Columns of integers of 64 bits."""
    return [Column(name, BigInteger, nullable=nullable, primary_key=primary, autoincrement=False) for name in names]


def smalls(*names: str, nullable: bool = False) -> Columns:
    """Columns of integers of 32 bits."""
    return [Column(name, Integer, nullable=nullable) for name in names]


def numbers(*names: str, nullable: bool = False) -> Columns:
    """Columns of floating point numbers."""
    return [Column(name, Double, nullable=nullable) for name in names]


def ordinals(*names: str) -> Columns:
    """Columns of the primary key that count."""
    return [Column(name, Integer, primary_key=True, autoincrement=False) for name in names]


def named(*names: str) -> Columns:
    """Columns of the primary key that are text."""
    return [Column(name, Text, primary_key=True) for name in names]


def seal() -> Column[int]:
    """See spindle.store.seal."""
    return Column(SEAL, BigInteger, nullable=True)
