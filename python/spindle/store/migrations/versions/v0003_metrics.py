"""Metrics anew: `cpu_percent` of runs that measured CPU time; no CPU metrics of those that did not.

A row of `metrics` is derived from its document, so today's code derives it. A document that cannot be read keeps its
rows; `spindle store check` names it.
"""

from __future__ import annotations

import zlib

from alembic import op
from sqlalchemy import delete, insert, select

from spindle.result.document import Unreadable, decode
from spindle.store.adding import opened
from spindle.store.rows import metric_rows
from spindle.store.schema import metrics, records
from spindle.store.selection import in_pieces

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Replace the metrics of each record. Shape and names of the tables stay."""
    connection = op.get_bind()
    for keys in in_pieces(list(connection.execute(select(records.c.key)).scalars())):
        of_piece = select(records.c.key, records.c.id, records.c.body).where(records.c.key.in_(keys))
        for key, name, body in connection.execute(of_piece).all():
            try:
                rows = metric_rows(decode(opened(body), name))
            except (Unreadable, ValueError, zlib.error):
                continue
            connection.execute(delete(metrics).where(metrics.c.record_key == key))
            if rows:
                connection.execute(insert(metrics), [{"record_key": key, **row} for row in rows])
