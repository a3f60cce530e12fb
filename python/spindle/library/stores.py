"""The store of results, for Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from spindle.base.words import counted
from spindle.library.arguments import public
from spindle.library.options import several
from spindle.library.result import Result
from spindle.library.table import Table

if TYPE_CHECKING:
    from spindle.report.terminal.store import CampaignLine
    from spindle.result.record import Record
    from spindle.store import Artefact, Info, RecordingSummary, RecordSummary, SelectedRecord, StoreCheck
    from spindle.store import Store as Stored


class Selection(Sequence[Result]):
    """Results that were selected by one text, in order of time; each is read when it is used."""

    def __init__(self, text: str, selected: Sequence[SelectedRecord], store: Stored | None) -> None:
        self.text = text
        self.selected = selected
        """Known of each without reading it: identity, workload, target, level, tags, cell."""
        self.store = store

    def __len__(self) -> int:
        return len(self.selected)

    @overload
    def __getitem__(self, at: int) -> Result: ...
    @overload
    def __getitem__(self, at: slice) -> Selection: ...
    def __getitem__(self, at: int | slice) -> Result | Selection:
        """One result, or a part of them."""
        if isinstance(at, slice):
            return Selection(self.text, self.selected[at], self.store)
        return Result(self.selected[at].record)

    def keep(self) -> None:
        """Read all records now, as the store is about to be closed."""
        if self.store is not None:
            for each in self.selected:
                _ = each.record
            self.store = None

    def to_table(self) -> Table:
        """A row for each result: `run`, `kind`, `started`, `workload`, `target`, `level`, and every metric."""
        from spindle.library.comparing import metrics_of

        metrics = metrics_of(self)
        names = sorted({name for each in metrics for name in each})
        about = ("run_id", "kind", "started", "workload", "target", "level")
        heads: dict[str, list[Any]] = {
            name.removesuffix("_id"): [str(getattr(each, name)) for each in self.selected] for name in about
        }
        return Table(heads | {name: [each.get(name) for each in metrics] for name in names})

    def __repr__(self) -> str:
        return f"<{self.text}: {len(self)} results>"

    def _repr_html_(self) -> str:
        return self.to_table()._repr_html_()


_RECORDING = "recording:"


class Store:
    """An open store of results; use it with `with`. `store["tag:old"]` selects results."""

    def __init__(self, store: Stored) -> None:
        self.raw = store
        """All that a store can do: campaigns, artefacts, recordings, checks (`spindle.store.Store`)."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what it holds."""
        self.raw.close()

    def __getitem__(self, selection: str) -> Selection:
        """The results of a selection: an identity or the beginning of one, `tag:NAME`, `campaign:NAME/factor=level`,
        `last`, `last:N`, or a file. Raises `spindle.Error` if there are none."""
        from spindle.store import select

        return Selection(selection, select(self.raw, selection), self.raw)

    def __len__(self) -> int:
        """Number of records."""
        return self.raw.count()

    def add(self, result: Result, *, tags: Sequence[str] = ()) -> str:
        """Store a result; it is on the disk when the call returns. Return its identity in the store."""
        return self.raw.add(result.record, tags=tags)

    def ls(self, *selections: str, last: int | None = None) -> list[RecordSummary]:
        """One line for each result, in the order of storing; `last`: of the last N only. No record is read."""
        return self.raw.ls(selections, last=last)

    def chosen(self, *selections: str) -> list[SelectedRecord]:
        """The results of all selections, in order; each is read when its `record` is used."""
        from spindle.store import select

        return [each for text in selections for each in select(self.raw, text)]

    def document(self, each: SelectedRecord) -> bytes:
        """The JSON of a result, byte for byte as it is stored."""
        from spindle.result.document import encode

        return self.raw.document(each.run_id) if each.key is not None else encode(each.record)

    def about(self, each: SelectedRecord) -> list[str]:
        """Lines about a result besides its record: identity, tags, trial, files. Empty if it is not in the store."""
        from spindle.report.terminal.store import standing

        return standing(each, self.raw.artefacts(each.run_id)) if each.key is not None else []

    def tag(self, selection: str, *tags: str) -> int:
        """Give tags to all results of a selection. Return how many there are."""
        return self.raw.tag(selection, *tags)

    def untag(self, selection: str, *tags: str) -> int:
        """Take tags from all results of a selection. Return how many there are."""
        return self.raw.untag(selection, *tags)

    @property
    def tags(self) -> dict[str, int]:
        """Tag -> number of results that have it."""
        return self.raw.tags()

    @property
    def campaigns(self) -> list[CampaignLine]:
        """The campaigns, the oldest first, with the number of trials in each state."""
        from spindle.report.terminal.store import campaign_lines

        return campaign_lines(self.raw)

    @property
    def recordings(self) -> list[RecordingSummary]:
        """The recordings of `spindle.monitor` and of campaigns, the oldest first."""
        return self.raw.recordings()

    def remove(self, *selections: str, confirm: Callable[[str], bool] | None = None) -> str | None:
        """Remove results; those of a campaign only with the whole campaign, `campaign:NAME`. A recording is
        `recording:ID`. Return what was removed, in words.

        `confirm` is asked with these words before; if it says no, nothing is removed and None returned.
        """
        recordings = [text.removeprefix(_RECORDING) for text in selections if text.startswith(_RECORDING)]
        found = self.raw.would_remove([text for text in selections if not text.startswith(_RECORDING)])
        words = _removal(len(found.records), found.campaigns, len(recordings))
        if confirm is not None and not confirm(words):
            return None
        self.raw.remove(found)
        for each in recordings:
            self.raw.remove_recording(each)
        return words

    def export(
        self,
        *selections: str,
        output: str | os.PathLike[str],
        format: Literal["json", "fio", "csv", "parquet"] | None = None,
        tables: bool = False,
        force: bool = False,
        others: Iterable[tuple[str, str]] = (),
    ) -> str:
        """Write results to a file, or several documents to a new folder. Return a line about it.

        `format`: documents (json), fio's JSON (fio), or a row for each result (csv, parquet); None: by the ending of
        `output`, else json. `tables`: all tables of the store instead of the one, a file each. `force`: replace any
        regular file. `others`: (path, name of the argument) of files that `output` must not be.
        """
        from spindle.library.exporting import export

        chosen = self.chosen(*selections)
        return export(self.raw, chosen, Path(output), format, tables=tables, force=force, others=others)

    def take_in(self, place: str | os.PathLike[str], *, tags: Sequence[str] = (), format: str | None = None) -> str:
        """Import a file of results, of other tools too, a folder of them, or a whole store. Return a line about it.

        Results that are stored already are left alone. `format`: of the file; None: by its content.
        """
        from spindle.library.importing import take_in

        return take_in(self.raw, os.fspath(place), tags, format)

    def attach(self, run: str, file: str | os.PathLike[str], *, by_path: bool = False) -> Artefact:
        """Store a file with a result; `by_path`: its path and SHA-256 instead of its content."""
        return self.raw.attach(run, Path(file), by_path=by_path)

    def check(self) -> StoreCheck:
        """Check integrity: the database, each document and its rows in the tables, each campaign, each file."""
        return self.raw.check()

    def vacuum(self) -> tuple[int, int]:
        """Free the space of removed results: bytes before and after."""
        return self.raw.vacuum()

    @property
    def info(self) -> Info:
        """Place, kind, schema and size (bytes)."""
        return self.raw.info()

    @property
    def place(self) -> str:
        """The file, or the URL without its password."""
        return str(self.raw.place)

    def query(self, sql: str) -> Table:
        """The answer to a question in SQL, which can only read; `spindle sql` shows the tables."""
        names, rows = self.answer(sql)
        return Table({name: [row[at] for row in rows] for at, name in enumerate(names)})

    def answer(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The same as (names of the columns, rows); names may be equal."""
        return self.raw.query(sql)

    def __repr__(self) -> str:
        return f"<Store {self.place}: {len(self)} results>"


def _removal(records: int, campaigns: Sequence[str], recordings: int) -> str:
    parts = [counted(records, "result")] if records or not recordings else []
    parts += [f"campaign {name}" for name in campaigns]
    parts += [counted(recordings, "recording")] if recordings else []
    return ", ".join(parts)


@public
def open_store(
    place: str | os.PathLike[str] | None = None,
    *,
    read_only: bool = False,
    create: bool = True,
    say: Callable[[str], None] | None = None,
) -> Store:
    """Open a store: a file of SQLite, a postgresql:// URL, or (None) $SPINDLE_STORE or the one in your data folder.

    `create`: make it if it is not there. `say` receives remarks, as of an upgrade; they go to stderr without it. Raises
    `spindle.Error`.
    """
    from spindle import store

    remarks = {} if say is None else {"say": say}
    return Store(store.open_store(place, read_only=read_only, create=create, **remarks))


@contextmanager
def keeping(
    store: Store | str | os.PathLike[str] | bool | None, tags: Sequence[str]
) -> Iterator[Callable[[Record], None]]:
    """A function that stores a record with these tags, or does nothing; the store is opened at once."""
    if store is None or store is False:
        if tags:
            from spindle.run.errors import Usage

            raise Usage("`tags=`: tags are of stored results; give `store=` too")
        yield lambda record: None
        return
    from spindle.store.campaigns import check_name

    tags = several(tags)
    for tag in tags:
        check_name(tag)
    if isinstance(store, Store):
        yield lambda record: _add(store, record, tags)
        return
    with open_store(None if store is True else store) as opened:
        yield lambda record: _add(opened, record, tags)


def _add(store: Store, record: Record, tags: Sequence[str]) -> None:
    store.raw.add(record, tags=tags)


@public
def results(selection: str | os.PathLike[str]) -> Selection:
    """The results in a file: Spindle's own, or another tool's (docs/reference/formats.md). Raises `spindle.Error`."""
    from spindle.store import select

    text = str(Path(selection).absolute())
    return Selection(text, select(None, text), None)
