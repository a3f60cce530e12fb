"""A seal in each row that no document can be compared with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TABLES = ("records", "tags", "artefacts", "campaigns", "trials", "attempts", "recordings", "samples", "machine_samples")


def upgrade() -> None:
    """The column, filled from what is there."""
    from spindle.store.schema import metadata
    from spindle.store.seal import seal_all

    op.add_column("campaigns", sa.Column("planned", sa.Integer(), nullable=True))
    op.execute("UPDATE campaigns SET planned = (SELECT count(*) FROM trials WHERE campaign_key = campaigns.key)")
    for name in TABLES:
        op.add_column(name, sa.Column("seal", sa.BigInteger(), nullable=True))
    for name in TABLES:
        seal_all(op.get_bind(), metadata.tables[name])
