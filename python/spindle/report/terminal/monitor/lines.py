"""Output for programs: a CSV file with a row per device and interval, or one JSON object per line."""

from __future__ import annotations

import csv
import json
import os
import sys
from typing import Any

from spindle.host.outputs import Output
from spindle.monitor import DISK, HOST, Interval, Summary
from spindle.report.terminal.monitor.rows import moment
from spindle.run.errors import RunFailed

KEYS = ("time [UTC]", "elapsed [s]", "device", "cgroup")


class CsvFile:
    """A new file; each row is written as soon as it is known."""

    def __init__(self, output: Output) -> None:
        """Raises as `Output.check`."""
        # Line buffering: a row reaches the kernel in one write, so that a concurrent reader sees whole rows.
        fd = output.create()
        self._file = os.fdopen(fd, "w", buffering=1, encoding="utf-8", errors="surrogateescape", newline="")
        self._path = output.path
        self._rows = csv.writer(self._file, lineterminator="\n")
        self._write([*KEYS, *(column.heading for column in (*HOST, *DISK))])

    def add(self, interval: Interval) -> None:
        """Add a row for each device, with the columns of the machine, and for each group, with its own."""
        start = [moment(interval), f"{interval.seconds:.6f}"]
        for name, activity in interval.disks.items():
            values, machine = activity.columns(), interval.machine_of(name)
            host = [_cell(machine.get(column.name)) for column in HOST]
            self._write([*start, name, "", *host, *(_cell(values[column.name]) for column in DISK)])
        if not interval.disks:
            for machine in interval.machines.values():
                host = [_cell(machine.get(column.name)) for column in HOST]
                self._write([*start, "", "", *host, *("" for _ in DISK)])
        for rates in interval.cgroups or []:
            values = rates.columns()
            of_disk = [_cell(values.get(column.name)) for column in DISK]
            self._write([*start, rates.device, rates.group, *("" for _ in HOST), *of_disk])

    def close(self) -> None:
        """Sync and close the file."""
        try:
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise self._failed(error) from None

    def _write(self, cells: list[str]) -> None:
        try:
            self._rows.writerow(cells)
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> RunFailed:
        return RunFailed(f"`output=` {self._path}: {error.strerror}; earlier rows are in it")


def _cell(value: float | None) -> str:
    """Return all significant digits; unknown is empty."""
    return "" if value is None else f"{value:.6g}" if abs(value) < 1e6 else f"{value:.1f}"


class JsonLines:
    """View for programs: an object per interval, the summary last."""

    def __init__(self, *, active_only: bool) -> None:
        self._active_only = active_only

    def begin(self, interval_s: float, aliases: dict[str, str]) -> None:
        """Print nothing: every line is an interval."""

    def show(self, interval: Interval) -> None:
        cgroups = None
        if interval.cgroups is not None:
            cgroups = [{"cgroup": rate.group, "device": rate.device, **rate.columns()} for rate in interval.cgroups]
        self._print(
            {
                "time": moment(interval),
                "elapsed_s": interval.seconds,
                "host": interval.host,
                "devices": {
                    name: activity.columns()
                    for name, activity in interval.disks.items()
                    if activity.active or not self._active_only
                },
                "cgroups": cgroups,
                "cgroups_uncounted": interval.uncounted,
                "appeared": interval.appeared,
                "gone": interval.gone,
                **({"hosts": interval.hosts, "lost": interval.lost} if interval.hosts else {}),
            }
        )

    def end(self, summary: Summary) -> None:
        hosts = {name: _extents(extents) for name, extents in summary.machines.items() if name}
        self._print(
            {
                "summary": {
                    "intervals": summary.intervals,
                    "elapsed_s": summary.seconds,
                    "host": _extents(summary.host),
                    **({"hosts": hosts} if hosts else {}),
                    "devices": {name: _extents(extents) for name, extents in summary.disks.items()},
                    "cgroups": [
                        {"cgroup": key.group, "device": key.device, **_extents(extents)}
                        for key, extents in summary.cgroups.items()
                    ],
                }
            }
        )

    def close(self) -> None:
        pass

    @staticmethod
    def _print(value: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
        sys.stdout.flush()


def _extents(extents: dict[str, Any]) -> dict[str, dict[str, float | None]]:
    return {name: {"mean": extent.mean, "max": extent.maximum} for name, extent in extents.items()}
