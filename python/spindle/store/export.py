"""Export of the tables: CSV for spreadsheets, Parquet for DuckDB, polars and pandas."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, select

from . import schema
from .columns import SEAL
from .errors import StoreUsage
from .metrics import metrics_of
from .selection import SelectedRecord, in_pieces

MARK = "spindle.sheet"
"""Key in a Parquet file's own metadata: the name of the sheet. It marks files written by Spindle."""

Cell = str | int | float | None


@dataclass(frozen=True)
class Sheet:
    """A table to write."""

    name: str
    columns: list[str]
    rows: list[tuple[Any, ...]]


def flat(connection: Connection, chosen: Sequence[SelectedRecord]) -> Sheet:
    """A row for each result: its description, the levels of its trial's factors, and every metric."""
    metrics = metrics_of(connection, chosen, None)
    names = sorted({name for found in metrics for name in found})
    factors = sorted({factor for each in chosen for factor in each.cell})
    head = ["run", "kind", "started", "workload", "target", "level", "tags", "campaign", "trial", "block"]
    rows = [
        (
            each.run_id,
            each.kind,
            each.started,
            each.workload,
            each.target,
            each.level.value,
            ",".join(each.tags),
            each.campaign,
            each.trial,
            each.block,
            *(each.cell.get(factor) for factor in factors),
            *(found.get(name) for name in names),
        )
        for each, found in zip(chosen, metrics, strict=True)
    ]
    return Sheet("results", [*head, *(f"factor.{factor}" for factor in factors), *names], rows)


def sheets(connection: Connection, chosen: Sequence[SelectedRecord]) -> Iterator[Sheet]:
    """The tables with their keys, limited to these results, without documents."""
    records = [each.key for each in chosen if each.key is not None]
    yield _sheet(connection, schema.records, "key", records, without=("body",))
    yield _sheet(connection, schema.runs, "record_key", records)
    for table in (schema.metrics, schema.device_intervals, schema.verdicts, schema.tags):
        yield _sheet(connection, table, "record_key", records)
    runs = _column(connection, schema.runs, "key", "record_key", records)
    for table in (schema.streams, schema.operations, schema.percentiles, schema.histograms, schema.intervals,
                  schema.devices):  # fmt: skip
        yield _sheet(connection, table, "run_key", runs)
    sets = {
        key
        for name in ("settings_key", "settings_after_key")
        for key in _column(connection, schema.runs, name, "record_key", records)
    }
    yield _sheet(connection, schema.settings, "set_key", sorted(sets))
    yield _sheet(connection, schema.attempts, "record_key", records)
    trials = sorted(set(_column(connection, schema.attempts, "trial_key", "record_key", records)))
    yield _sheet(connection, schema.trials, "key", trials)
    yield _sheet(connection, schema.trial_factors, "trial_key", trials)
    campaigns = sorted(set(_column(connection, schema.trials, "campaign_key", "key", trials)))
    yield _sheet(connection, schema.campaigns, "key", campaigns, without=("holder",))
    recordings = _column(connection, schema.recordings, "key", "trial_key", trials)
    yield _sheet(connection, schema.recordings, "key", recordings)
    yield _sheet(connection, schema.samples, "recording_key", recordings)
    yield _sheet(connection, schema.machine_samples, "recording_key", recordings)


def as_csv(sheet: Sheet) -> bytes:
    """CSV with a header; unknown values are empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(sheet.columns)
    writer.writerows(sheet.rows)
    return text.getvalue().encode()


def as_parquet(sheet: Sheet) -> bytes:
    """Typed columns; unknown values are null. Raises StoreUsage without pyarrow."""
    need_parquet()
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    columns = [[row[at] for row in sheet.rows] for at in range(len(sheet.columns))]
    table = arrow.table([typed(arrow, column) for column in columns], names=sheet.columns)
    table = table.replace_schema_metadata({MARK: sheet.name})
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def need_parquet() -> None:
    """Raise StoreUsage without pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        raise StoreUsage("Parquet needs pyarrow; pip install 'spindle[parquet]'")


def typed(arrow: Any, column: Sequence[Any]) -> Any:
    """A column of Arrow: int64, double, binary or text; unknown is null."""
    kinds = {type(value) for value in column if value is not None}
    if kinds <= {int} and kinds:
        return arrow.array(column, type=arrow.int64())
    if kinds <= {int, float} and kinds:
        return arrow.array([None if value is None else float(value) for value in column], type=arrow.float64())
    if kinds == {bytes}:
        return arrow.array(column, type=arrow.binary())
    return arrow.array([None if value is None else str(value) for value in column], type=arrow.string())


def _sheet(
    connection: Connection, table: Table, owner: str, keys: Sequence[int], without: tuple[str, ...] = ()
) -> Sheet:
    columns = [column for column in table.c if column.name not in (*without, SEAL)]
    order = list(table.primary_key.columns)
    rows: list[tuple[Any, ...]] = []
    for some in in_pieces(list(keys)):
        query = select(*columns).where(table.c[owner].in_(some)).order_by(*order)
        rows += [tuple(row) for row in connection.execute(query)]
    return Sheet(table.name, [column.name for column in columns], rows)


def _column(connection: Connection, table: Table, name: str, owner: str, keys: Sequence[int]) -> list[int]:
    found: list[int] = []
    for some in in_pieces(list(keys)):
        found += connection.execute(select(table.c[name]).where(table.c[owner].in_(some))).scalars().all()
    return found
