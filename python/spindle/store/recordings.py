"""Devices interval by interval: recordings of a trial, or of `spindle monitor`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select

from spindle.result.record import new_id

from . import schema
from .database import key_of
from .rows import iostat_columns
from .seal import insert_new_sealed, insert_sealed
from .words import storable


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One device over one interval."""

    device: str
    start_ns: int
    """After the start of the recording."""
    seconds: float
    """Its measured length."""
    iostat: Mapping[str, float | None]
    """iostat's columns with their names; rates in MB/s or kB/s."""
    label: str = ""
    """A state that changes within the recording: for example the scheduler."""


@dataclass(frozen=True, kw_only=True)
class MachineSample:
    """The whole machine over one interval."""

    start_ns: int
    seconds: float
    columns: Mapping[str, float | None]
    """Columns of vmstat and of pressure stall information, with the monitor's names."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A series of samples."""

    started: str
    """UTC, ISO 8601."""
    interval_s: float
    about: str
    samples: Sequence[Sample] = ()
    machine: Sequence[MachineSample] = ()
    host: str = ""
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, kw_only=True)
class RecordingSummary:
    """One line about a recording."""

    id: str
    started: str
    about: str
    interval_s: float
    host: str
    samples: int
    devices: int
    campaign: str | None
    trial: int | None


def recorded(connection: Connection) -> list[RecordingSummary]:
    """All recordings, the oldest first."""
    table, samples = schema.recordings.c, schema.samples.c
    counts = (
        select(
            samples.recording_key, func.count().label("samples"), func.count(samples.device.distinct()).label("devices")
        )
        .group_by(samples.recording_key)
        .subquery()
    )
    query = (
        select(
            table.id,
            table.started,
            table.about,
            table.interval_s,
            table.host,
            func.coalesce(counts.c.samples, 0).label("samples"),
            func.coalesce(counts.c.devices, 0).label("devices"),
            schema.campaigns.c.name.label("campaign"),
            schema.trials.c.number.label("trial"),
        )
        .select_from(
            schema.recordings.outerjoin(counts, counts.c.recording_key == table.key)
            .outerjoin(schema.trials, schema.trials.c.key == table.trial_key)
            .outerjoin(schema.campaigns, schema.campaigns.c.key == schema.trials.c.campaign_key)
        )
        .order_by(table.key)
    )
    return [RecordingSummary(**row._mapping) for row in connection.execute(query)]


def add_recording(
    connection: Connection, recording: Recording, trial_key: int | None = None, attempt: int | None = None
) -> None:
    """Store it, unless it is stored already."""
    if key_of(connection, schema.recordings, id=recording.id) is not None:
        return
    insert_sealed(
        connection,
        schema.recordings,
        {
            "id": recording.id,
            "started": recording.started,
            "about": storable(recording.about),
            "interval_s": recording.interval_s,
            "host": recording.host,
            "trial_key": trial_key,
            "attempt": attempt,
        },
    )
    add_samples(connection, recording.id, recording.samples, recording.machine)


def add_samples(
    connection: Connection, recording_id: str, samples: Sequence[Sample], machine: Sequence[MachineSample] = ()
) -> None:
    """Add samples to a recording; existing ones stay unchanged."""
    key = key_of(connection, schema.recordings, id=recording_id)
    rows = [
        {
            "recording_key": key,
            "device": sample.device,
            "start_ns": sample.start_ns,
            "seconds": sample.seconds,
            "label": storable(sample.label),
            **iostat_columns(sample.iostat),
        }
        for sample in samples
    ]
    insert_new_sealed(connection, schema.samples, rows)
    rows = [
        {
            "recording_key": key,
            "start_ns": sample.start_ns,
            "seconds": sample.seconds,
            **{column: sample.columns.get(name) for column, name in schema.MACHINE.items()},
        }
        for sample in machine
    ]
    insert_new_sealed(connection, schema.machine_samples, rows)
