"""The store of results, for Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from spindle.library.result import Result
from spindle.library.table import Table

if TYPE_CHECKING:
    from spindle.result.record import Record
    from spindle.store import Selected
    from spindle.store import Store as Stored


class Selection(Sequence[Result]):
    """Results that were selected by one text, in order of time; each is read when it is used."""

    def __init__(self, text: str, selected: Sequence[Selected], store: Stored | None) -> None:
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

    def tag(self, selection: str, *tags: str) -> int:
        """Give tags to all results of a selection. Return how many there are."""
        return self.raw.tag(selection, *tags)

    @property
    def tags(self) -> dict[str, int]:
        """Tag -> number of results that have it."""
        return self.raw.tags()

    def query(self, sql: str) -> Table:
        """The answer to a question in SQL, which can only read; `spindle sql` shows the tables."""
        names, rows = self.raw.query(sql)
        return Table({name: [row[at] for row in rows] for at, name in enumerate(names)})

    def __repr__(self) -> str:
        return f"<Store {self.raw.place}: {len(self)} results>"


def open_store(place: str | os.PathLike[str] | None = None, *, read_only: bool = False, create: bool = True) -> Store:
    """Open a store: a file of SQLite, a postgresql:// URL, or (None) $SPINDLE_STORE or the one in your data folder.

    `create`: make it if it is not there. Raises `spindle.Error`.
    """
    from spindle import store

    return Store(store.open_store(place, read_only=read_only, create=create))


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

    for tag in tags:
        check_name(tag)
    if isinstance(store, Store):
        yield lambda record: _add(store, record, tags)
        return
    with open_store(None if store is True else store) as opened:
        yield lambda record: _add(opened, record, tags)


def _add(store: Store, record: Record, tags: Sequence[str]) -> None:
    store.raw.add(record, tags=tags)


def results(selection: str | os.PathLike[str]) -> Selection:
    """The results in a file: Spindle's own, or another tool's (docs/reference/formats.md). Raises `spindle.Error`."""
    from spindle.store import select

    text = str(Path(selection).absolute())
    return Selection(text, select(None, text), None)
