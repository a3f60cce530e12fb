"""The tables. Each record is one unchanged document; all other tables are derived from it, for queries in SQL.

    records ─┬─ runs ─┬─ streams ── operations ─┬─ percentiles
             │        ├─ intervals              └─ histograms
             │        ├─ devices
             │        ├─ settings (before, after; equal ones are kept once)
             │        └─ environments (equal ones are kept once)
             ├─ device_intervals, metrics, verdicts, tags, artefacts
             └─ attempts ── trials ─┬─ trial_factors
                                    └─ campaigns
    recordings ── samples, machine_samples: devices and CPUs interval by interval,
                                            of a trial or of `spindle monitor`

Times are ns, sizes bytes unless a name says otherwise. The tables contain what queries need;
the rest is in the documents. Columns of devices are iostat's, `/` and `-` written `_`: `IOSTAT`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}
"""SQLite: rows are in the order of their key, which is not stored twice."""

Key = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""


def _key() -> Column[int]:
    return Column("key", Key, primary_key=True)


def _belongs(table: str, *, primary: bool = False, name: str | None = None) -> Column[int]:
    """A reference to a row of another table; the row is deleted with it."""
    column = name or f"{table.removesuffix('s')}_key"
    return Column(column, Key, ForeignKey(f"{table}.key", ondelete="CASCADE"), primary_key=primary, nullable=False)


def _text(name: str, *, nullable: bool = False, unique: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable, unique=unique)


def _big(name: str, *, nullable: bool = False, primary: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable, primary_key=primary, autoincrement=False)


def _number(name: str, *, nullable: bool = False) -> Column[float]:
    return Column(name, Double, nullable=nullable)


def _ordinal(name: str) -> Column[int]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


SEAL = "seal"


def _seal() -> Column[int]:
    """See spindle.store.seal."""
    return Column(SEAL, BigInteger, nullable=True)


def _iostat() -> dict[str, str]:
    names = {}
    for letter in "rwd":
        names[f"{letter}_s"] = f"{letter}/s"
        names[f"{letter}mb_s"] = f"{letter}MB/s"
        names[f"{letter}rqm_s"] = f"{letter}rqm/s"
        names[f"{letter}rqm_pct"] = f"%{letter}rqm"
        names[f"{letter}_await"] = f"{letter}_await"
        names[f"{letter}areq_sz"] = f"{letter}areq-sz"
    return names | {"f_s": "f/s", "f_await": "f_await", "aqu_sz": "aqu-sz", "util": "%util"}


IOSTAT = _iostat()
"""Column here -> column of iostat. `mb` are MiB as there, sizes KiB, times ms, `util` and `rqm_pct` %."""

records = Table(
    "records",
    metadata,
    _key(),
    _text("id", unique=True),
    _text("kind"),
    _text("started"),
    _text("workload"),
    _text("target"),
    _text("level"),
    _text("version"),
    _text("sha256"),
    Column("size_bytes", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    _text("added"),
    _text("source", nullable=True),
    _seal(),
    Index("ix_records_sha256", "sha256"),
    Index("ix_records_started", "started", "key"),
)
"""`body`: the document, zlib; `sha256` and `size_bytes` are of the document itself. `added`: when it was stored."""

settings_sets = Table("settings_sets", metadata, _key(), _text("sha256", unique=True))

settings = Table(
    "settings",
    metadata,
    _belongs("settings_sets", primary=True, name="set_key"),
    Column("name", Text, primary_key=True),
    _text("value"),
    Index("ix_settings_name_value", "name", "value"),
    **CLUSTERED,
)

environments = Table("environments", metadata, _key(), _text("sha256", unique=True), _text("body"))
"""`body`: JSON."""

runs = Table(
    "runs",
    metadata,
    _key(),
    _belongs("records"),
    Column("ordinal", Integer, nullable=False),
    _text("id"),
    _text("started"),
    _text("workload"),
    _text("target"),
    _text("target_kind"),
    _big("target_bytes"),
    _text("seed"),
    _text("engine"),
    _text("ended_by"),
    _text("level"),
    _big("measured_ns"),
    _big("elapsed_ns"),
    _big("requests"),
    _number("iops"),
    _number("bytes_per_s"),
    _number("mean_latency_ns", nullable=True),
    _big("cpu_user_ns"),
    _big("cpu_system_ns"),
    _big("fetched_bytes", nullable=True),
    Column("settings_key", Key, ForeignKey("settings_sets.key"), nullable=False),
    Column("settings_after_key", Key, ForeignKey("settings_sets.key"), nullable=False),
    Column("environment_key", Key, ForeignKey("environments.key"), nullable=False),
    UniqueConstraint("record_key", "ordinal"),
    Index("ix_runs_settings_key", "settings_key"),
)
"""Single runs: one of a run's record, several of a sweep's or a quick look's, in order."""

metrics = Table(
    "metrics",
    metadata,
    _belongs("records", primary=True),
    Column("name", Text, primary_key=True),
    _number("value"),
    **CLUSTERED,
)
"""Every metric of a record, by the names of spindle.stats.metric."""

streams = Table(
    "streams",
    metadata,
    _belongs("runs", primary=True),
    _ordinal("stream"),
    _text("name"),
    _big("measured_ns"),
    _big("total_read_bytes"),
    _big("total_write_bytes"),
    _big("total_bytes"),
    _number("mean_outstanding"),
    _big("max_lag_ns"),
    Column("workers", Integer, nullable=True),
    Column("depth", Integer, nullable=True),
    _text("pattern", nullable=True),
    _number("mean_size_bytes", nullable=True),
    _number("write_fraction", nullable=True),
    Column("direct", Integer, nullable=True),
    _big("errors"),
    **CLUSTERED,
)

operations = Table(
    "operations",
    metadata,
    _belongs("runs", primary=True),
    _ordinal("stream"),
    Column("operation", Text, primary_key=True),
    _big("requests"),
    _big("bytes"),
    _number("iops"),
    _number("bytes_per_s"),
    _big("min_ns"),
    _number("mean_ns"),
    _big("max_ns"),
    _number("sdev_ns"),
    **CLUSTERED,
)
"""Operations of each stream: read, write, trim, zero, fsync; latencies from issue or intended start to completion."""

percentiles = Table(
    "percentiles",
    metadata,
    _belongs("runs", primary=True),
    _ordinal("stream"),
    Column("operation", Text, primary_key=True),
    Column("percentile", Double, primary_key=True),
    _big("ns"),
    **CLUSTERED,
)

histograms = Table(
    "histograms",
    metadata,
    _belongs("runs", primary=True),
    _ordinal("stream"),
    Column("operation", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    _text("hdr"),
    **CLUSTERED,
)
"""HdrHistogram V2, deflated, base64; `kind`: latency, or (open loop) service."""

intervals = Table(
    "intervals",
    metadata,
    _belongs("runs", primary=True),
    _ordinal("interval"),
    _ordinal("stream"),
    _big("start_ns"),
    _big("length_ns"),
    _big("reads"),
    _big("writes"),
    _big("read_bytes"),
    _big("write_bytes"),
    _big("read_latency_ns"),
    _big("write_latency_ns"),
    _big("max_latency_ns"),
    **CLUSTERED,
)
"""The series; latencies are sums over the interval's requests."""

COUNTERS = (
    *(f"{direction}{what}" for direction in ("read", "write", "discard") for what in ("s", "_merges", "_bytes", "_ms")),
    *("flushes", "flush_ms", "busy_ms", "weighted_ms"),
)
"""Differences over the run, with the record's names."""

devices = Table(
    "devices",
    metadata,
    _belongs("runs", primary=True),
    _ordinal("device"),
    _text("name"),
    _text("role"),
    _number("seconds"),
    *(_number(name, nullable=True) for name in COUNTERS),
    *(_number(name, nullable=True) for name in IOSTAT),
    **CLUSTERED,
)

LEGACY = {"await": "await", "svctm": "svctm", "avgrq_sz": "avgrq-sz"}
"""Columns that only older versions of iostat had (ms, ms, sectors): imported logs have them."""

device_intervals = Table(
    "device_intervals",
    metadata,
    _belongs("records", primary=True),
    _ordinal("run_ordinal"),
    Column("device", Text, primary_key=True),
    _ordinal("number"),
    _number("end_s", nullable=True),
    _number("seconds", nullable=True),
    *(_number(name, nullable=True) for name in (*IOSTAT, *LEGACY)),
    **CLUSTERED,
)
"""Devices interval by interval during a run, or in an imported log. `end_s`: since the load began."""

verdicts = Table(
    "verdicts",
    metadata,
    _belongs("records", primary=True),
    _ordinal("ordinal"),
    Column("run_ordinal", Integer, nullable=True),
    _text("check_name"),
    _text("level"),
    _text("evidence"),
    _text("advice"),
    _text("numbers"),
    Index("ix_verdicts_check_name_level", "check_name", "level"),
    **CLUSTERED,
)
"""`run_ordinal`: the run; NULL: the whole. `numbers`: JSON."""

tags = Table(
    "tags",
    metadata,
    Column("tag", Text, primary_key=True),
    _belongs("records", primary=True),
    _seal(),
    Index("ix_tags_record_key", "record_key"),
    **CLUSTERED,
)

artefacts = Table(
    "artefacts",
    metadata,
    _key(),
    _belongs("records"),
    _text("name"),
    _text("media_type"),
    _text("sha256"),
    _big("size_bytes"),
    Column("body", LargeBinary, nullable=True),
    _text("path", nullable=True),
    _seal(),
    UniqueConstraint("record_key", "name"),
)
"""Files that belong to a record: the content, or its `path`."""

campaigns = Table(
    "campaigns",
    metadata,
    _key(),
    _text("id", unique=True),
    _text("name", unique=True),
    _text("plan"),
    _text("seed"),
    _text("created"),
    _text("state"),
    _text("detail"),
    _text("holder", nullable=True),
    Column("planned", Integer, nullable=True),
    _seal(),
)
"""`plan`: the text of the plan; `detail`: JSON of the campaign's program; `holder`: the process that runs it now;
`planned`: its number of trials.
"""

trials = Table(
    "trials",
    metadata,
    _key(),
    _belongs("campaigns"),
    Column("number", Integer, nullable=False),
    Column("block", Integer, nullable=False),
    _text("cell"),
    _text("detail"),
    _text("state"),
    _seal(),
    UniqueConstraint("campaign_key", "number"),
)
"""In order. `cell`: JSON of factor -> level; `detail`: JSON of the campaign's program."""

trial_factors = Table(
    "trial_factors",
    metadata,
    _belongs("trials", primary=True),
    Column("factor", Text, primary_key=True),
    _text("level"),
    Index("ix_trial_factors_factor_level", "factor", "level"),
    **CLUSTERED,
)

attempts = Table(
    "attempts",
    metadata,
    _belongs("trials", primary=True),
    _ordinal("attempt"),
    _text("state"),
    _text("reason"),
    Column("record_key", Key, ForeignKey("records.key"), nullable=True),
    _text("started"),
    _text("ended", nullable=True),
    _seal(),
    Index("ix_attempts_record_key", "record_key"),
    **CLUSTERED,
)
"""Each attempt at a trial: running, done, failed or invalid, with the reason."""

recordings = Table(
    "recordings",
    metadata,
    _key(),
    _text("id", unique=True),
    _text("started"),
    _text("about"),
    _number("interval_s"),
    _text("host"),
    Column("trial_key", Key, ForeignKey("trials.key", ondelete="CASCADE"), nullable=True),
    Column("attempt", Integer, nullable=True),
    _seal(),
    Index("ix_recordings_trial_key", "trial_key"),
)

samples = Table(
    "samples",
    metadata,
    _belongs("recordings", primary=True),
    Column("device", Text, primary_key=True),
    _big("start_ns", primary=True),
    _number("seconds"),
    _text("label"),
    *(_number(name, nullable=True) for name in IOSTAT),
    _seal(),
    **CLUSTERED,
)
"""One device over one interval. `start_ns`: after the start of the recording; `label`: a state at that time."""

MACHINE = {
    "runnable": "r",
    "blocked": "b",
    "us": "us",
    "sy": "sy",
    "idle": "id",
    "wa": "wa",
    "st": "st",
    "io_some": "some",
    "io_full": "full",
}
"""Column here -> column of vmstat or of pressure stall information: tasks, %."""

machine_samples = Table(
    "machine_samples",
    metadata,
    _belongs("recordings", primary=True),
    _big("start_ns", primary=True),
    _number("seconds"),
    *(_number(name, nullable=True) for name in MACHINE),
    _seal(),
    **CLUSTERED,
)
"""The whole machine over one interval."""
