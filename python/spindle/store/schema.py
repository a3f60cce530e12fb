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

from sqlalchemy import Column, Double, Index, LargeBinary, Table, UniqueConstraint

from .columns import CLUSTERED, belongs, bigs, key, named, numbers, ordinals, refers, seal, smalls, tables, texts

metadata = tables()


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
    key(),
    *texts("id", unique=True),
    *texts("kind", "started", "workload", "target", "level", "version", "sha256"),
    *smalls("size_bytes"),
    Column("body", LargeBinary, nullable=False),
    *texts("added"),
    *texts("source", nullable=True),
    seal(),
    Index("ix_records_sha256", "sha256"),
    Index("ix_records_started", "started", "key"),
)
"""`body`: the document, zlib; `sha256` and `size_bytes` are of the document itself. `added`: when it was stored."""

settings_sets = Table("settings_sets", metadata, key(), *texts("sha256", unique=True))

settings = Table(
    "settings",
    metadata,
    belongs("settings_sets", primary=True, name="set_key"),
    *named("name"),
    *texts("value"),
    Index("ix_settings_name_value", "name", "value"),
    **CLUSTERED,
)

environments = Table("environments", metadata, key(), *texts("sha256", unique=True), *texts("body"))
"""`body`: JSON."""

runs = Table(
    "runs",
    metadata,
    key(),
    belongs("records"),
    *smalls("ordinal"),
    *texts("id", "started", "workload", "target", "target_kind"),
    *bigs("target_bytes"),
    *texts("seed", "engine", "ended_by", "level"),
    *bigs("measured_ns", "elapsed_ns", "requests"),
    *numbers("iops", "bytes_per_s"),
    *numbers("mean_latency_ns", nullable=True),
    *bigs("cpu_user_ns", "cpu_system_ns"),
    *bigs("fetched_bytes", nullable=True),
    refers("settings_key", "settings_sets"),
    refers("settings_after_key", "settings_sets"),
    refers("environment_key", "environments"),
    UniqueConstraint("record_key", "ordinal"),
    Index("ix_runs_settings_key", "settings_key"),
)
"""Single runs: one of a run's record, several of a sweep's or a quick look's, in order."""

metrics = Table(
    "metrics",
    metadata,
    belongs("records", primary=True),
    *named("name"),
    *numbers("value"),
    **CLUSTERED,
)
"""Every metric of a record, by the names of spindle.stats.metric."""

streams = Table(
    "streams",
    metadata,
    belongs("runs", primary=True),
    *ordinals("stream"),
    *texts("name"),
    *bigs("measured_ns", "total_read_bytes", "total_write_bytes", "total_bytes"),
    *numbers("mean_outstanding"),
    *bigs("max_lag_ns"),
    *smalls("workers", "depth", nullable=True),
    *texts("pattern", nullable=True),
    *numbers("mean_size_bytes", "write_fraction", nullable=True),
    *smalls("direct", nullable=True),
    *bigs("errors"),
    **CLUSTERED,
)

operations = Table(
    "operations",
    metadata,
    belongs("runs", primary=True),
    *ordinals("stream"),
    *named("operation"),
    *bigs("requests", "bytes"),
    *numbers("iops", "bytes_per_s"),
    *bigs("min_ns"),
    *numbers("mean_ns"),
    *bigs("max_ns"),
    *numbers("sdev_ns"),
    **CLUSTERED,
)
"""Operations of each stream: read, write, trim, zero, fsync; latencies from issue or intended start to completion."""

percentiles = Table(
    "percentiles",
    metadata,
    belongs("runs", primary=True),
    *ordinals("stream"),
    *named("operation"),
    Column("percentile", Double, primary_key=True),
    *bigs("ns"),
    **CLUSTERED,
)

histograms = Table(
    "histograms",
    metadata,
    belongs("runs", primary=True),
    *ordinals("stream"),
    *named("operation", "kind"),
    *texts("hdr"),
    **CLUSTERED,
)
"""HdrHistogram V2, deflated, base64; `kind`: latency, or (open loop) service."""

intervals = Table(
    "intervals",
    metadata,
    belongs("runs", primary=True),
    *ordinals("interval", "stream"),
    *bigs(
        "start_ns",
        "length_ns",
        "reads",
        "writes",
        "read_bytes",
        "write_bytes",
        "read_latency_ns",
        "write_latency_ns",
        "max_latency_ns",
    ),
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
    belongs("runs", primary=True),
    *ordinals("device"),
    *texts("name", "role"),
    *numbers("seconds"),
    *numbers(*COUNTERS, nullable=True),
    *numbers(*IOSTAT, nullable=True),
    **CLUSTERED,
)

LEGACY = {"await": "await", "svctm": "svctm", "avgrq_sz": "avgrq-sz"}
"""Columns that only older versions of iostat had (ms, ms, sectors): imported logs have them."""

device_intervals = Table(
    "device_intervals",
    metadata,
    belongs("records", primary=True),
    *ordinals("run_ordinal"),
    *named("device"),
    *ordinals("number"),
    *numbers("end_s", "seconds", nullable=True),
    *numbers(*IOSTAT, *LEGACY, nullable=True),
    **CLUSTERED,
)
"""Devices interval by interval during a run, or in an imported log. `end_s`: since the load began."""

verdicts = Table(
    "verdicts",
    metadata,
    belongs("records", primary=True),
    *ordinals("ordinal"),
    *smalls("run_ordinal", nullable=True),
    *texts("check_name", "level", "evidence", "advice", "numbers"),
    Index("ix_verdicts_check_name_level", "check_name", "level"),
    **CLUSTERED,
)
"""`run_ordinal`: the run; NULL: the whole. `numbers`: JSON."""

tags = Table(
    "tags",
    metadata,
    *named("tag"),
    belongs("records", primary=True),
    seal(),
    Index("ix_tags_record_key", "record_key"),
    **CLUSTERED,
)

artefacts = Table(
    "artefacts",
    metadata,
    key(),
    belongs("records"),
    *texts("name", "media_type", "sha256"),
    *bigs("size_bytes"),
    Column("body", LargeBinary, nullable=True),
    *texts("path", nullable=True),
    seal(),
    UniqueConstraint("record_key", "name"),
)
"""Files that belong to a record: the content, or its `path`."""

campaigns = Table(
    "campaigns",
    metadata,
    key(),
    *texts("id", "name", unique=True),
    *texts("plan", "seed", "created", "state", "detail"),
    *texts("holder", nullable=True),
    *smalls("planned", nullable=True),
    seal(),
)
"""`plan`: the text of the plan; `detail`: JSON of the campaign's program; `holder`: the process that runs it now;
`planned`: its number of trials.
"""

trials = Table(
    "trials",
    metadata,
    key(),
    belongs("campaigns"),
    *smalls("number", "block"),
    *texts("cell", "detail", "state"),
    seal(),
    UniqueConstraint("campaign_key", "number"),
)
"""In order. `cell`: JSON of factor -> level; `detail`: JSON of the campaign's program."""

trial_factors = Table(
    "trial_factors",
    metadata,
    belongs("trials", primary=True),
    *named("factor"),
    *texts("level"),
    Index("ix_trial_factors_factor_level", "factor", "level"),
    **CLUSTERED,
)

attempts = Table(
    "attempts",
    metadata,
    belongs("trials", primary=True),
    *ordinals("attempt"),
    *texts("state", "reason"),
    refers("record_key", "records", nullable=True),
    *texts("started"),
    *texts("ended", nullable=True),
    seal(),
    Index("ix_attempts_record_key", "record_key"),
    **CLUSTERED,
)
"""Each attempt at a trial: running, done, failed or invalid, with the reason."""

recordings = Table(
    "recordings",
    metadata,
    key(),
    *texts("id", unique=True),
    *texts("started", "about"),
    *numbers("interval_s"),
    *texts("host"),
    belongs("trials", nullable=True),
    *smalls("attempt", nullable=True),
    seal(),
    Index("ix_recordings_trial_key", "trial_key"),
)

samples = Table(
    "samples",
    metadata,
    belongs("recordings", primary=True),
    *named("device"),
    *bigs("start_ns", primary=True),
    *numbers("seconds"),
    *texts("label"),
    *numbers(*IOSTAT, nullable=True),
    seal(),
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
    belongs("recordings", primary=True),
    *bigs("start_ns", primary=True),
    *numbers("seconds"),
    *numbers(*MACHINE, nullable=True),
    seal(),
    **CLUSTERED,
)
"""The whole machine over one interval."""
