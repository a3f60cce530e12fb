"""Recordings of `spindle monitor` in the store: each interval is on disk before the next begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spindle.store import MachineSample, Recording, Sample

if TYPE_CHECKING:
    from spindle.monitor import Interval
    from spindle.store import Store


class Recorder:
    """One recording, begun with its first report."""

    def __init__(self, store: Store, interval_s: float, devices: Sequence[str]) -> None:
        self._store = store
        self._interval_s = interval_s
        self._about = f"monitor {' '.join(devices)}".strip()
        self.id: str | None = None
        """Its identity in the store; None before the first interval."""
        self._begun_ns = 0

    def add(self, interval: Interval) -> None:
        """Store an interval; it is durable on return. Raises StoreError."""
        seconds = interval.seconds
        start_ns = interval.end_ns - round(seconds * 1e9)
        if self.id is None:
            self._begin(start_ns)
        assert self.id is not None
        since_ns = start_ns - self._begun_ns
        self._store.add_samples(
            self.id,
            [
                Sample(device=name, start_ns=since_ns, seconds=seconds, iostat=activity.columns())
                for name, activity in interval.disks.items()
            ],
            [MachineSample(start_ns=since_ns, seconds=seconds, columns=interval.host)],
        )

    def _begin(self, start_ns: int) -> None:
        self._begun_ns = start_ns
        started = datetime.fromtimestamp(start_ns / 1e9, UTC)
        self.id = self._store.start_recording(
            Recording(
                started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
                interval_s=self._interval_s,
                about=self._about,
                host=os.uname().nodename,
            )
        )
