"""Results of a reader, before they become records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from spindle import _core
from spindle.result.imported import DeviceSeries, Moment, PartialLatency, PartialStream, Source
from spindle.result.record import ImportedRecord, Level, Tool, Verdict

UNKNOWN_TIME = "00000000T000000Z"


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """One repetition of a tool's measurement."""

    tool: str
    version: str | None = None
    started: str | None = None
    """UTC, ISO 8601."""
    reported: str | None = None
    host: str | None = None
    target: str | None = None
    workload: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    streams: list[PartialStream] = field(default_factory=list)
    devices: list[DeviceSeries] = field(default_factory=list)
    machine: list[Moment] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)


def record_of(found: Repetition, form: str, file: str, data: bytes, place: int) -> ImportedRecord:
    """Return a record. `place`: its number in the file, from 0."""
    digest = hashlib.sha256(data).hexdigest()
    own = hashlib.sha256(data + b"%d" % place).hexdigest() if place else digest
    moment = found.started or found.reported
    stamp = moment.replace("-", "").replace(":", "") if moment else UNKNOWN_TIME
    version = found.version or ""
    by = version if version.startswith(found.tool) else f"{found.tool} {version}".rstrip()
    conditions = Verdict(
        check="imported",
        level=Level.WARN,
        evidence=f"measured by {by}, read from a file: the conditions are unknown, Spindle checked nothing",
        advice="repeat it with `spindle run` if a decision depends on it",
    )
    return ImportedRecord(
        id=f"{stamp}-{own[:6]}",
        started=found.started,
        reported=found.reported,
        tool=Tool(version=_core.__version__),
        source=Source(format=form, tool=found.tool, version=found.version, file=file, sha256=digest),
        host=found.host,
        target=found.target,
        workload=found.workload,
        settings=found.settings,
        streams=_unique(found.streams),
        devices=found.devices,
        machine=found.machine,
        verdicts=[conditions, *found.verdicts],
    )


def _unique(streams: Iterable[PartialStream]) -> list[PartialStream]:
    """Number repeated names: clones of a job."""
    seen: dict[str, int] = {}
    taken = set()
    unique = []
    for stream in streams:
        name = stream.name
        while name in taken:
            seen[stream.name] = seen.get(stream.name, 1) + 1
            name = f"{stream.name}#{seen[stream.name]}"
        taken.add(name)
        unique.append(replace(stream, name=name))
    return unique


def utc(seconds: float | None) -> str | None:
    """Return seconds since 1970 as text; None if out of range."""
    if seconds is None or not 0 <= seconds < 253402300800:
        return None
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"


def writer_of(version: object) -> tuple[str, str | None]:
    """Return tool and version: fio's, or Spindle's if it wrote in fio's format."""
    like, _, own = str(version).partition("-spindle-")
    return ("spindle", own) if own else ("fio", like if version is not None else None)


def known(latency: PartialLatency) -> PartialLatency | None:
    """Return the latency; None if nothing is known of it."""
    values = (latency.min_ns, latency.mean_ns, latency.max_ns, latency.sdev_ns, latency.histogram)
    return latency if latency.percentiles or any(value is not None for value in values) else None


def is_empty(found: Repetition) -> bool:
    """True if it has no figure."""
    return not (found.streams or found.devices or found.machine)
