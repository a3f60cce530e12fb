"""The first schema."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, Index, LargeBinary, Table, UniqueConstraint

from spindle.store.columns import CLUSTERED, belongs, bigs, key, named, numbers, ordinals, refers, seal, smalls, texts
from spindle.store.columns import tables as no_tables

revision = "0002"
down_revision = None

IOSTAT = [
    "r_s", "rmb_s", "rrqm_s", "rrqm_pct", "r_await", "rareq_sz", "w_s", "wmb_s", "wrqm_s", "wrqm_pct", "w_await",
    "wareq_sz", "d_s", "dmb_s", "drqm_s", "drqm_pct", "d_await", "dareq_sz", "f_s", "f_await", "aqu_sz", "util",
]  # fmt: skip
COUNTERS = [
    "reads", "read_merges", "read_bytes", "read_ms", "writes", "write_merges", "write_bytes", "write_ms",
    "discards", "discard_merges", "discard_bytes", "discard_ms", "flushes", "flush_ms", "busy_ms", "weighted_ms",
]  # fmt: skip

tables = no_tables()
Table(
    "records",
    tables,
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
Table("settings_sets", tables, key(), *texts("sha256", unique=True))
Table(
    "settings",
    tables,
    belongs("settings_sets", primary=True, name="set_key"),
    *named("name"),
    *texts("value"),
    Index("ix_settings_name_value", "name", "value"),
    **CLUSTERED,
)
Table("environments", tables, key(), *texts("sha256", unique=True), *texts("body"))
Table(
    "runs",
    tables,
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
Table(
    "metrics",
    tables,
    belongs("records", primary=True),
    *named("name"),
    *numbers("value"),
    **CLUSTERED,
)
Table(
    "streams",
    tables,
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
Table(
    "operations",
    tables,
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
Table(
    "percentiles",
    tables,
    belongs("runs", primary=True),
    *ordinals("stream"),
    *named("operation"),
    Column("percentile", Double, primary_key=True),
    *bigs("ns"),
    **CLUSTERED,
)
Table(
    "histograms",
    tables,
    belongs("runs", primary=True),
    *ordinals("stream"),
    *named("operation", "kind"),
    *texts("hdr"),
    **CLUSTERED,
)
Table(
    "intervals",
    tables,
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
Table(
    "devices",
    tables,
    belongs("runs", primary=True),
    *ordinals("device"),
    *texts("name", "role"),
    *numbers("seconds"),
    *numbers(*COUNTERS, nullable=True),
    *numbers(*IOSTAT, nullable=True),
    **CLUSTERED,
)
Table(
    "device_intervals",
    tables,
    belongs("records", primary=True),
    *ordinals("run_ordinal"),
    *named("device"),
    *ordinals("number"),
    *numbers("end_s", "seconds", nullable=True),
    *numbers(*IOSTAT, "await", "svctm", "avgrq_sz", nullable=True),
    **CLUSTERED,
)
Table(
    "verdicts",
    tables,
    belongs("records", primary=True),
    *ordinals("ordinal"),
    *smalls("run_ordinal", nullable=True),
    *texts("check_name", "level", "evidence", "advice", "numbers"),
    Index("ix_verdicts_check_name_level", "check_name", "level"),
    **CLUSTERED,
)
Table(
    "tags",
    tables,
    *named("tag"),
    belongs("records", primary=True),
    seal(),
    Index("ix_tags_record_key", "record_key"),
    **CLUSTERED,
)
Table(
    "artefacts",
    tables,
    key(),
    belongs("records"),
    *texts("name", "media_type", "sha256"),
    *bigs("size_bytes"),
    Column("body", LargeBinary, nullable=True),
    *texts("path", nullable=True),
    seal(),
    UniqueConstraint("record_key", "name"),
)
Table(
    "campaigns",
    tables,
    key(),
    *texts("id", "name", unique=True),
    *texts("plan", "seed", "created", "state", "detail"),
    *texts("holder", nullable=True),
    *smalls("planned", nullable=True),
    seal(),
)
Table(
    "trials",
    tables,
    key(),
    belongs("campaigns"),
    *smalls("number", "block"),
    *texts("cell", "detail", "state"),
    seal(),
    UniqueConstraint("campaign_key", "number"),
)
Table(
    "trial_factors",
    tables,
    belongs("trials", primary=True),
    *named("factor"),
    *texts("level"),
    Index("ix_trial_factors_factor_level", "factor", "level"),
    **CLUSTERED,
)
Table(
    "attempts",
    tables,
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
Table(
    "recordings",
    tables,
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
Table(
    "samples",
    tables,
    belongs("recordings", primary=True),
    *named("device"),
    *bigs("start_ns", primary=True),
    *numbers("seconds"),
    *texts("label"),
    *numbers(*IOSTAT, nullable=True),
    seal(),
    **CLUSTERED,
)
Table(
    "machine_samples",
    tables,
    belongs("recordings", primary=True),
    *bigs("start_ns", primary=True),
    *numbers("seconds"),
    *numbers("runnable", "blocked", "us", "sy", "idle", "wa", "st", "io_some", "io_full", nullable=True),
    seal(),
    **CLUSTERED,
)


def upgrade() -> None:
    """Make all tables."""
    tables.create_all(op.get_bind(), checkfirst=False)
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


VIEWS = {
    # Every trial that is done, with its run.
    "campaign_runs": """
        SELECT campaigns.name AS campaign, trials.number AS trial, trials.block, trials.cell,
               records.id AS run, records.key AS record_key
        FROM campaigns
        JOIN trials ON trials.campaign_key = campaigns.key
        JOIN attempts ON attempts.trial_key = trials.key AND attempts.state = 'done'
        JOIN records ON records.key = attempts.record_key""",
    # The levels of each trial's factors.
    "factors": """
        SELECT campaigns.name AS campaign, trials.number AS trial, trial_factors.factor, trial_factors.level
        FROM campaigns
        JOIN trials ON trials.campaign_key = campaigns.key
        JOIN trial_factors ON trial_factors.trial_key = trials.key""",
    # The settings that were in force when each run began.
    "run_settings": """
        SELECT records.id AS run, runs.ordinal, settings.name, settings.value
        FROM records
        JOIN runs ON runs.record_key = records.key
        JOIN settings ON settings.set_key = runs.settings_key""",
    # What devices did, interval by interval, in trials and under `spindle monitor`, with older
    # iostats' columns: ms and sectors.
    "iostat": """
        SELECT recordings.id AS recording, campaigns.name AS campaign, trials.number AS trial, trials.block,
               samples.device, samples.start_ns / 1e9 AS second, samples.seconds, samples.label,
               r_s, rmb_s, rrqm_s, rrqm_pct, r_await, rareq_sz,
               w_s, wmb_s, wrqm_s, wrqm_pct, w_await, wareq_sz,
               d_s, dmb_s, drqm_s, drqm_pct, d_await, dareq_sz,
               f_s, f_await, aqu_sz, util,
               (r_s * r_await + w_s * w_await) / NULLIF(r_s + w_s, 0) AS await,
               10 * util / NULLIF(r_s + w_s, 0) AS svctm,
               2048 * (rmb_s + wmb_s) / NULLIF(r_s + w_s, 0) AS avgrq_sz,
               aqu_sz AS avgqu_sz
        FROM samples
        JOIN recordings ON recordings.key = samples.recording_key
        LEFT JOIN trials ON trials.key = recordings.trial_key
        LEFT JOIN campaigns ON campaigns.key = trials.campaign_key
        LEFT JOIN attempts ON attempts.trial_key = recordings.trial_key AND attempts.attempt = recordings.attempt
        WHERE recordings.trial_key IS NULL OR attempts.state = 'done'""",
    # The same beside each run, and in imported logs of iostat.
    "run_iostat": """
        SELECT records.id AS run, run_ordinal, device, number, end_s, seconds,
               r_s, rmb_s, rrqm_s, rrqm_pct, r_await, rareq_sz,
               w_s, wmb_s, wrqm_s, wrqm_pct, w_await, wareq_sz,
               d_s, dmb_s, drqm_s, drqm_pct, d_await, dareq_sz,
               f_s, f_await, aqu_sz, util,
               COALESCE(await, (r_s * r_await + w_s * w_await) / NULLIF(r_s + w_s, 0)) AS await,
               COALESCE(svctm, 10 * util / NULLIF(r_s + w_s, 0)) AS svctm,
               COALESCE(avgrq_sz, 2048 * (rmb_s + wmb_s) / NULLIF(r_s + w_s, 0)) AS avgrq_sz,
               aqu_sz AS avgqu_sz
        FROM device_intervals
        JOIN records ON records.key = device_intervals.record_key""",
}
"""Questions that are asked often, as tables."""
