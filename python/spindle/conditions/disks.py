"""I/O of others on the devices."""

from __future__ import annotations

from collections.abc import Mapping

from spindle.host.diskstats import DiskDelta

from .finding import ConditionFinding

# About the least that changes a result of 1 % accuracy on one disk (some 100 requests or 100 MB a second).
OTHER_REQUESTS_PER_S = 5.0
OTHER_BYTES_PER_S = 1_000_000.0


def is_busy(change: DiskDelta) -> bool:
    """True if others used the device enough to change a result."""
    return _requests(change) > OTHER_REQUESTS_PER_S or _rate(change) > OTHER_BYTES_PER_S


def other_io(changes: Mapping[str, DiskDelta], suspects: str) -> list[ConditionFinding]:
    """One finding for each device; `suspects` names the programs that may have caused the I/O."""
    findings = []
    for name, change in changes.items():
        util = change.iostat()["%util"]
        requests, rate, busy = _requests(change), _rate(change), is_busy(change)
        text = f"{name} is in use by others: {requests:.0f} requests/s, {rate / 1e6:.1f} MB/s, {util:.0f} % busy"
        findings.append(
            ConditionFinding(
                "other_io",
                "warn" if busy else "ok",
                text + (f"; {suspects}" if suspects else "") if busy else f"{name} is idle",
                {"requests_per_s": requests, "bytes_per_s": rate, "util_percent": util},
            )
        )
    return findings


def _requests(change: DiskDelta) -> float:
    return (change.reads + change.writes + change.discards) / change.seconds


def _rate(change: DiskDelta) -> float:
    return (change.read_bytes + change.write_bytes + change.discard_bytes) / change.seconds
