"""`spindle monitor`: the activity of disks, CPUs and control groups, interval by interval."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.options.storing import opened, where_option
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.cli.recording import Recorder
    from spindle.host.outputs import Output
    from spindle.report.terminal.monitor import CsvFile, View

SHORTEST_S = 0.05
"""Shortest interval: reading all counters takes milliseconds on a machine with many devices."""
LONGEST_S = 86_400.0
"""Longest interval: the counters wrap after 50 days of I/O time, which a busy queue reaches within days."""


def _interval(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if not math.isfinite(value) or not SHORTEST_S <= value <= LONGEST_S:
        raise click.BadParameter(f"{value:g} is not an interval; give seconds from {SHORTEST_S:g} to {LONGEST_S:g}")
    return value


@click.command("monitor", cls=WritingCommand)
@click.argument("devices", nargs=-1)
@click.option(
    "-i",
    "--interval",
    "interval_s",
    type=float,
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    callback=_interval,
    help="Length of an interval.",
)
@click.option("-n", "--count", type=click.IntRange(1), metavar="N", help="End after N intervals.  [default: at Ctrl-C]")
@click.option("-z", "--active", is_flag=True, help="Show only devices with I/O in the interval, as iostat -z.")
@click.option(
    "--cgroups",
    type=click.IntRange(0, 1000),
    default=5,
    show_default=True,
    metavar="N",
    help="Show the N control groups with the most I/O; 0: do not read them. JSON and CSV have all.",
)
@click.option("--json", is_flag=True, help="Print one JSON object per line, the summary last.")
@click.option(
    "-o", "--output", cls=OutputOption, kind="recording",
    help="Write one row per device and interval to a new CSV file as well.",
)  # fmt: skip
@where_option("Record devices and CPUs")
def command(
    devices: tuple[str, ...],
    interval_s: float,
    count: int | None,
    active: bool,
    cgroups: int,
    json: bool,
    output: Output | None,
    store: str | None,
) -> Exit:
    """Show the activity of DEVICES at each interval (any name, or a file on them; default: all disks that ever did I/O)
    in iostat's columns, with vmstat's columns for the CPUs, I/O pressure and the I/O of control groups.

    The first interval begins at the start, not at boot. Ctrl-C ends with mean and maximum of every column.
    """
    from spindle.monitor import Selection, Summary, signals_kept, watch

    selection = Selection(devices)
    file = _new_file(output) if output is not None else None
    summary, view = Summary(), _view(json, active, cgroups)
    try:
        with _recorder(store, interval_s, devices) as recorder, signals_kept():
            view.begin(interval_s, selection.aliases)
            for report in watch(selection, interval_s, count, cgroups=cgroups > 0):
                if file is not None:
                    file.add(report)
                if recorder is not None:
                    recorder.add(report)
                summary.add(report)
                view.show(report)
            view.end(summary)
    finally:
        view.close()
        if file is not None:
            file.close()
    return Exit.FINE


@contextmanager
def _recorder(where: str | None, interval_s: float, devices: tuple[str, ...]) -> Iterator[Recorder | None]:
    if where is None:
        yield None
        return
    from spindle.cli.recording import Recorder

    with opened(where) as store:
        yield Recorder(store, interval_s, devices)


def _view(json: bool, active: bool, cgroups: int) -> View:
    from spindle.report.terminal.monitor import JsonLines, Rows

    if json:
        return JsonLines(active_only=active)
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from spindle.report.terminal.monitor.live import LiveView  # slow: imports Rich

        return LiveView(active_only=active, most_cgroups=cgroups)
    return Rows(active_only=active, most_cgroups=cgroups)


def _new_file(output: Output) -> CsvFile:
    from spindle.report.terminal.monitor import CsvFile

    return CsvFile(output)
