"""The store: every way into it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, func, select

from spindle.result.record import Record

from . import adding, listing, schema, selection
from .campaigns import Campaigns, check_name
from .connection import Say, connect
from .database import Database
from .listing import Listed
from .metrics import metrics_of
from .place import Place, place_of
from .recordings import MachineSample, Recording, Sample, add_recording, add_samples
from .selection import Selected
from .upgrade import bring_up_to_date, check_version


def open_store(
    where: str | os.PathLike[str] | None = None, *, read_only: bool = False, say: Say | None = None
) -> Store:
    """Open a store, made if need be: a file of SQLite, a postgresql:// URL, or (None) $SPINDLE_STORE or the default.

    A store of an older Spindle is brought up to date, one of a newer Spindle refused; `say` is told (default: stderr).
    Raises StoreError, one line.
    """
    place = place_of(where)
    tell = say or _to_stderr
    database = Database(connect(place, read_only=read_only, say=tell), place)
    try:
        if read_only:
            database.read(lambda connection: check_version(connection, place))
        else:
            bring_up_to_date(database, tell)
    except BaseException:
        database.engine.dispose()
        raise
    return Store(database)


def _to_stderr(line: str) -> None:
    print(f"spindle: {line}", file=sys.stderr)


class Store:
    """Results, for as long as they are wanted. Whatever is added is on the disk when the call returns."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.campaigns = Campaigns(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back what it holds."""
        self._database.engine.dispose()

    @property
    def place(self) -> Place:
        """Where it is."""
        return self._database.place

    def add(self, record: Record, *, tags: Iterable[str] = (), source: str | None = None) -> str:
        """Store a record, durable on return: its identity in the store.

        The same record twice is there once. Another one of the same identity is kept beside it as `ID.2`.
        `source`: where it came from, for people.
        """
        return self.add_all([record], tags=tags, source=source)[0]

    def add_all(self, records: Sequence[Record], *, tags: Iterable[str] = (), source: str | None = None) -> list[str]:
        """Several in one transaction: all or none."""
        names = [_named(tag) for tag in tags]
        documents = [adding.Document.of(record) for record in records]
        return self._database.write(
            lambda connection: [adding.add(connection, each, names, source).id for each in documents]
        )

    def record(self, run_id: str) -> Record:
        """By its identity or a unique beginning of it."""
        return self._database.read(lambda connection: selection.record(connection, run_id))

    def document(self, run_id: str) -> bytes:
        """The record's JSON, byte for byte as it was stored."""
        return self._database.read(lambda connection: selection.document(connection, run_id))

    def select(self, text: str) -> list[Selected]:
        """What a selection means, in order of time; never empty. Raises StoreUsage."""
        return self._database.read(lambda connection: selection.find(connection, self, selection.parse(text)))

    def ls(self, texts: Sequence[str] = (), *, last: int | None = None) -> list[Listed]:
        """A line for each record: of everything in the order it was stored, or of selections one after the other.

        `last`: only so many, the last of them.
        """
        asked = [selection.parse(text) for text in texts]

        def work(connection: Connection) -> list[Listed]:
            chosen = selection.find_all(connection, self, asked, last)
            return listing.listed(connection, chosen[-last:] if last else chosen)

        return self._database.read(work)

    def tag(self, text: str, *names: str) -> int:
        """Give tags to all of a selection: how many there are."""
        chosen = self.select(text)
        tags = [_named(name) for name in names]
        keys = [each.key for each in chosen if each.key is not None]
        self._database.write(lambda connection: adding.tag(connection, keys, tags))
        return len(chosen)

    def tags(self) -> dict[str, int]:
        """Tag -> how many records have it."""
        table = schema.tags.c
        query = select(table.tag, func.count()).group_by(table.tag).order_by(table.tag)
        return self._database.read(lambda connection: dict(connection.execute(query).all()))

    def start_recording(self, recording: Recording) -> str:
        """Keep a series of samples, to which more can be added: its identity."""
        self._database.write(lambda connection: add_recording(connection, recording))
        return recording.id

    def add_samples(self, recording_id: str, samples: Sequence[Sample], machine: Sequence[MachineSample] = ()) -> None:
        """More samples of a recording."""
        self._database.write(lambda connection: add_samples(connection, recording_id, samples, machine))

    def metrics(self, chosen: Sequence[Selected], names: Sequence[str] | None = None) -> list[dict[str, float]]:
        """Metrics (names of spindle.stats.metric; None: all) of each result, in their order, without opening records.

        What a record does not have is not there.
        """
        return self._database.read(lambda connection: metrics_of(connection, chosen, names))

    def query(self, sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
        """The answer to a question in SQL: names of the columns, rows. Raises StoreUsage for what is not SQL."""
        return self._database.ask(sql)


def _named(tag: str) -> str:
    check_name(tag)
    return tag
