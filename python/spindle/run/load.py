"""One load from start to end, observed, with the device counters around it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from spindle.conditions.during import Sampler, Traffic
from spindle.host import diskstats
from spindle.host.signals import Stopped
from spindle.result.workload import Workload
from spindle.run.watch import Moment, Watch

POLL_S = 0.1
"""Short enough for a live line."""
CALIBRATION_POLL_S = 0.005
"""So short that the last counters before the load contain hardly any requests of the calibration."""
RATE_WINDOW = 20
"""Polls over which the live rate is computed."""


class RunningLoad(Protocol):
    """The part of `_core.Run` that is used."""

    def progress(self) -> str: ...
    def stop(self) -> None: ...
    def wait(self, timeout_s: float) -> bool: ...
    def figures(self) -> str: ...


class LoadWrapper:
    """Wraps a load; subclasses implement `figures`."""

    def __init__(self, load: RunningLoad) -> None:
        self._load = load

    def progress(self) -> str:
        """See `RunningLoad`."""
        return self._load.progress()

    def stop(self) -> None:
        """See `RunningLoad`."""
        self._load.stop()

    def wait(self, timeout_s: float) -> bool:
        """See `RunningLoad`."""
        return self._load.wait(timeout_s)


@dataclass(frozen=True)
class KnownLoad:
    """A load whose figures are there already."""

    known: str

    def progress(self) -> str:
        """See `RunningLoad`: nobody asks, as it does not last."""
        raise NotImplementedError

    def stop(self) -> None:
        """See `RunningLoad`."""

    def wait(self, timeout_s: float) -> bool:
        """See `RunningLoad`."""
        return True

    def figures(self) -> str:
        """See `RunningLoad`."""
        return self.known


@dataclass(frozen=True)
class CounterSnapshot:
    """Counters at one moment."""

    disks: diskstats.Snapshot
    fetched_bytes: int | None
    """Bytes that block devices read for this program."""


@dataclass(frozen=True)
class FinishedLoad:
    """A finished load."""

    figures_json: str
    before: CounterSnapshot
    """The last counters before the load's first request."""
    after: CounterSnapshot
    stopped: bool
    """True if a person stopped it."""


def carry_out(
    start: Callable[[], RunningLoad],
    snapshot: Callable[[], CounterSnapshot],
    spec: Workload,
    label: str,
    watch: Watch,
    sampler: Sampler | None = None,
    look: Callable[[CounterSnapshot], float] | None = None,
) -> FinishedLoad:
    """Start the load, follow it, and stop it regularly on request (Ctrl-C): its figures up to then are kept.

    `look` is called during the load, with the counters from before it, and returns the seconds until its next call.
    """
    before = snapshot()
    begun = False
    stopped = False
    load = start()
    pace = _Pace(spec, label)
    calibrating, told_at, pause = True, 0.0, CALIBRATION_POLL_S
    try:
        while not load.wait(pause):
            # Snapshot before phase: a snapshot is from before the load if the phase is still `calibrate`.
            fresh = snapshot() if calibrating else before
            progress = msgspec.json.decode(load.progress())
            calibrating = progress["phase"] == "calibrate"
            if calibrating:
                before = fresh
            elif sampler is not None:
                if begun:
                    sampler.look(_moved(progress))
                else:
                    sampler.begin(_moved(progress))
                begun = True
            if not calibrating or time.monotonic() - told_at >= POLL_S:
                told_at = time.monotonic()
                watch.moment(pace.moment(progress))
            pause = CALIBRATION_POLL_S if calibrating else POLL_S
            if look is not None and not calibrating:
                pause = min(pause, max(look(before), CALIBRATION_POLL_S))
    except Stopped:
        stopped = True
        watch.step("stopping")
        _stop(load)
    except BaseException:  # its files are closed afterwards
        _stop(load)
        raise
    after = snapshot()
    if sampler is not None and begun:
        sampler.end(_moved(msgspec.json.decode(load.progress())))
    return FinishedLoad(load.figures(), before, after, stopped)


def _stop(load: RunningLoad) -> None:
    load.stop()
    while not load.wait(POLL_S):
        pass


def _moved(progress: dict[str, Any]) -> Traffic:
    streams = progress["streams"]
    return Traffic(sum(stream["read_bytes"] for stream in streams), sum(stream["write_bytes"] for stream in streams))


class _Pace:
    """Live rate and time left, from the core's counts."""

    def __init__(self, spec: Workload, label: str) -> None:
        self._spec = spec
        self._label = label
        self._seen: deque[tuple[float, int, int]] = deque(maxlen=RATE_WINDOW)

    def moment(self, progress: dict[str, Any]) -> Moment:
        streams = progress["streams"]
        requests = sum(stream["reads"] + stream["writes"] for stream in streams)
        moved = sum(stream["read_bytes"] + stream["write_bytes"] for stream in streams)
        self._seen.append((time.monotonic(), requests, moved))
        (then, requests_then, moved_then), (now, *_) = self._seen[0], self._seen[-1]
        span = now - then
        iops = (requests - requests_then) / span if span > 0 else 0.0
        bytes_per_s = (moved - moved_then) / span if span > 0 else 0.0
        done, left = self._left(progress, requests, moved, iops, bytes_per_s)
        return Moment(
            label=self._label,
            phase=progress["phase"],
            done_fraction=done,
            left_s=left,
            iops=iops,
            bytes_per_s=bytes_per_s,
            errors=sum(stream["errors"] for stream in streams),
        )

    def _left(
        self, progress: dict[str, Any], requests: int, moved: int, iops: float, bytes_per_s: float
    ) -> tuple[float | None, float | None]:
        """Completed share and time left, by the earliest end."""
        end = self._spec.end
        ends: list[tuple[float, float]] = []
        if end.time_ns is not None:
            whole = (self._spec.ramp_ns + end.time_ns) / 1e9
            passed = progress["elapsed_ns"] / 1e9
            ends.append((min(1.0, passed / whole) if whole else 1.0, max(0.0, whole - passed)))
        if end.bytes and bytes_per_s > 0:
            ends.append((min(1.0, moved / end.bytes), max(0.0, (end.bytes - moved) / bytes_per_s)))
        if end.requests and iops > 0:
            ends.append((min(1.0, requests / end.requests), max(0.0, (end.requests - requests) / iops)))
        if not ends:
            return None, None
        return min(ends, key=lambda pair: pair[1])
