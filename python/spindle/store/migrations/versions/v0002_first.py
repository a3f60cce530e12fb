"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "campaigns",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("created", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("planned", sa.Integer(), nullable=True),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_campaigns")),
        sa.UniqueConstraint("id", name=op.f("uq_campaigns_id")),
        sa.UniqueConstraint("name", name=op.f("uq_campaigns_name")),
    )
    op.create_table(
        "environments",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_environments")),
        sa.UniqueConstraint("sha256", name=op.f("uq_environments_sha256")),
    )
    op.create_table(
        "records",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("started", sa.Text(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("added", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_records")),
        sa.UniqueConstraint("id", name=op.f("uq_records_id")),
    )
    op.create_index("ix_records_sha256", "records", ["sha256"], unique=False)
    op.create_index("ix_records_started", "records", ["started", "key"], unique=False)
    op.create_table(
        "settings_sets",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_settings_sets")),
        sa.UniqueConstraint("sha256", name=op.f("uq_settings_sets_sha256")),
    )
    op.create_table(
        "artefacts",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("record_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["record_key"], ["records.key"], name=op.f("fk_artefacts_record_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_artefacts")),
        sa.UniqueConstraint("record_key", "name", name=op.f("uq_artefacts_record_key_name")),
    )
    op.create_table(
        "device_intervals",
        sa.Column("record_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("end_s", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("r_s", sa.Double(), nullable=True),
        sa.Column("rmb_s", sa.Double(), nullable=True),
        sa.Column("rrqm_s", sa.Double(), nullable=True),
        sa.Column("rrqm_pct", sa.Double(), nullable=True),
        sa.Column("r_await", sa.Double(), nullable=True),
        sa.Column("rareq_sz", sa.Double(), nullable=True),
        sa.Column("w_s", sa.Double(), nullable=True),
        sa.Column("wmb_s", sa.Double(), nullable=True),
        sa.Column("wrqm_s", sa.Double(), nullable=True),
        sa.Column("wrqm_pct", sa.Double(), nullable=True),
        sa.Column("w_await", sa.Double(), nullable=True),
        sa.Column("wareq_sz", sa.Double(), nullable=True),
        sa.Column("d_s", sa.Double(), nullable=True),
        sa.Column("dmb_s", sa.Double(), nullable=True),
        sa.Column("drqm_s", sa.Double(), nullable=True),
        sa.Column("drqm_pct", sa.Double(), nullable=True),
        sa.Column("d_await", sa.Double(), nullable=True),
        sa.Column("dareq_sz", sa.Double(), nullable=True),
        sa.Column("f_s", sa.Double(), nullable=True),
        sa.Column("f_await", sa.Double(), nullable=True),
        sa.Column("aqu_sz", sa.Double(), nullable=True),
        sa.Column("util", sa.Double(), nullable=True),
        sa.Column("await", sa.Double(), nullable=True),
        sa.Column("svctm", sa.Double(), nullable=True),
        sa.Column("avgrq_sz", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["record_key"], ["records.key"], name=op.f("fk_device_intervals_record_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("record_key", "run_ordinal", "device", "number", name=op.f("pk_device_intervals")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "metrics",
        sa.Column("record_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["record_key"], ["records.key"], name=op.f("fk_metrics_record_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("record_key", "name", name=op.f("pk_metrics")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "runs",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("record_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("started", sa.Text(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("target_kind", sa.Text(), nullable=False),
        sa.Column("target_bytes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("ended_by", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("measured_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("elapsed_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("requests", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("iops", sa.Double(), nullable=False),
        sa.Column("bytes_per_s", sa.Double(), nullable=False),
        sa.Column("mean_latency_ns", sa.Double(), nullable=True),
        sa.Column("cpu_user_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cpu_system_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("fetched_bytes", sa.BigInteger(), autoincrement=False, nullable=True),
        sa.Column("settings_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("settings_after_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("environment_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["environment_key"], ["environments.key"], name=op.f("fk_runs_environment_key")),
        sa.ForeignKeyConstraint(["record_key"], ["records.key"], name=op.f("fk_runs_record_key"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["settings_after_key"], ["settings_sets.key"], name=op.f("fk_runs_settings_after_key")),
        sa.ForeignKeyConstraint(["settings_key"], ["settings_sets.key"], name=op.f("fk_runs_settings_key")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_runs")),
        sa.UniqueConstraint("record_key", "ordinal", name=op.f("uq_runs_record_key_ordinal")),
    )
    op.create_index("ix_runs_settings_key", "runs", ["settings_key"], unique=False)
    op.create_table(
        "settings",
        sa.Column("set_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["set_key"], ["settings_sets.key"], name=op.f("fk_settings_set_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("set_key", "name", name=op.f("pk_settings")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_settings_name_value", "settings", ["name", "value"], unique=False)
    op.create_table(
        "tags",
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("record_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["record_key"], ["records.key"], name=op.f("fk_tags_record_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("tag", "record_key", name=op.f("pk_tags")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_tags_record_key", "tags", ["record_key"], unique=False)
    op.create_table(
        "trials",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("campaign_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("block", sa.Integer(), nullable=False),
        sa.Column("cell", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_key"], ["campaigns.key"], name=op.f("fk_trials_campaign_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_trials")),
        sa.UniqueConstraint("campaign_key", "number", name=op.f("uq_trials_campaign_key_number")),
    )
    op.create_table(
        "verdicts",
        sa.Column("record_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("run_ordinal", sa.Integer(), nullable=True),
        sa.Column("check_name", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("advice", sa.Text(), nullable=False),
        sa.Column("numbers", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["record_key"], ["records.key"], name=op.f("fk_verdicts_record_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("record_key", "ordinal", name=op.f("pk_verdicts")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_verdicts_check_name_level", "verdicts", ["check_name", "level"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("trial_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("record_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("started", sa.Text(), nullable=False),
        sa.Column("ended", sa.Text(), nullable=True),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["record_key"], ["records.key"], name=op.f("fk_attempts_record_key")),
        sa.ForeignKeyConstraint(["trial_key"], ["trials.key"], name=op.f("fk_attempts_trial_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trial_key", "attempt", name=op.f("pk_attempts")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_attempts_record_key", "attempts", ["record_key"], unique=False)
    op.create_table(
        "devices",
        sa.Column("run_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("reads", sa.Double(), nullable=True),
        sa.Column("read_merges", sa.Double(), nullable=True),
        sa.Column("read_bytes", sa.Double(), nullable=True),
        sa.Column("read_ms", sa.Double(), nullable=True),
        sa.Column("writes", sa.Double(), nullable=True),
        sa.Column("write_merges", sa.Double(), nullable=True),
        sa.Column("write_bytes", sa.Double(), nullable=True),
        sa.Column("write_ms", sa.Double(), nullable=True),
        sa.Column("discards", sa.Double(), nullable=True),
        sa.Column("discard_merges", sa.Double(), nullable=True),
        sa.Column("discard_bytes", sa.Double(), nullable=True),
        sa.Column("discard_ms", sa.Double(), nullable=True),
        sa.Column("flushes", sa.Double(), nullable=True),
        sa.Column("flush_ms", sa.Double(), nullable=True),
        sa.Column("busy_ms", sa.Double(), nullable=True),
        sa.Column("weighted_ms", sa.Double(), nullable=True),
        sa.Column("r_s", sa.Double(), nullable=True),
        sa.Column("rmb_s", sa.Double(), nullable=True),
        sa.Column("rrqm_s", sa.Double(), nullable=True),
        sa.Column("rrqm_pct", sa.Double(), nullable=True),
        sa.Column("r_await", sa.Double(), nullable=True),
        sa.Column("rareq_sz", sa.Double(), nullable=True),
        sa.Column("w_s", sa.Double(), nullable=True),
        sa.Column("wmb_s", sa.Double(), nullable=True),
        sa.Column("wrqm_s", sa.Double(), nullable=True),
        sa.Column("wrqm_pct", sa.Double(), nullable=True),
        sa.Column("w_await", sa.Double(), nullable=True),
        sa.Column("wareq_sz", sa.Double(), nullable=True),
        sa.Column("d_s", sa.Double(), nullable=True),
        sa.Column("dmb_s", sa.Double(), nullable=True),
        sa.Column("drqm_s", sa.Double(), nullable=True),
        sa.Column("drqm_pct", sa.Double(), nullable=True),
        sa.Column("d_await", sa.Double(), nullable=True),
        sa.Column("dareq_sz", sa.Double(), nullable=True),
        sa.Column("f_s", sa.Double(), nullable=True),
        sa.Column("f_await", sa.Double(), nullable=True),
        sa.Column("aqu_sz", sa.Double(), nullable=True),
        sa.Column("util", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_devices_run_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_key", "device", name=op.f("pk_devices")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "histograms",
        sa.Column("run_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stream", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("hdr", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_histograms_run_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_key", "stream", "operation", "kind", name=op.f("pk_histograms")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "intervals",
        sa.Column("run_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("interval", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("stream", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("length_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reads", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("writes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("read_bytes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("write_bytes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("read_latency_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("write_latency_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("max_latency_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_intervals_run_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_key", "interval", "stream", name=op.f("pk_intervals")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "operations",
        sa.Column("run_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stream", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("requests", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("bytes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("iops", sa.Double(), nullable=False),
        sa.Column("bytes_per_s", sa.Double(), nullable=False),
        sa.Column("min_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("mean_ns", sa.Double(), nullable=False),
        sa.Column("max_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sdev_ns", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_operations_run_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_key", "stream", "operation", name=op.f("pk_operations")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "percentiles",
        sa.Column("run_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stream", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("percentile", sa.Double(), nullable=False),
        sa.Column("ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_percentiles_run_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_key", "stream", "operation", "percentile", name=op.f("pk_percentiles")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "recordings",
        sa.Column("key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("started", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("interval_s", sa.Double(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("trial_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["trial_key"], ["trials.key"], name=op.f("fk_recordings_trial_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_recordings")),
        sa.UniqueConstraint("id", name=op.f("uq_recordings_id")),
    )
    op.create_index("ix_recordings_trial_key", "recordings", ["trial_key"], unique=False)
    op.create_table(
        "streams",
        sa.Column("run_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stream", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("measured_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("total_read_bytes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("total_write_bytes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("total_bytes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("mean_outstanding", sa.Double(), nullable=False),
        sa.Column("max_lag_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("workers", sa.Integer(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=True),
        sa.Column("pattern", sa.Text(), nullable=True),
        sa.Column("mean_size_bytes", sa.Double(), nullable=True),
        sa.Column("write_fraction", sa.Double(), nullable=True),
        sa.Column("direct", sa.Integer(), nullable=True),
        sa.Column("errors", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.key"], name=op.f("fk_streams_run_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_key", "stream", name=op.f("pk_streams")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "trial_factors",
        sa.Column("trial_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("factor", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_key"], ["trials.key"], name=op.f("fk_trial_factors_trial_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_key", "factor", name=op.f("pk_trial_factors")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_trial_factors_factor_level", "trial_factors", ["factor", "level"], unique=False)
    op.create_table(
        "machine_samples",
        sa.Column("recording_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("start_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("runnable", sa.Double(), nullable=True),
        sa.Column("blocked", sa.Double(), nullable=True),
        sa.Column("us", sa.Double(), nullable=True),
        sa.Column("sy", sa.Double(), nullable=True),
        sa.Column("idle", sa.Double(), nullable=True),
        sa.Column("wa", sa.Double(), nullable=True),
        sa.Column("st", sa.Double(), nullable=True),
        sa.Column("io_some", sa.Double(), nullable=True),
        sa.Column("io_full", sa.Double(), nullable=True),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["recording_key"], ["recordings.key"], name=op.f("fk_machine_samples_recording_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("recording_key", "start_ns", name=op.f("pk_machine_samples")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "samples",
        sa.Column("recording_key", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("start_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("r_s", sa.Double(), nullable=True),
        sa.Column("rmb_s", sa.Double(), nullable=True),
        sa.Column("rrqm_s", sa.Double(), nullable=True),
        sa.Column("rrqm_pct", sa.Double(), nullable=True),
        sa.Column("r_await", sa.Double(), nullable=True),
        sa.Column("rareq_sz", sa.Double(), nullable=True),
        sa.Column("w_s", sa.Double(), nullable=True),
        sa.Column("wmb_s", sa.Double(), nullable=True),
        sa.Column("wrqm_s", sa.Double(), nullable=True),
        sa.Column("wrqm_pct", sa.Double(), nullable=True),
        sa.Column("w_await", sa.Double(), nullable=True),
        sa.Column("wareq_sz", sa.Double(), nullable=True),
        sa.Column("d_s", sa.Double(), nullable=True),
        sa.Column("dmb_s", sa.Double(), nullable=True),
        sa.Column("drqm_s", sa.Double(), nullable=True),
        sa.Column("drqm_pct", sa.Double(), nullable=True),
        sa.Column("d_await", sa.Double(), nullable=True),
        sa.Column("dareq_sz", sa.Double(), nullable=True),
        sa.Column("f_s", sa.Double(), nullable=True),
        sa.Column("f_await", sa.Double(), nullable=True),
        sa.Column("aqu_sz", sa.Double(), nullable=True),
        sa.Column("util", sa.Double(), nullable=True),
        sa.Column("seal", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["recording_key"], ["recordings.key"], name=op.f("fk_samples_recording_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("recording_key", "device", "start_ns", name=op.f("pk_samples")),
        sqlite_with_rowid=False,
    )
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
