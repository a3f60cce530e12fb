"""Removal of results. Results of a campaign are removed with the campaign or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, union

from . import schema
from .errors import StoreRefused, StoreUsage
from .selection import SelectedRecord, Selection, in_pieces


@dataclass(frozen=True)
class Removal:
    """The objects to remove."""

    records: list[str]
    campaigns: list[str]


def plan_removal(connection: Connection, asked: list[tuple[Selection, list[SelectedRecord]]]) -> Removal:
    """List the objects to remove. Raises StoreRefused for a part of a campaign."""
    campaigns = [parsed.name for parsed, _ in asked if parsed.kind == "campaign"]
    for parsed, _ in asked:
        if parsed.levels:
            raise StoreRefused(
                f"{parsed.text}: a part of a campaign; only the whole can be removed: campaign:{parsed.name}"
            )
    keys = {each.key: each.run_id for parsed, chosen in asked if parsed.kind != "campaign" for each in chosen}
    names = [_name(connection, name) for name in campaigns]
    for key, campaign in _used(connection, [key for key in keys if key is not None]):
        if campaign not in names:
            raise StoreRefused(
                f"{keys[key]}: a run of campaign {campaign}; only the whole can be removed: campaign:{campaign}"
            )
    own = _records_of(connection, names)
    return Removal(list(dict.fromkeys([*keys.values(), *own])), names)


def remove(connection: Connection, what: Removal) -> None:
    """Remove in one transaction; missing objects are skipped."""
    table = schema.campaigns
    for name in what.campaigns:
        connection.execute(delete(table).where(table.c.name == name))
    records = schema.records
    for at in range(0, len(what.records), 500):
        connection.execute(delete(records).where(records.c.id.in_(what.records[at : at + 500])))
    _forget_unused(connection)


def remove_recording(connection: Connection, recording_id: str) -> None:
    """Remove a recording of `spindle monitor`. Raises StoreUsage, or StoreRefused for a trial's."""
    table = schema.recordings
    found = connection.execute(select(table.c.key, table.c.trial_key).where(table.c.id == recording_id)).first()
    if found is None:
        raise StoreUsage(
            f"recording:{recording_id}: there is none; `spindle store ls` with `recordings=True` lists them"
        )
    if found.trial_key is not None:
        raise StoreRefused(f"recording:{recording_id}: it belongs to a campaign's trial, and goes with the campaign")
    connection.execute(delete(table).where(table.c.key == found.key))


def _name(connection: Connection, name: str) -> str:
    table = schema.campaigns.c
    found = connection.execute(select(table.name).where((table.name == name) | (table.id == name))).scalar()
    if found is None:
        raise StoreUsage(f"campaign:{name}: there is none; `spindle store ls` with `campaigns=True` lists them")
    return str(found)


def _used(connection: Connection, keys: list[int]) -> list[tuple[int, str]]:
    """Records that trials refer to, no matter how the attempt ended."""
    found: list[tuple[int, str]] = []
    for some in in_pieces(keys):
        query = (
            select(schema.attempts.c.record_key, schema.campaigns.c.name)
            .select_from(schema.attempts.join(schema.trials).join(schema.campaigns))
            .where(schema.attempts.c.record_key.in_(some))
        )
        found += [(key, name) for key, name in connection.execute(query)]
    return found


def _records_of(connection: Connection, campaigns: list[str]) -> list[str]:
    """Records that only these campaigns refer to."""
    if not campaigns:
        return []
    of_campaign = select(schema.campaigns.c.name, schema.attempts.c.record_key, schema.records.c.id).select_from(
        schema.attempts.join(schema.trials)
        .join(schema.campaigns)
        .join(schema.records, schema.records.c.key == schema.attempts.c.record_key)
    )
    theirs: dict[int, str] = {}
    others: set[int] = set()
    for name, key, record in connection.execute(of_campaign):
        if name in campaigns:
            theirs[key] = record
        else:
            others.add(key)
    return [record for key, record in theirs.items() if key not in others]


def _forget_unused(connection: Connection) -> None:
    """Delete settings and environments without a run."""
    runs = schema.runs.c
    used = union(select(runs.settings_key), select(runs.settings_after_key)).subquery()
    sets = schema.settings_sets
    connection.execute(delete(sets).where(sets.c.key.not_in(select(used.c[0]))))
    environments = schema.environments
    connection.execute(delete(environments).where(environments.c.key.not_in(select(runs.environment_key))))
