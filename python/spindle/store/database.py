"""Transactions: atomic, repeated if the server went away, with errors in one line."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table, insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError

from spindle.host.signals import held_back

from .connection import Say, in_words, is_lost, may_come_back
from .errors import StoreError, StoreUsage
from .place import StorePlace
from .question import Answer, ask

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a write waits for a server that restarts."""
PAUSE_S = 0.25


class Database:
    """An engine with its place."""

    def __init__(self, engine: Engine, place: StorePlace) -> None:
        self.engine = engine
        self.place = place
        self.patience_s = PATIENCE_S
        self._reached = False

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, durable on return.

        A server that goes away may or may not have committed: `work` must do nothing if its changes are there already.
        """
        return self._carry_out(work, writes=True)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction: it reads one state."""
        return self._carry_out(work, writes=False)

    def _carry_out(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        deadline, tries = None, 3
        while True:
            try:
                # A signal amid a write would leave the transaction open, and with it the lock on the store.
                with held_back() if writes else nullcontext():
                    return self._attempt(work, writes)
            except OverflowError:
                raise StoreError(f"{self.place}: a number of the record is beyond 64 bits; it was not stored") from None
            except IntegrityError as error:
                # Another process stored the same at the same time: the next try finds it.
                tries -= 1
                if tries == 0:
                    raise in_words(error, self.place) from None
            except DBAPIError as error:
                # A server that was reachable may come back; one that never was is an error at once.
                if not (self._reached and may_come_back(error)):
                    raise in_words(error, self.place) from None
                deadline = deadline or time.monotonic() + self.patience_s
                if time.monotonic() >= deadline:
                    raise in_words(error, self.place) from None
            time.sleep(PAUSE_S)

    def _attempt(self, work: Callable[[Connection], T], writes: bool) -> T:
        with self.engine.connect().execution_options(writes=writes) as connection, connection.begin():
            self._reached = True
            return work(connection)

    def ask(self, sql: str, say: Say) -> Answer:
        """Answer a query. Raises StoreUsage, StoreError."""
        try:
            return ask(self.engine, sql, say)
        except DBAPIError as error:
            raise in_words(error, self.place) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("sqlite3", "psycopg"):
                raise
            wrapped = DBAPIError(sql, (), error)  # it did not come through SQLAlchemy
            if is_lost(wrapped):
                raise in_words(wrapped, self.place) from None
            raise StoreUsage(f"SQL: {(str(error).splitlines() or [type(error).__name__])[0]}") from None


def insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert the rows that do not exist yet."""
    if rows:
        of_dialect = importlib.import_module(f"sqlalchemy.dialects.{connection.dialect.name}")  # of one, not of both
        connection.execute(of_dialect.insert(table).on_conflict_do_nothing(), rows)


def key_of(connection: Connection, table: Table, **values: Any) -> int | None:
    """The key of the row with these values."""
    found = connection.execute(select(table.c.key).where(*(table.c[name] == value for name, value in values.items())))
    return found.scalar()


def insert_row(connection: Connection, table: Table, row: dict[str, Any]) -> int:
    """Insert a row and return its key."""
    made = connection.execute(insert(table).values(row)).inserted_primary_key
    assert made is not None
    return int(made[0])
