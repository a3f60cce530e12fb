"""One line for each record, from the tables. Documents are opened only for phases, for the name of the workload."""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from spindle.base.decoding import decode_json

from . import schema
from .adding import opened
from .metrics import metrics_of
from .selection import SelectedRecord

RATES = ("iops", "bytes_per_s")
OWN = {"imported": "", "target": "target.", "curve": "curve."}
"""Kinds whose rate is a metric of their own, with the prefix of its name."""


@dataclass(frozen=True, kw_only=True)
class RecordSummary:
    """One line about a record of the store."""

    id: str
    kind: str
    started: str
    added: str
    workload: str
    target: str
    level: str
    runs: int
    iops: float | None
    """Rate of a single run, the highest of several, the result of a search, or an imported rate."""
    bytes_per_s: float | None
    size_bytes: int
    tags: tuple[str, ...]
    campaign: str | None
    trial: int | None
    cell: dict[str, str]


def listed(connection: Connection, chosen: list[SelectedRecord]) -> list[RecordSummary]:
    """Lines in the given order."""
    runs = (
        select(
            schema.runs.c.record_key,
            func.count().label("runs"),
            func.max(schema.runs.c.iops).label("iops"),
            func.max(schema.runs.c.bytes_per_s).label("bytes_per_s"),
        )
        .group_by(schema.runs.c.record_key)
        .subquery()
    )
    table = schema.records.c
    query = select(table.key, table.added, table.size_bytes, runs.c.runs, runs.c.iops, runs.c.bytes_per_s).select_from(
        schema.records.outerjoin(runs, runs.c.record_key == table.key)
    )
    if len(chosen) == 1:
        query = query.where(table.key == chosen[0].key)
    of_key = {row.key: row for row in connection.execute(query)}
    own = [each for each in chosen if each.kind in OWN]
    names = _names_of_phased(connection, chosen)
    rates = iter(metrics_of(connection, own, [prefix + rate for prefix in OWN.values() for rate in RATES]))
    return [
        _line(each, of_key[each.key], next(rates) if each.kind in OWN else {}, names.get(each.key, each.workload))
        for each in chosen
        if each.key in of_key
    ]


class _WorkloadName(msgspec.Struct):
    name: str


class _PhasesHead(msgspec.Struct):
    workload: _WorkloadName


def _names_of_phased(connection: Connection, chosen: list[SelectedRecord]) -> dict[int | None, str]:
    """Key -> name of a workload of several phases: the tables have `phases` for it."""
    table, found = schema.records.c, {}
    for key in [each.key for each in chosen if each.kind == each.workload == "phases"]:
        body = connection.execute(select(table.body).where(table.key == key)).scalar_one()
        # `spindle store check` reports a damaged document; the list goes on.
        with suppress(zlib.error, msgspec.MsgspecError, ValueError):
            found[key] = decode_json(opened(body), _PhasesHead).workload.name
    return found


def _line(each: SelectedRecord, row: Any, rates: dict[str, float], workload: str) -> RecordSummary:
    prefix = OWN.get(each.kind, "")
    return RecordSummary(
        id=each.run_id,
        kind=each.kind,
        started=each.started,
        added=row.added,
        workload=workload,
        target=each.target,
        level=each.level.value,
        runs=row.runs or 0,
        iops=rates.get(f"{prefix}iops", row.iops),
        bytes_per_s=rates.get(f"{prefix}bytes_per_s", row.bytes_per_s),
        size_bytes=row.size_bytes,
        tags=each.tags,
        campaign=each.campaign,
        trial=each.trial,
        cell=each.cell,
    )
