"""Transfer from one store into another. Existing objects stay unchanged, so it can be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from spindle.result.document import decode

from . import schema
from .adding import Document, add, opened
from .database import Database, key_of
from .errors import StoreError
from .seal import insert_sealed, is_whole, sealed
from .selection import in_pieces


@dataclass
class Transfer:
    """The transferred objects."""

    records: dict[str, str] = field(default_factory=dict)
    """Id there -> id here."""
    new: int = 0
    """Number of new records."""
    campaigns: dict[str, str] = field(default_factory=dict)
    """Name there -> name here, of new campaigns."""
    recordings: int = 0
    """Number of new recordings."""


def transfer(source: Database, target: Database, tags: list[str]) -> Transfer:
    """Transfer everything of `source`; records get `tags` in addition to their own."""
    done = Transfer()
    keys = source.read(
        lambda connection: (
            connection.execute(select(schema.records.c.key).order_by(schema.records.c.key)).scalars().all()
        )
    )
    here: dict[int, int] = {}
    for some in in_pieces(list(keys)):
        _records(source, target, some, tags, here, done)
    table = schema.campaigns.c
    campaigns = source.read(
        lambda connection: connection.execute(select(schema.campaigns).order_by(table.key)).mappings().all()
    )
    for campaign in campaigns:
        _campaign(source, target, dict(campaign), here, done)
    lone = select(schema.recordings.c.key).where(schema.recordings.c.trial_key.is_(None))
    for key in source.read(lambda connection: connection.execute(lone).scalars().all()):
        recording = source.read(lambda connection, key=key: _recording(connection, key))  # type: ignore[misc]
        done.recordings += target.write(lambda connection, one=recording: _put_recording(connection, one, None))  # type: ignore[misc]
    return done


def _records(
    source: Database, target: Database, keys: list[int], tags: list[str], here: dict[int, int], done: Transfer
) -> None:
    records, names, files = schema.records, schema.tags, schema.artefacts

    def take(connection: Connection) -> tuple[list[Any], list[Any], list[Any]]:
        def of(query: Any) -> list[Any]:
            return list(connection.execute(query).mappings())

        return (
            of(select(records).where(records.c.key.in_(keys)).order_by(records.c.key)),
            of(select(names).where(names.c.record_key.in_(keys))),
            of(select(files).where(files.c.record_key.in_(keys))),
        )

    rows, tagged, attached = source.read(take)
    ready = [(row, _document(row)) for row in rows]

    def put(connection: Connection) -> list[tuple[int, str, int, str, bool]]:
        before = connection.execute(_highest()).scalar() or 0
        found = []
        for row, document in ready:
            own = [each["tag"] for each in tagged if each["record_key"] == row["key"]]
            kept = add(connection, document, [*own, *tags], row["source"])
            for file in attached:
                if file["record_key"] == row["key"]:
                    _file(connection, kept.key, dict(file))
            found.append((row["key"], row["id"], kept.key, kept.id, kept.key > before))
        return found

    for there_key, there_id, key, name, is_new in target.write(put):
        here[there_key] = key
        done.records[there_id] = name
        done.new += is_new


def _document(row: Any) -> Document:
    data = opened(row["body"])
    return Document.of(decode(data, row["id"]), data)


def _highest() -> Any:
    return select(schema.records.c.key).order_by(schema.records.c.key.desc()).limit(1)


def _file(connection: Connection, record_key: int, file: dict[str, Any]) -> None:
    table = schema.artefacts
    if key_of(connection, table, record_key=record_key, name=file["name"]) is None:
        insert_sealed(connection, table, {**_without_key(file), "record_key": record_key})


def _without_key(row: Any) -> dict[str, Any]:
    return {name: value for name, value in dict(row).items() if name != "key"}


@dataclass(frozen=True)
class _CampaignRows:
    """A campaign with everything that belongs to it."""

    trials: list[dict[str, Any]]
    factors: list[dict[str, Any]]
    attempts: list[dict[str, Any]]
    recordings: list[_Recording]


@dataclass(frozen=True)
class _Recording:
    """A recording with its samples."""

    row: dict[str, Any]
    samples: list[dict[str, Any]]
    machine: list[dict[str, Any]]


def _campaign(
    source: Database, target: Database, campaign: dict[str, Any], here: dict[int, int], done: Transfer
) -> None:
    whole = source.read(lambda connection: _whole(connection, campaign["key"]))
    _refuse_damaged(schema.campaigns, [campaign], source)
    _refuse_damaged(schema.trials, whole.trials, source)
    _refuse_damaged(schema.attempts, whole.attempts, source)

    def put(connection: Connection) -> str | None:
        table = schema.campaigns
        if key_of(connection, table, id=campaign["id"]) is not None:
            return None
        name, number = campaign["name"], 1
        while key_of(connection, table, name=name) is not None:
            number += 1
            name = f"{campaign['name']}.{number}"
        key = insert_sealed(connection, table, {**_without_key(campaign), "name": name, "holder": None})
        trials = {
            row["key"]: insert_sealed(connection, schema.trials, {**_without_key(row), "campaign_key": key})
            for row in whole.trials
        }
        for row in whole.factors:
            connection.execute(insert(schema.trial_factors).values({**row, "trial_key": trials[row["trial_key"]]}))
        for row in whole.attempts:
            there = row["record_key"]
            values = {**row, "trial_key": trials[row["trial_key"]], "record_key": here[there] if there else None}
            connection.execute(insert(schema.attempts).values(sealed(schema.attempts, values)))
        for each in whole.recordings:
            _put_recording(connection, each, trials[each.row["trial_key"]])
        return str(name)

    name = target.write(put)
    if name is not None:
        done.campaigns[campaign["name"]] = name


def _whole(connection: Connection, key: int) -> _CampaignRows:
    trials = _rows(connection, select(schema.trials).where(schema.trials.c.campaign_key == key))
    mine = select(schema.trials.c.key).where(schema.trials.c.campaign_key == key)
    recordings = connection.execute(select(schema.recordings.c.key).where(schema.recordings.c.trial_key.in_(mine)))
    return _CampaignRows(
        trials=sorted(trials, key=lambda row: int(row["number"])),
        factors=_rows(connection, select(schema.trial_factors).where(schema.trial_factors.c.trial_key.in_(mine))),
        attempts=_rows(connection, select(schema.attempts).where(schema.attempts.c.trial_key.in_(mine))),
        recordings=[_recording(connection, each) for each in recordings.scalars().all()],
    )


def _recording(connection: Connection, key: int) -> _Recording:
    [row] = _rows(connection, select(schema.recordings).where(schema.recordings.c.key == key))
    samples, machine = (
        _rows(connection, select(table).where(table.c.recording_key == key))
        for table in (schema.samples, schema.machine_samples)
    )
    return _Recording(row, samples, machine)


def _put_recording(connection: Connection, recording: _Recording, trial_key: int | None) -> bool:
    """Insert it; True if it is new."""
    if key_of(connection, schema.recordings, id=recording.row["id"]) is not None:
        return False
    key = insert_sealed(connection, schema.recordings, {**_without_key(recording.row), "trial_key": trial_key})
    for table, rows in ((schema.samples, recording.samples), (schema.machine_samples, recording.machine)):
        if rows:
            connection.execute(insert(table), [sealed(table, {**each, "recording_key": key}) for each in rows])
    return True


def _rows(connection: Connection, query: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(query).mappings()]


def _refuse_damaged(table: Table, rows: Iterable[Mapping[str, Any]], source: Database) -> None:
    """Raise StoreRefused for damaged rows: a transfer must not give them a new seal."""
    if any(not is_whole(table, row) for row in rows):
        raise StoreError(
            f"{source.place}: a row of table {table.name} was changed since it was written, and is not taken over; "
            "`spindle store check` says where"
        )
