"""The intervals of a run, in memory allocated at its start.

A sample as an object takes a kilobyte, and one comes each second: in a long run that memory would disturb the
measurement. So a sample is a row of numbers in one array.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from spindle.result.record import Sample

from .sample import COLUMNS, joined

FIELDS = (
    "at_s",
    "seconds",
    "cpu_others",
    "cpu_iowait",
    "cpu_steal",
    "other_read_bytes_per_s",
    "other_write_bytes_per_s",
    "swapped_pages",
    "throttle_events",
)
COUNTED = {"swapped_pages", "throttle_events"}
UNKNOWN = math.nan


class Intervals:
    """At most `most` samples. Joins neighbours when there are more."""

    def __init__(self, sensors: Sequence[str], devices: Sequence[str], most: int) -> None:
        self._sensors = list(sensors)
        self._devices = list(devices)
        self._width = len(FIELDS) + len(self._sensors) + len(self._devices) * len(COLUMNS)
        self._rows = array("d", [UNKNOWN]) * (self._width * (most + 1))
        self._working: dict[int, dict[str, str]] = {}
        """Activity of arrays, for the few samples in which an array had any."""
        self._most = most
        self._count = 0

    def add(self, sample: Sample) -> bool:
        """Add a sample. Return True if neighbours were joined."""
        self._put(self._count, sample)
        self._count += 1
        if self._count <= self._most:
            return False
        half = self._count // 2
        for place in range(half):
            self._put(place, joined(self._at(2 * place), self._at(2 * place + 1)))
        if self._count % 2:
            self._put(half, self._at(self._count - 1))
        self._count -= half
        self._working = {place: working for place, working in self._working.items() if place < self._count}
        return True

    def samples(self) -> list[Sample]:
        """The samples in order of time."""
        return [self._at(place) for place in range(self._count)]

    def _put(self, place: int, sample: Sample) -> None:
        values = [getattr(sample, name) for name in FIELDS]
        values += [sample.temperatures.get(name) for name in self._sensors]
        for name in self._devices:
            columns = sample.devices.get(name, {})
            values += [columns.get(column) for column in COLUMNS]
        at = place * self._width
        for shift, value in enumerate(values):
            self._rows[at + shift] = UNKNOWN if value is None else value
        self._working.pop(place, None)
        if sample.array_actions:
            self._working[place] = sample.array_actions

    def _at(self, place: int) -> Sample:
        row = [
            None if math.isnan(value) else value
            for value in self._rows[place * self._width : (place + 1) * self._width]
        ]
        fields, rest = row[: len(FIELDS)], row[len(FIELDS) :]
        temperatures, columns = rest[: len(self._sensors)], rest[len(self._sensors) :]
        known = {name: _whole(value) if name in COUNTED else value for name, value in zip(FIELDS, fields, strict=True)}
        return Sample(
            **known,  # type: ignore[arg-type]
            temperatures={
                name: value for name, value in zip(self._sensors, temperatures, strict=True) if value is not None
            },
            array_actions=self._working.get(place, {}),
            devices={
                name: {column: value for column, value in zip(COLUMNS, part, strict=True) if value is not None}
                for index, name in enumerate(self._devices)
                if (part := columns[index * len(COLUMNS) :][: len(COLUMNS)])[0] is not None
            },
        )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
