"""Selections: one way to name results, for every verb.

FILE                                   a saved result, or another tool's (docs/reference/formats.md); all its results
20260102T030405Z-0a1b2c                a run's identity, or the unique beginning of one
model-0123456789abcdef                 the same of a modelled run
tag:NAME                               everything with a tag
campaign:NAME                          every finished trial
campaign:NAME/factor=level,...         the trials of a cell, or of a slice of the plan
last, last:N                           the newest, the N newest
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from sqlalchemy import Connection, Select, select

from spindle.base.decoding import decode_json
from spindle.result.document import decode
from spindle.result.record import Level, Record

from . import schema
from .adding import opened
from .errors import StoreError, StoreUsage
from .rows import record_row

if TYPE_CHECKING:
    from .store import Store

GRAMMAR = "give a file, a run's identity, tag:NAME, campaign:NAME[/factor=level,...], last or last:N"
MOST_AT_ONCE = 500
"""Values in one query: SQLite before 3.32 allows 999."""


@dataclass(frozen=True)
class Selection:
    """A parsed selection."""

    text: str
    kind: str
    """`file`, `id`, `tag`, `campaign` or `last`."""
    name: str = ""
    levels: tuple[tuple[str, str], ...] = ()
    count: int = 0


class Line(Protocol):
    """Facts about a record without opening it: a row of `records`."""

    kind: str
    started: str
    workload: str
    target: str
    level: str


@dataclass
class FileLine:
    """The same facts about a file."""

    kind: str
    started: str
    workload: str
    target: str
    level: str


class SelectedRecord:
    """One result of a selection. Its record is read on first use."""

    def __init__(
        self,
        *,
        run_id: str,
        position: int,
        line: Line,
        tags: tuple[str, ...] = (),
        campaign: str | None = None,
        trial: int | None = None,
        block: int | None = None,
        cell: Mapping[str, str] | None = None,
        key: int | None = None,
        store: Store | None = None,
        record: Record | None = None,
    ) -> None:
        self.run_id = run_id
        self.position = position
        """Position in order of time, from 0."""
        self.kind = line.kind
        """`run`, `knee`, `target`, `curve`, `quick`, `phases` or `imported`."""
        self.started = line.started
        self.workload = line.workload
        self.target = line.target
        self.level = Level(line.level)
        """The worst verdict."""
        self.tags = tags
        self.campaign = campaign
        self.trial = trial
        """Number of the trial in its campaign."""
        self.block = block
        self.cell: dict[str, str] = dict(cell or {})
        """Factor -> level."""
        self.key = key
        """Key in the store; None: a file."""
        self._store = store
        self._record = record

    @property
    def record(self) -> Record:
        """The whole record."""
        if self._record is None:
            assert self._store is not None
            self._record = self._store.record(self.run_id)
        return self._record

    def __repr__(self) -> str:
        return f"SelectedRecord({self.run_id!r}, campaign={self.campaign!r}, cell={self.cell!r})"


def parse(text: str) -> Selection:
    """Parse a selection. Raises StoreUsage."""
    kind, colon, rest = text.partition(":")
    if kind == "tag" and colon:
        if not rest:
            raise StoreUsage("tag: which one? Write tag:NAME; `spindle store tag` lists them")
        return Selection(text, "tag", rest)
    if kind == "campaign" and colon:
        name, slash, levels = rest.partition("/")
        if not name:
            raise StoreUsage("campaign: which one? `spindle store ls` with `campaigns=True` lists them")
        return Selection(text, "campaign", name, _levels(text, levels) if slash else ())
    if text == "last":
        return Selection(text, "last", count=1)
    if kind == "last" and colon:
        if not re.fullmatch("[1-9][0-9]{0,8}", rest):
            raise StoreUsage(f"{text}: not a number of results; write for example last:10")
        return Selection(text, "last", count=int(rest))
    if text == "-" or text.endswith(".json") or "/" in text or Path(text).is_file():
        return Selection(text, "file", text)
    if not text or not re.fullmatch(r"[0-9A-Za-z.-]+", text):
        raise StoreUsage(f"{text or 'an empty text'}: not a selection; {GRAMMAR}")
    return Selection(text, "id", text)


def needs_store(text: str) -> bool:
    """True if it needs a store: a file does not."""
    return parse(text).kind != "file"


def select_results(store: Store | None, text: str) -> list[SelectedRecord]:
    """The results of a selection, in order of time; never empty. `store` may be None if all are files.

    Raises StoreUsage (no such result), StoreError, or `document.Unreadable` for a file.
    """
    asked = parse(text)
    if asked.kind == "file":
        from spindle.formats import read  # only files need all formats

        return in_memory(read(Path(asked.name)))
    if store is None:
        raise StoreUsage(f"{text}: a store is needed; name one with `store=`")
    return store.select(text)


def in_memory(records: Iterable[Record]) -> list[SelectedRecord]:
    """Records that are in no store, in their order."""
    return [_of_file(record, place) for place, record in enumerate(records)]


def _of_file(record: Record, place: int) -> SelectedRecord:
    row = record_row(record)
    line = FileLine(**{each.name: row[each.name] for each in fields(FileLine)})
    return SelectedRecord(run_id=record.id, position=place, line=line, record=record)


def find(connection: Connection, store: Store, asked: Selection) -> list[SelectedRecord]:
    """The results of a selection in the store."""
    match asked.kind:
        case "id":
            rows = [_by_id(connection, asked.name)]
        case "tag":
            rows = _by_tag(connection, asked.name)
        case "last":
            rows = _last(connection, asked.count)
        case "campaign":
            return _of_campaign(connection, store, asked)
        case _:
            raise StoreUsage(f"{asked.text}: a file is not in the store; `spindle store import` puts it there")
    return _selected(connection, store, rows)


def find_all(connection: Connection, store: Store, asked: list[Selection], last: int | None) -> list[SelectedRecord]:
    """The results of several selections, each once; without selections all or the last, in the order of storing."""
    if asked:
        found: dict[int | None, SelectedRecord] = {}
        for each in asked:
            for one in find(connection, store, each):
                found.setdefault(one.key, one)
        return list(found.values())
    query = _records().order_by(schema.records.c.key.desc()).limit(last)
    return _selected(connection, store, list(connection.execute(query))[::-1])


def _levels(text: str, levels: str) -> tuple[tuple[str, str], ...]:
    found = []
    for part in levels.split(","):
        factor, equals, level = part.partition("=")
        if not factor or not equals:
            raise StoreUsage(f"{text}: {part!r} is not factor=level; write for example campaign:NAME/scheduler=bfq")
        found.append((factor, level))
    return tuple(found)


def _records() -> Select[Any]:
    return select(*_columns())


def _columns() -> list[Any]:
    table = schema.records.c
    return [table.key, table.id, table.kind, table.started, table.workload, table.target, table.level]


def _by_id(connection: Connection, name: str) -> Any:
    table = schema.records.c
    exact = connection.execute(_records().where(table.id == name)).first()
    if exact is not None:
        return exact
    # The end of the range: no id has a character above `~`.
    query = _records().where(table.id >= name, table.id < name + "~").order_by(table.id).limit(4)
    found = [row for row in connection.execute(query) if row.id.startswith(name)]
    if not found:
        raise StoreUsage(f"{name}: no run begins so, and there is no such file; {GRAMMAR}")
    if len(found) > 1:
        raise StoreUsage(f"{name}: several runs begin so ({', '.join(row.id for row in found[:3])}); give more of it")
    return found[0]


def _by_tag(connection: Connection, name: str) -> list[Any]:
    table = schema.records.c
    query = (
        _records()
        .join(schema.tags, schema.tags.c.record_key == table.key)
        .where(schema.tags.c.tag == name)
        .order_by(table.started, table.key)
    )
    found = list(connection.execute(query))
    if not found:
        known = connection.execute(select(schema.tags.c.tag).distinct().order_by(schema.tags.c.tag).limit(6))
        names = ", ".join(known.scalars())
        raise StoreUsage(f"tag:{name}: nothing has this tag; {f'there are {names}' if names else 'there are no tags'}")
    return found


def _last(connection: Connection, count: int) -> list[Any]:
    found = list(connection.execute(_records().order_by(schema.records.c.key.desc()).limit(count)))
    if not found:
        raise StoreUsage("last: the store is empty; `spindle run` with `store=True` puts something there")
    return found[::-1]


def _of_campaign(connection: Connection, store: Store, asked: Selection) -> list[SelectedRecord]:
    campaigns, trials, attempts = schema.campaigns.c, schema.trials.c, schema.attempts.c
    campaign = connection.execute(
        select(campaigns.key, campaigns.name).where((campaigns.name == asked.name) | (campaigns.id == asked.name))
    ).first()
    if campaign is None:
        known = ", ".join(connection.execute(select(campaigns.name).order_by(campaigns.key.desc()).limit(6)).scalars())
        raise StoreUsage(
            f"campaign:{asked.name}: there is none; {f'there are {known}' if known else 'the store has no campaigns'}"
        )
    query = (
        select(trials.number, trials.block, trials.cell, *_columns())
        .select_from(schema.trials.join(schema.attempts).join(schema.records))
        .where(trials.campaign_key == campaign.key, attempts.state == "done")
        .order_by(trials.number)
    )
    rows = [(row, decode_json(row.cell, dict[str, str])) for row in connection.execute(query)]
    _check_levels(connection, campaign.key, asked)
    chosen = [(row, cell) for row, cell in rows if all(cell.get(factor) == level for factor, level in asked.levels)]
    if not chosen:
        raise StoreUsage(f"{asked.text}: no trial of it is done yet; `spindle campaign resume {campaign.name}` goes on")
    tags = _tags(connection, [row.key for row, _ in chosen])
    return [
        SelectedRecord(
            run_id=row.id,
            position=position,
            line=row,
            tags=tags.get(row.key, ()),
            campaign=campaign.name,
            trial=row.number,
            block=row.block,
            cell=cell,
            key=row.key,
            store=store,
        )
        for position, (row, cell) in enumerate(chosen)
    ]


def _check_levels(connection: Connection, campaign_key: int, asked: Selection) -> None:
    factors = schema.trial_factors.c
    for factor, level in asked.levels:
        query = (
            select(factors.factor, factors.level)
            .select_from(schema.trial_factors.join(schema.trials))
            .where(schema.trials.c.campaign_key == campaign_key)
            .distinct()
        )
        known: dict[str, set[str]] = {}
        for name, value in connection.execute(query):
            known.setdefault(name, set()).add(value)
        if factor not in known:
            there = ", ".join(sorted(known)) or "none"
            raise StoreUsage(f"{asked.text}: it has no factor {factor!r}; its factors are {there}")
        if level not in known[factor]:
            raise StoreUsage(
                f"{asked.text}: {factor!r} never is {level!r}; its levels are {', '.join(sorted(known[factor]))}"
            )


def _selected(connection: Connection, store: Store, rows: list[Any]) -> list[SelectedRecord]:
    keys = [row.key for row in rows]
    tags, trials = _tags(connection, keys), _trials(connection, keys)
    found = []
    for position, row in enumerate(rows):
        trial = trials.get(row.key)
        found.append(
            SelectedRecord(
                run_id=row.id,
                position=position,
                line=row,
                tags=tags.get(row.key, ()),
                campaign=trial.name if trial is not None else None,
                trial=trial.number if trial is not None else None,
                block=trial.block if trial is not None else None,
                cell=msgspec.json.decode(trial.cell) if trial is not None else {},
                key=row.key,
                store=store,
            )
        )
    return found


def _tags(connection: Connection, keys: list[int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    table = schema.tags.c
    query = select(table.record_key, table.tag).where(_among(table.record_key, keys)).order_by(table.tag)
    for key, name in connection.execute(query):
        found[key] = (*found.get(key, ()), name)
    return found


def _among(column: Any, keys: list[int]) -> Any:
    """The condition for a query; with many keys, reading everything is faster."""
    return column.in_(keys) if len(keys) <= MOST_AT_ONCE else column.is_not(None)


def _trials(connection: Connection, keys: list[int]) -> dict[int, Any]:
    """The first trial of each record."""
    found: dict[int, Any] = {}
    query = (
        select(
            schema.attempts.c.record_key,
            schema.campaigns.c.name,
            schema.trials.c.number,
            schema.trials.c.block,
            schema.trials.c.cell,
        )
        .select_from(schema.attempts.join(schema.trials).join(schema.campaigns))
        .where(_among(schema.attempts.c.record_key, keys))
        .order_by(schema.campaigns.c.key, schema.trials.c.number)
    )
    for row in connection.execute(query):
        found.setdefault(row.record_key, row)
    return found


def in_pieces(keys: list[int]) -> list[list[int]]:
    """Parts that are small enough for one query each."""
    return [keys[at : at + MOST_AT_ONCE] for at in range(0, len(keys), MOST_AT_ONCE)]


def document(connection: Connection, run_id: str) -> bytes:
    """The document of a run, by its id or a unique beginning."""
    key = _by_id(connection, run_id).key
    body = connection.execute(select(schema.records.c.body).where(schema.records.c.key == key)).scalar_one()
    try:
        return opened(body)
    except Exception:
        raise StoreError(f"{run_id}: its document is damaged; `spindle store check` lists all damage") from None


def record(connection: Connection, run_id: str) -> Record:
    """The record of a run."""
    return decode(document(connection, run_id), run_id)
