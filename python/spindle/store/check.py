"""Integrity check of the store: the database, each record and its rows, each campaign."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, LargeBinary, Table, func, select, text

from spindle.result.document import Unreadable, decode

from . import schema
from .adding import opened
from .database import Database
from .errors import StoreError
from .rows import Row, canonical, device_interval_rows, digest, metric_rows, record_row, run_rows, runs_of, verdict_rows
from .seal import SEALED, is_whole
from .selection import in_pieces

PIECE = 200
"""Records checked in one transaction."""


@dataclass(frozen=True)
class Problem:
    """One problem."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class StoreCheck:
    """Number of checked objects, and the problems."""

    records: int
    campaigns: int
    artefacts: int
    problems: list[Problem]


def check(database: Database, said: Callable[[int, int], None] = lambda done, total: None) -> StoreCheck:
    """Check everything. `said` receives the progress: records done and in total."""
    problems = list(_try(database, _database_itself))
    keys = list(_try(database, lambda connection: connection.execute(_keys()).scalars().all(), problems))
    for at in range(0, len(keys), PIECE):
        piece = keys[at : at + PIECE]
        problems += _try(database, lambda connection, piece=piece: _records(connection, piece))  # type: ignore[misc]
        said(min(at + PIECE, len(keys)), len(keys))
    problems += _try(database, _orphans)
    campaigns = list(_try(database, lambda connection: connection.execute(_campaigns()).all(), problems))
    for campaign in campaigns:
        problems += _try(database, lambda connection, one=campaign: campaign_problems(connection, *one))  # type: ignore[misc]
    for table in SEALED:
        if table not in _OF_CAMPAIGNS:
            problems += _try(database, lambda connection, table=table: _seals(connection, table, None))  # type: ignore[misc]
    artefacts = list(_try(database, lambda connection: connection.execute(_artefacts()).scalars().all(), problems))
    for key in artefacts:
        problems += _try(database, lambda connection, key=key: _artefact(connection, key))  # type: ignore[misc]
    return StoreCheck(len(keys), len(campaigns), len(artefacts), problems)


def _try(database: Database, work: Callable[[Connection], Any], problems: list[Problem] | None = None) -> Sequence[Any]:
    """Return the result of `work`; unreadable rows become problems."""
    try:
        return database.read(lambda connection: list(work(connection)))
    except StoreError as error:
        problem = Problem("the database", str(error).removeprefix(f"{database.place}: "))
        if problems is None:
            return [problem]
        problems.append(problem)
        return []
    except Exception as error:  # a value of a wrong type
        problem = Problem("the database", f"a row cannot be read ({type(error).__name__}: {error})")
        if problems is None:
            return [problem]
        problems.append(problem)
        return []


_OF_CAMPAIGNS = (schema.campaigns, schema.trials, schema.attempts)
"""Tables that are checked campaign by campaign."""


def _keys() -> Any:
    return select(schema.records.c.key).order_by(schema.records.c.key)


def _campaigns() -> Any:
    return select(schema.campaigns.c.key, schema.campaigns.c.name).order_by(schema.campaigns.c.key)


def _artefacts() -> Any:
    return select(schema.artefacts.c.key).order_by(schema.artefacts.c.key)


def _database_itself(connection: Connection) -> Iterator[Problem]:
    """SQLite checks its pages and references; a server keeps its own integrity."""
    if connection.dialect.name != "sqlite":
        return
    for (line,) in connection.execute(text("PRAGMA integrity_check(20)")):
        if line != "ok":
            yield Problem("the database", str(line))
    for row in connection.execute(text("PRAGMA foreign_key_check")):
        yield Problem(f"table {row[0]}", f"row {row[1]} belongs to a missing row of {row[2]}")


def _records(connection: Connection, keys: list[int]) -> list[Problem]:
    rows = connection.execute(select(schema.records).where(schema.records.c.key.in_(keys)))
    runs = _grouped(connection, schema.runs, "record_key", keys)
    verdicts = _grouped(connection, schema.verdicts, "record_key", keys)
    metrics = _grouped(connection, schema.metrics, "record_key", keys)
    intervals = _grouped(connection, schema.device_intervals, "record_key", keys)
    run_keys = [run["key"] for found in runs.values() for run in found]
    tables = {table.name: _grouped(connection, table, "run_key", run_keys) for table in _RUN_TABLES}
    sets = _sets(connection, [run[name] for found in runs.values() for run in found for name in _SETTINGS])
    environments = {
        row.key: row.body for row in connection.execute(select(schema.environments.c.key, schema.environments.c.body))
    }
    problems = []
    for row in rows:
        found = _RecordRows(
            dict(row._mapping),
            runs[row.key],
            verdicts[row.key],
            metrics[row.key],
            intervals[row.key],
            tables,
            sets,
            environments,
        )
        problems += [Problem(row.id, what) for what in found.problems()]
    return problems


_RUN_TABLES = (
    schema.streams,
    schema.operations,
    schema.percentiles,
    schema.histograms,
    schema.intervals,
    schema.devices,
)
_SETTINGS = ("settings_key", "settings_after_key")


@dataclass(frozen=True)
class _RecordRows:
    """The rows of one record."""

    record: Row
    runs: list[Row]
    verdicts: list[Row]
    metrics: list[Row]
    device_intervals: list[Row]
    tables: dict[str, defaultdict[int, list[Row]]]
    sets: dict[int, dict[str, str]]
    environments: dict[int, str]

    def problems(self) -> Iterator[str]:
        try:
            data = opened(self.record["body"])
        except Exception:
            yield "its document cannot be decompressed"
            return
        if digest(data) != self.record["sha256"] or len(data) != self.record["size_bytes"]:
            yield "its document is not the one that was stored (SHA-256)"
            return
        try:
            record = decode(data, self.record["id"])
        except Unreadable as error:
            yield str(error).removeprefix(f"{self.record['id']}: ")
            return
        wanted = record_row(record)
        base, dot, number = str(self.record["id"]).rpartition(".")
        if dot and number.isdigit() and base == wanted["id"]:
            wanted["id"] = self.record["id"]
        yield from _unequal("records", [wanted], [self.record])
        yield from _unequal("metrics", metric_rows(record), self.metrics)
        yield from _unequal("device_intervals", device_interval_rows(record), self.device_intervals)
        yield from _unequal("verdicts", list(verdict_rows(record)), self.verdicts)
        runs = [run_rows(run, ordinal) for ordinal, run in enumerate(runs_of(record))]
        yield from _unequal("runs", [run.run for run in runs], self.runs)
        if len(runs) != len(self.runs):
            return
        for run, row in zip(runs, sorted(self.runs, key=lambda row: int(row["ordinal"])), strict=True):
            for name, rows in run.tables.items():
                yield from _unequal(name, rows, self.tables[name][row["key"]])
            if (self.sets.get(row["settings_key"]), self.sets.get(row["settings_after_key"])) != (
                run.settings,
                run.settings_after,
            ):
                yield "its settings are not those of its document"
            if self.environments.get(row["environment_key"]) != run.environment:
                yield "its environment is not that of its document"


def _unequal(table: str, wanted: list[Row], found: list[Row]) -> Iterator[str]:
    """Yield one line for each table that differs."""
    if len(wanted) != len(found):
        yield f"table {table} has {len(found)} rows of it instead of {len(wanted)}"
        return
    columns = list(wanted[0]) if wanted else []

    def ordered(rows: list[Row]) -> list[tuple[Any, ...]]:
        return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)

    for one, other in zip(ordered(wanted), ordered(found), strict=True):
        if one != other:
            at = next(at for at in range(len(columns)) if one[at] != other[at])
            yield f"table {table}: {columns[at]} is {other[at]!r} instead of {one[at]!r}"
            return


def _grouped(connection: Connection, table: Table, owner: str, keys: list[int]) -> defaultdict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for some in in_pieces(keys):
        for row in connection.execute(select(table).where(table.c[owner].in_(some))):
            found[row._mapping[owner]].append(dict(row._mapping))
    return found


def _sets(connection: Connection, keys: list[int]) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {key: {} for key in keys}
    table = schema.settings.c
    for some in in_pieces(list(found)):
        query = select(table.set_key, table.name, table.value).where(table.set_key.in_(some))
        for key, name, value in connection.execute(query):
            found[key][name] = value
    return found


def _orphans(connection: Connection) -> Iterator[Problem]:
    table = schema.settings_sets.c
    sets = {row.key: row.sha256 for row in connection.execute(select(table.key, table.sha256))}
    values = _sets(connection, list(sets))
    for key, sha256 in sets.items():
        if digest(canonical(values[key])) != sha256:
            yield Problem(f"settings {key}", "are not those that were stored (SHA-256)")
    for key, sha256, body in connection.execute(select(schema.environments)):
        if digest(body) != sha256:
            yield Problem(f"environment {key}", "is not the one that was stored (SHA-256)")


def campaign_problems(connection: Connection, key: int, name: str) -> Iterator[Problem]:
    """Yield the problems of one campaign: its plan, its trials and their attempts."""
    trials, attempts = schema.trials, schema.attempts
    where = f"campaign {name}"
    rows = connection.execute(select(trials).where(trials.c.campaign_key == key).order_by(trials.c.number)).all()
    yield from _seals(connection, schema.campaigns, schema.campaigns.c.key == key, where)
    planned = connection.execute(select(schema.campaigns.c.planned).where(schema.campaigns.c.key == key)).scalar()
    if planned != len(rows):
        yield Problem(where, f"it has {len(rows)} trials instead of {planned}")
    if [row.number for row in rows] != list(range(1, len(rows) + 1)):
        yield Problem(where, "its trials are not numbered 1, 2, 3 ...")
    of_trial: defaultdict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(
        select(attempts).join(trials).where(trials.c.campaign_key == key).order_by(attempts.c.attempt)
    ):
        of_trial[row.trial_key].append(row)
    factors: defaultdict[int, dict[str, str]] = defaultdict(dict)
    table = schema.trial_factors
    for row in connection.execute(select(table).join(trials).where(trials.c.campaign_key == key)):
        factors[row.trial_key][row.factor] = row.level
    for row in rows:
        place = f"{where}, trial {row.number}"
        if not is_whole(trials, dict(row._mapping)):
            yield Problem(place, _CHANGED)
        for each in of_trial[row.key]:
            if not is_whole(attempts, dict(each._mapping)):
                yield Problem(f"{place}, attempt {each.attempt}", _CHANGED)
        tried = of_trial[row.key]
        done = [each for each in tried if each.state == "done" and each.record_key is not None]
        running = [each for each in tried if each.state == "running"]
        if len(done) != (row.state == "done"):
            yield Problem(place, f"{row.state}, with {len(done)} runs that count")
        if len(running) != (row.state == "running"):
            yield Problem(place, f"{row.state}, with {len(running)} running attempts")
        if row.state in ("failed", "invalid") and (not tried or tried[-1].state != row.state):
            yield Problem(place, f"{row.state}, but its last attempt is not")
        if [each.attempt for each in tried] != list(range(1, len(tried) + 1)):
            yield Problem(place, "its attempts are not numbered 1, 2, 3 ...")
        if not _is_cell(factors[row.key], row.cell):
            yield Problem(place, "its factors are not those of its cell")


def _is_cell(factors: dict[str, str], text: Any) -> bool:
    try:
        return bool(canonical(factors) == text)
    except TypeError:  # something else than text in the table
        return False


_CHANGED = "was changed since it was written (its seal does not fit)"


def _seals(
    connection: Connection, table: Table, which: ColumnElement[bool] | None, where: str | None = None
) -> Iterator[Problem]:
    """Yield rows whose seal does not match them."""
    query = select(*(column for column in table.c if not isinstance(column.type, LargeBinary)))
    for row in connection.execute(query if which is None else query.where(which)).mappings():
        if not is_whole(table, dict(row)):
            own = ", ".join(f"{column.name} {row[column.name]}" for column in table.primary_key.columns)
            yield Problem(where or f"table {table.name}, {own}", _CHANGED)


def _artefact(connection: Connection, key: int) -> Iterator[Problem]:
    table = schema.artefacts
    row = connection.execute(
        select(table, schema.records.c.id.label("run")).outerjoin(schema.records).where(table.c.key == key)
    ).one()
    where = f"{row.run or 'no record'}, file {row.name}"
    try:
        body = row.body if row.body is not None else Path(row.path).read_bytes()
    except OSError as error:
        yield Problem(where, f"{row.path} cannot be read: {(error.strerror or '').lower()}")
        return
    if not isinstance(body, bytes) or hashlib.sha256(body).hexdigest() != row.sha256:
        yield Problem(where, f"{row.path or 'its content'} was changed since it was attached (SHA-256)")


def count(connection: Connection, table: Table) -> int:
    """Number of rows."""
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())
