"""`spindle monitor`: the activity of disks, CPUs and control groups, interval by interval."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.failure import spelled
from spindle.cli.options.hosts import agent_option
from spindle.cli.options.storing import opened, where_option
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output
    from spindle.report.terminal.monitor import CsvFile, View


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
@click.option(
    "--hosts",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Watch these hosts, as of `spindle fleet`, instead of this machine; DEVICES may be HOST:DEVICE.",
)
@agent_option
@where_option("Record devices and CPUs")
def command(
    devices: tuple[str, ...],
    interval_s: float,
    count: int | None,
    active: bool,
    cgroups: int,
    json: bool,
    output: Output | None,
    hosts: str | None,
    agent: str | None,
    store: str | None,
) -> Exit:
    """Show the activity of DEVICES at each interval (any name, or a file on them; default: all disks that ever did I/O)
    in iostat's columns, with vmstat's columns for the CPUs, I/O pressure and the I/O of control groups.

    The first interval begins at the start, not at boot. Ctrl-C ends with mean and maximum of every column.
    """
    import spindle
    from spindle.library.monitoring import signals_kept

    with opened(store) if store is not None else nullcontext() as place:
        watched = spindle.monitor(
            *devices, interval=interval_s, count=count, cgroups=cgroups > 0, store=place, hosts=hosts, agent=agent
        )
        file = _new_file(output) if output is not None else None
        view = _view(json, active, cgroups)
        try:
            with signals_kept():
                view.begin(interval_s, watched.aliases)
                for report in watched:
                    if place is not None and watched.summary.intervals == 1:
                        print(f"spindle: recorded as {watched.recording} in {place.place}", file=sys.stderr)
                    if file is not None:
                        file.add(report)
                    view.show(report)
                view.end(watched.summary)
        finally:
            view.close()
            if file is not None:
                file.close()
    return Exit.FAILED if watched.lost else Exit.FINE


def _view(json: bool, active: bool, cgroups: int) -> View:
    from spindle.report.terminal.monitor import JsonLines, Rows

    if json:
        return JsonLines(active_only=active)
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from spindle.report.terminal.monitor.live import LiveView  # slow: imports Rich

        return LiveView(active_only=active, most_cgroups=cgroups, spelled=spelled)
    return Rows(active_only=active, most_cgroups=cgroups)


def _new_file(output: Output) -> CsvFile:
    from spindle.report.terminal.monitor import CsvFile

    return CsvFile(output)
