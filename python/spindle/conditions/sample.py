"""One interval of the watch beside a load."""

from __future__ import annotations

from collections.abc import Mapping

from spindle.result.record import Sample

COLUMNS = ("r/s", "w/s", "rMB/s", "wMB/s", "r_await", "w_await", "aqu-sz", "%util")
"""Columns of `iostat -mx` that each interval keeps."""


def joined(one: Sample, other: Sample) -> Sample:
    """Join two neighbours into one interval."""
    seconds = one.seconds + other.seconds

    def mean(name: str) -> float | None:
        a, b = getattr(one, name), getattr(other, name)
        return None if a is None or b is None else (a * one.seconds + b * other.seconds) / seconds

    def total(name: str) -> int | None:
        a, b = getattr(one, name), getattr(other, name)
        return None if a is None or b is None else a + b

    return Sample(
        at_s=other.at_s,
        seconds=seconds,
        cpu_others=mean("cpu_others"),
        cpu_iowait=mean("cpu_iowait"),
        cpu_steal=mean("cpu_steal"),
        other_read_bytes_per_s=mean("other_read_bytes_per_s"),
        other_write_bytes_per_s=mean("other_write_bytes_per_s"),
        swapped_pages=total("swapped_pages"),
        throttle_events=total("throttle_events"),
        temperatures={
            name: max(one.temperatures.get(name, value), value) for name, value in other.temperatures.items()
        },
        array_actions={**one.array_actions, **other.array_actions},
        devices={
            name: _joined_columns(one.devices[name], one.seconds, columns, other.seconds)
            for name, columns in other.devices.items()
            if name in one.devices
        },
    )


def _joined_columns(
    one: Mapping[str, float], seconds: float, other: Mapping[str, float], more: float
) -> dict[str, float]:
    """Weight means with time, and waits of requests with the number of requests."""
    found = {}
    for column, value in other.items():
        count = column.replace("_await", "/s")
        weight, weight_more = (seconds * one[count], more * other[count]) if count != column else (seconds, more)
        both = weight + weight_more
        found[column] = (one[column] * weight + value * weight_more) / both if both else 0.0
    return found
