"""The store's interface."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, func, inspect, select

from spindle.result.record import Record

from . import adding, artefacts, export, listing, removal, schema, selection, upkeep
from .artefacts import Artefact, content_of
from .campaigns import Campaigns, check_name
from .check import StoreCheck, check
from .connection import Say, connect
from .database import Database
from .errors import StoreUsage
from .export import Sheet
from .listing import RecordSummary
from .metrics import metrics_of
from .place import StorePlace, place_of
from .question import Answer
from .recordings import MachineSample, Recording, RecordingSummary, Sample, add_recording, add_samples, recorded
from .removal import Removal
from .selection import SelectedRecord
from .transfer import Transfer, transfer
from .upgrade import bring_up_to_date, check_version
from .upkeep import Info


def open_store(
    where: str | os.PathLike[str] | None = None,
    *,
    read_only: bool = False,
    create: bool = True,
    say: Say | None = None,
) -> Store:
    """Open a store: a file of SQLite, a postgresql:// URL, or (None) $SPINDLE_STORE or the default. `create`: make it
    if it does not exist.

    A store of an older Spindle is upgraded, one of a newer Spindle refused; `say` receives messages (default: stderr).
    Raises StoreError, one line.
    """
    place = place_of(where)
    report = say or _to_stderr
    database = Database(connect(place, read_only=read_only, create=create, say=report), place)
    try:
        if read_only:
            database.read(lambda connection: check_version(connection, place))
        else:
            bring_up_to_date(database, report, create=create)
    except BaseException:
        database.engine.dispose()
        raise
    return Store(database)


def _to_stderr(line: str) -> None:
    print(f"spindle: {line}", file=sys.stderr)


class Store:
    """A store of results. Additions are on the disk when the call returns."""

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
        """Close its connections."""
        self._database.engine.dispose()

    @property
    def place(self) -> StorePlace:
        """Its place."""
        return self._database.place

    def add(self, record: Record, *, tags: Iterable[str] = (), source: str | None = None) -> str:
        """Store a record, durable on return, and return its id in the store.

        The same record is stored once. Another record with the same id is stored as `ID.2`. `source`: its origin, for
        people.
        """
        return self.add_all([record], tags=tags, source=source)[0]

    def add_all(self, records: Sequence[Record], *, tags: Iterable[str] = (), source: str | None = None) -> list[str]:
        """Store several in one transaction: all or none."""
        names = [_named(tag) for tag in tags]
        documents = [adding.Document.of(record) for record in records]
        return self._database.write(
            lambda connection: [adding.add(connection, each, names, source).id for each in documents]
        )

    def record(self, run_id: str) -> Record:
        """Return a record by its id or a unique beginning of it."""
        return self._database.read(lambda connection: selection.record(connection, run_id))

    def document(self, run_id: str) -> bytes:
        """Return the record's JSON, byte for byte as stored."""
        return self._database.read(lambda connection: selection.document(connection, run_id))

    def select(self, text: str) -> list[SelectedRecord]:
        """Return the results of a selection, in order of time; never empty. Raises StoreUsage."""
        return self._database.read(lambda connection: selection.find(connection, self, selection.parse(text)))

    def ls(self, texts: Sequence[str] = (), *, last: int | None = None) -> list[RecordSummary]:
        """One line for each record: all in the order of storing, or selections one after the other.

        `last`: only the last `last` of them.
        """
        asked = [selection.parse(text) for text in texts]

        def work(connection: Connection) -> list[RecordSummary]:
            chosen = selection.find_all(connection, self, asked, last)
            return listing.listed(connection, chosen[-last:] if last else chosen)

        return self._database.read(work)

    def tag(self, text: str, *names: str) -> int:
        """Tag all results of a selection, and return their number."""
        chosen = self.select(text)
        tags = [_named(name) for name in names]
        keys = [each.key for each in chosen if each.key is not None]
        self._database.write(lambda connection: adding.tag(connection, keys, tags))
        return len(chosen)

    def tags(self) -> dict[str, int]:
        """Tag -> number of records."""
        table = schema.tags.c
        query = select(table.tag, func.count()).group_by(table.tag).order_by(table.tag)
        return self._database.read(lambda connection: dict(connection.execute(query).all()))

    def start_recording(self, recording: Recording) -> str:
        """Start a recording, to which samples can be added, and return its id."""
        self._database.write(lambda connection: add_recording(connection, recording))
        return recording.id

    def add_samples(self, recording_id: str, samples: Sequence[Sample], machine: Sequence[MachineSample] = ()) -> None:
        """Add samples to a recording."""
        self._database.write(lambda connection: add_samples(connection, recording_id, samples, machine))

    def metrics(self, chosen: Sequence[SelectedRecord], names: Sequence[str] | None = None) -> list[dict[str, float]]:
        """Metrics (names of spindle.stats.metric; None: all) of each result, in order, without opening records.

        Metrics that a record does not have are missing.
        """
        return self._database.read(lambda connection: metrics_of(connection, chosen, names))

    def count(self) -> int:
        """Number of records."""
        query = select(func.count()).select_from(schema.records)
        return self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    def table_names(self) -> list[str]:
        """Tables and views, for SQL queries."""
        return self._database.read(lambda c: sorted([*inspect(c).get_table_names(), *inspect(c).get_view_names()]))

    def columns_of(self, table: str) -> list[tuple[str, str]]:
        """(name, type) of each column of a table or view. Raises StoreUsage."""
        if table not in self.table_names():
            raise StoreUsage(f"{table}: no such table; `.tables` lists them")
        return self._database.read(
            lambda connection: [(each["name"], str(each["type"])) for each in inspect(connection).get_columns(table)]
        )

    def recordings(self) -> list[RecordingSummary]:
        """Recordings of `spindle monitor` and of trials, the oldest first."""
        return self._database.read(recorded)

    def attach(self, run_id: str, file: Path, *, name: str | None = None, by_path: bool = False) -> Artefact:
        """Attach a file to a record: its content, or its path and digest."""
        content = content_of(file, name=name, by_path=by_path)
        key = self._key(run_id)
        self._database.write(lambda connection: artefacts.attach(connection, key, content))
        return content.artefact

    def artefacts(self, run_id: str) -> list[Artefact]:
        """The files attached to a record, by name."""
        key = self._key(run_id)
        return self._database.read(lambda connection: artefacts.artefacts_of(connection, key))

    def artefact(self, run_id: str, name: str) -> bytes:
        """The content of one attached file."""
        key = self._key(run_id)
        return self._database.read(lambda connection: artefacts.body_of(connection, key, name))

    def untag(self, text: str, *names: str) -> int:
        """Remove tags from all results of a selection, and return their number."""
        chosen = self.select(text)
        keys = [each.key for each in chosen if each.key is not None]
        self._database.write(lambda connection: adding.untag(connection, keys, names))
        return len(chosen)

    def would_remove(self, texts: Sequence[str]) -> Removal:
        """List the objects that `remove` would remove. Raises StoreRefused for a part of a campaign."""
        asked = [selection.parse(text) for text in texts]

        def work(connection: Connection) -> Removal:
            return removal.plan_removal(
                connection,
                [(each, [] if each.kind == "campaign" else selection.find(connection, self, each)) for each in asked],
            )

        return self._database.read(work)

    def remove(self, what: Removal) -> None:
        """Remove the objects that `would_remove` listed."""
        self._database.write(lambda connection: removal.remove(connection, what))

    def remove_recording(self, recording_id: str) -> None:
        """Remove a recording of `spindle monitor`."""
        self._database.write(lambda connection: removal.remove_recording(connection, recording_id))

    def take_in(self, other: Store, *, tags: Iterable[str] = ()) -> Transfer:
        """Copy everything from another store; existing objects stay unchanged."""
        return transfer(other._database, self._database, [_named(tag) for tag in tags])

    def check(self, said: Callable[[int, int], None] = lambda done, total: None) -> StoreCheck:
        """Check integrity; `said` receives the progress."""
        return check(self._database, said)

    def vacuum(self) -> tuple[int, int]:
        """Release the space of removed objects: bytes before and after."""
        return upkeep.vacuum(self._database)

    def info(self) -> Info:
        """Facts about the store, and its size."""
        return upkeep.info(self._database)

    def flat(self, chosen: Sequence[SelectedRecord]) -> Sheet:
        """One table of these results: a row for each, a column for each metric."""
        return self._database.read(lambda connection: export.flat(connection, chosen))

    def sheets(self, chosen: Sequence[SelectedRecord]) -> Iterator[Sheet]:
        """The tables, limited to these results."""
        yield from self._database.read(lambda connection: list(export.sheets(connection, chosen)))

    def query(self, sql: str, say: Say | None = None) -> Answer:
        """Answer one read-only SQL query: names of the columns, rows. Raises StoreUsage for other statements. `say`
        receives warnings (default: stderr).
        """
        return self._database.ask(sql, say or _to_stderr)

    def _key(self, run_id: str) -> int:
        [found] = self.select(run_id)
        assert found.key is not None
        return found.key


def _named(tag: str) -> str:
    check_name(tag)
    return tag
