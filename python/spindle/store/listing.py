"""What there is, a line each: from the tables; only of phases documents are opened, for the name of the workload."""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from . import schema
from .adding import opened
from .metrics import metrics_of
from .selection import Selected

RATES = ("iops", "bytes_per_s")
OWN = {"imported": "", "target": "target.", "curve": "curve."}
"""Kinds whose rate is a metric of their own, and what its name begins with."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One record of the store in a line."""

    id: str
    kind: str
    started: str
    added: str
    workload: str
    target: str
    level: str
    runs: int
    iops: float | None
    """Of a single run; of several the highest; of a search what it found; of what was imported, if it tells."""
    bytes_per_s: float | None
    size_bytes: int
    tags: tuple[str, ...]
    campaign: str | None
    trial: int | None
    cell: dict[str, str]


def listed(connection: Connection, chosen: list[Selected]) -> list[Listed]:
    """In the order they are given."""
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
    told = iter(metrics_of(connection, own, [prefix + rate for prefix in OWN.values() for rate in RATES]))
    return [
        _line(each, of_key[each.key], next(told) if each.kind in OWN else {}, names.get(each.key, each.workload))
        for each in chosen
        if each.key in of_key
    ]


class _Asked(msgspec.Struct):
    name: str


class _Phased(msgspec.Struct):
    workload: _Asked


def _names_of_phased(connection: Connection, chosen: list[Selected]) -> dict[int | None, str]:
    """Key -> name of a workload of several phases: the tables have `phases` there."""
    table, found = schema.records.c, {}
    for key in [each.key for each in chosen if each.kind == each.workload == "phases"]:
        body = connection.execute(select(table.body).where(table.key == key)).scalar_one()
        # A damaged document is told of by `spindle store check`; the list goes on.
        with suppress(zlib.error, msgspec.MsgspecError, ValueError):
            found[key] = msgspec.json.decode(opened(body), type=_Phased).workload.name
    return found


def _line(each: Selected, row: Any, told: dict[str, float], workload: str) -> Listed:
    prefix = OWN.get(each.kind, "")
    return Listed(
        id=each.run_id,
        kind=each.kind,
        started=each.started,
        added=row.added,
        workload=workload,
        target=each.target,
        level=each.level.value,
        runs=row.runs or 0,
        iops=told.get(f"{prefix}iops", row.iops),
        bytes_per_s=told.get(f"{prefix}bytes_per_s", row.bytes_per_s),
        size_bytes=row.size_bytes,
        tags=each.tags,
        campaign=each.campaign,
        trial=each.trial,
        cell=each.cell,
    )
