"""The store: every way into it."""

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
from .check import Checked, check
from .connection import Say, connect
from .database import Database
from .errors import StoreUsage
from .export import Sheet
from .listing import Listed
from .metrics import metrics_of
from .place import Place, place_of
from .question import Answer
from .recordings import MachineSample, Recorded, Recording, Sample, add_recording, add_samples, recorded
from .removal import Removed
from .selection import Selected
from .transfer import Transferred, transfer
from .upgrade import bring_up_to_date, check_version
from .upkeep import Info


def open_store(
    where: str | os.PathLike[str] | None = None,
    *,
    read_only: bool = False,
    create: bool = True,
    say: Say | None = None,
) -> Store:
    """Open a store: a file of SQLite, a postgresql:// URL, or (None) $SPINDLE_STORE or the default.

    `create`: it is made if need be.

    A store of an older Spindle is brought up to date, one of a newer Spindle refused; `say` is told (default: stderr).
    Raises StoreError, one line.
    """
    place = place_of(where)
    tell = say or _to_stderr
    database = Database(connect(place, read_only=read_only, create=create, say=tell), place)
    try:
        if read_only:
            database.read(lambda connection: check_version(connection, place))
        else:
            bring_up_to_date(database, tell, create=create)
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

    def count(self) -> int:
        """How many records there are."""
        query = select(func.count()).select_from(schema.records)
        return self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    def table_names(self) -> list[str]:
        """Tables and views, for people who ask in SQL."""
        return self._database.read(lambda c: sorted([*inspect(c).get_table_names(), *inspect(c).get_view_names()]))

    def columns_of(self, table: str) -> list[tuple[str, str]]:
        """(name, type) of each column of a table or view. Raises StoreUsage."""
        if table not in self.table_names():
            raise StoreUsage(f"{table}: no such table; `.tables` lists them")
        return self._database.read(
            lambda connection: [(each["name"], str(each["type"])) for each in inspect(connection).get_columns(table)]
        )

    def recordings(self) -> list[Recorded]:
        """Of `spindle monitor` and of trials, the oldest first."""
        return self._database.read(recorded)

    def attach(self, run_id: str, file: Path, *, name: str | None = None, by_path: bool = False) -> Artefact:
        """A file that goes with a record: its content, or where it lies and what it is."""
        content = content_of(file, name=name, by_path=by_path)
        key = self._key(run_id)
        self._database.write(lambda connection: artefacts.attach(connection, key, content))
        return content.artefact

    def artefacts(self, run_id: str) -> list[Artefact]:
        """The files that go with a record, by name."""
        key = self._key(run_id)
        return self._database.read(lambda connection: artefacts.artefacts_of(connection, key))

    def artefact(self, run_id: str, name: str) -> bytes:
        """The content of one."""
        key = self._key(run_id)
        return self._database.read(lambda connection: artefacts.body_of(connection, key, name))

    def untag(self, text: str, *names: str) -> int:
        """Take tags from all of a selection: how many there are."""
        chosen = self.select(text)
        keys = [each.key for each in chosen if each.key is not None]
        self._database.write(lambda connection: adding.untag(connection, keys, names))
        return len(chosen)

    def would_remove(self, texts: Sequence[str]) -> Removed:
        """What `remove` would take out. Raises StoreRefused for a part of a campaign."""
        asked = [selection.parse(text) for text in texts]

        def work(connection: Connection) -> Removed:
            return removal.plan_removal(
                connection,
                [(each, [] if each.kind == "campaign" else selection.find(connection, self, each)) for each in asked],
            )

        return self._database.read(work)

    def remove(self, what: Removed) -> None:
        """Take out what `would_remove` told."""
        self._database.write(lambda connection: removal.remove(connection, what))

    def remove_recording(self, recording_id: str) -> None:
        """Take out what `spindle monitor` recorded."""
        self._database.write(lambda connection: removal.remove_recording(connection, recording_id))

    def take_in(self, other: Store, *, tags: Iterable[str] = ()) -> Transferred:
        """Everything of another store; what is here already is left as it is."""
        return transfer(other._database, self._database, [_named(tag) for tag in tags])

    def check(self, said: Callable[[int, int], None] = lambda done, total: None) -> Checked:
        """Whether all is whole; `said` is told how many records are done, of how many."""
        return check(self._database, said)

    def vacuum(self) -> tuple[int, int]:
        """Give back the room of what was removed: bytes before and after."""
        return upkeep.vacuum(self._database)

    def info(self) -> Info:
        """What it is, and how large."""
        return upkeep.info(self._database)

    def flat(self, chosen: Sequence[Selected]) -> Sheet:
        """One table of these results: a row each, every metric a column."""
        return self._database.read(lambda connection: export.flat(connection, chosen))

    def sheets(self, chosen: Sequence[Selected]) -> Iterator[Sheet]:
        """The tables themselves, cut to these results."""
        yield from self._database.read(lambda connection: list(export.sheets(connection, chosen)))

    def query(self, sql: str, say: Say | None = None) -> Answer:
        """The answer to one question in SQL, which can only read: names of the columns, rows. Raises StoreUsage for
        what is not a question. `say` is told what deserves caution (default: stderr).
        """
        return self._database.ask(sql, say or _to_stderr)

    def _key(self, run_id: str) -> int:
        [found] = self.select(run_id)
        assert found.key is not None
        return found.key


def _named(tag: str) -> str:
    check_name(tag)
    return tag
