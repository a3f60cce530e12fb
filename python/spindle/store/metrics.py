"""Metrics of many results at once, from their table, without opening records."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from spindle.stats.metric import values

from . import schema
from .selection import SelectedRecord, in_pieces


def metrics_of(
    connection: Connection, chosen: Sequence[SelectedRecord], names: Sequence[str] | None
) -> list[dict[str, float]]:
    """Metrics of each result, in order; a file's are computed."""
    table = schema.metrics.c
    found: dict[int, dict[str, float]] = {}
    for some in in_pieces([each.key for each in chosen if each.key is not None]):
        query = select(table.record_key, table.name, table.value).where(table.record_key.in_(some))
        if names is not None:
            query = query.where(table.name.in_(names))
        for key, name, value in connection.execute(query):
            found.setdefault(key, {})[name] = value
    return [found.get(each.key, {}) if each.key is not None else _computed(each, names) for each in chosen]


def _computed(each: SelectedRecord, names: Sequence[str] | None) -> dict[str, float]:
    return {name: value for name, value in values(each.record).items() if names is None or name in names}
