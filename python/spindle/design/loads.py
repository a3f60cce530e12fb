"""The loads of an array as workloads for the simulator, and as rates and sizes for the formulas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spindle import _core
from spindle.design.requirement import Load, Requirement

SAMPLE = 400
"""Requests of a stream from which its shares and sizes are taken."""
SAMPLE_BYTES = 1 << 40
"""Size of the array on which they are drawn."""


@dataclass(frozen=True)
class Demand:
    """The requests of one stream."""

    load: str
    iops: float
    """Requests/s that the array must take: the rate of an open loop, the least one of a closed loop."""
    writes: float
    """Share of writes."""
    read_bytes: float
    write_bytes: float
    """Mean sizes."""
    is_sequential: bool
    """True for one worker that goes on where it ended: drives need not seek."""


@dataclass(frozen=True)
class Volume:
    """The loads and the space of one array."""

    name: str
    loads: tuple[Load, ...]
    needed_bytes: int

    @property
    def periods(self) -> list[str | None]:
        """Times of day with loads of their own; [None]: one that is always the same."""
        named = list(dict.fromkeys(load.period for load in self.loads if load.period is not None))
        return list(named) or [None]

    def at(self, period: str | None) -> list[Load]:
        """The loads of a time of day."""
        return [load for load in self.loads if load.period in (None, period)]

    @property
    def writes(self) -> bool:
        """True if a load writes."""
        return any(stream["mix"]["write"] > 0 for load in self.loads for stream in load.parsed())


def separable(requirement: Requirement) -> list[str]:
    """Names of the arrays that a machine may have besides that of the data."""
    whole = [load.name for load in requirement.loads if load.apart_bytes is not None]
    return whole + [hot_name(load) for load in requirement.loads if load.may_split]


def hot_name(load: Load) -> str:
    """Name of the array for the hot places of a load."""
    return f"{load.name}-hot"


def volumes(requirement: Requirement, apart: Sequence[str]) -> list[Volume]:
    """The arrays of a machine in which those named `apart` are arrays of their own (`separable`). All else shares one,
    with the space of those that could be apart and are not."""
    factor = requirement.growth.capacity_factor
    shared: list[Load] = []
    own: list[Volume] = []
    extra, moved = 0, 0.0
    for load in requirement.loads:
        if load.name in apart:
            own.append(Volume(load.name, (load,), round((load.apart_bytes or 0) * factor)))
        elif hot_name(load) in apart:
            space, access = load.hot
            size = requirement.needed_bytes * space
            own.append(Volume(hot_name(load), (load.split(hot_name(load), access),), round(size)))
            shared.append(load.split(load.name, 1 - access))
            moved += size
        else:
            shared.append(load)
            extra += load.apart_bytes or 0
    needed = requirement.needed_bytes - round(moved) + round(extra * factor)
    return [Volume("data", tuple(shared), needed), *own]


def workload(
    loads: Sequence[Load],
    seconds: float,
    seed: int,
    factor: float = 1.0,
    *,
    requests: int | None = None,
    ramp_s: float | None = None,
) -> _core.Workload:
    """All loads as one workload that counts `seconds`, or `requests` if these are over first, after a ramp of `ramp_s`
    (a fifth of the time, at least 1 s). `factor`: on the rates of open loops. Raises `_core.ConfigError`."""
    streams: list[dict[str, Any]] = []
    filesets: list[dict[str, Any]] = []
    for load in loads:
        sets = json.loads(load.filesets)
        names = {of["name"]: f"{of['name']}-{len(filesets)}" for of in sets}
        filesets += [{**of, "name": names[of["name"]]} for of in sets]
        for stream in load.parsed():
            if stream["files"] is not None:
                stream["files"]["set"] = names[stream["files"]["set"]]
            if stream["arrival"]["kind"] == "open":
                stream["arrival"]["rate_iops"] *= factor
            streams.append(stream)
    ramp_s = max(1.0, seconds / 5) if ramp_s is None else ramp_s
    end = {"time_ns": round(seconds * 1e9), "bytes": None, "requests": requests, "steady": False, "steady_rule": None}
    whole = {
        "name": "design", "about": "", "table": "streams", "seed": seed, "ramp_ns": round(ramp_s * 1e9),
        "end": end, "filesets": filesets, "streams": streams, "phases": [],
    }  # fmt: skip
    return _core.Workload.from_json(json.dumps(whole))


def demands(loads: Sequence[Load], factor: float = 1.0) -> list[Demand]:
    """Rates and sizes of each stream, from a sample of its requests. `factor`: on the rates of open loops."""
    core = workload(loads, 1.0, 1)
    found: list[Demand] = []
    number = 0
    for load in loads:
        streams = load.parsed()
        for stream in streams:
            sample = core.requests(number, 0, SAMPLE_BYTES, 4096, SAMPLE)
            reads = [length for op, _, length, _ in sample if op == "read"]
            writes = [length for op, _, length, _ in sample if op != "read"]
            mean = sum(length for _, _, length, _ in sample) / max(1, len(sample))
            open_iops = stream["arrival"].get("rate_iops", 0.0) * factor
            least = max(load.least_iops or 0.0, (load.least_bytes_per_s or 0.0) / max(1.0, mean)) / len(streams)
            found.append(
                Demand(
                    load=load.name,
                    iops=open_iops or least,
                    writes=stream["mix"]["write"],
                    read_bytes=sum(reads) / len(reads) if reads else mean,
                    write_bytes=sum(writes) / len(writes) if writes else mean,
                    is_sequential=stream["pattern"]["kind"] == "sequential" and stream["workers"] == 1,
                )
            )
            number += 1
    return found
