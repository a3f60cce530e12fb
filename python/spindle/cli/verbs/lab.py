"""`spindle lab`: the real kernel in virtual time on modelled drives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.writing import OutputOption, WritingCommand

if TYPE_CHECKING:
    from spindle.host.outputs import Output


@click.group("lab")
def command() -> None:
    """Run the real Linux kernel in virtual time, on modelled drives: no root, no virtual machine, exact to the
    nanosecond.
    """


@command.command("build")
@click.option(
    "--source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Build the kernel from this source.  [default: Debian's package, linux-source-6.1 or linux-source-6.12]",
)
@click.option(
    "--kernel", "version", metavar="VERSION", help="Build Linux 6.1 or 6.12.  [default: the first that is there]"
)
@click.option(
    "--hz",
    type=click.Choice(["100", "250", "300", "1000"]),
    default="250",
    show_default=True,
    help="Timer interrupts a second, as in the kernel to be compared with.",
)
@click.option("--jobs", type=click.IntRange(1, 1024), default=2, show_default=True, help="Compilers at a time.")
@json_option
def build(source: Path | None, version: str | None, hz: str, jobs: int, json: bool) -> Exit:
    """Build the lab's kernel, once, and collect the programs that run in it."""
    from json import dumps

    from spindle.library import lab

    def say(line: str) -> None:
        print(f"spindle: {line}", file=sys.stderr)

    built = lab.build(source, int(hz), jobs, say, version)
    if json:
        print(dumps(built))
    else:
        print(f"kernel    Linux {built['version']}, HZ {built['hz']}: {built['kernel']}")
        print(f"programs  {built['programs']}")
        print(f"agent     {built['agent']}")
    return Exit.FINE


_MEMORY = click.option(
    "--memory", type=click.IntRange(64, 1 << 20), default=1024, show_default=True, metavar="MIB", help="Memory in MiB."
)

_KERNEL = click.option(
    "--kernel",
    "version",
    metavar="VERSION",
    help="Version of the kernel, 6.1 or 6.12.  [default: the first that is built]",
)

_ASSEMBLED = click.option(
    "--assembled",
    is_flag=True,
    help="First make what MACHINE describes: [array] as /dev/md0, [queue], and [filesystem] mounted at /mnt.",
)


@command.command("exec", cls=WritingCommand, context_settings={"ignore_unknown_options": True})
@click.argument("machine")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
@_KERNEL
@_MEMORY
@_ASSEMBLED
@click.option(
    "--program",
    "programs",
    multiple=True,
    metavar="NAME|PATH",
    help="Bring this program of the system too, with its libraries; it comes before the lab's own.  [repeatable]",
)
@click.option(
    "--trace",
    cls=OutputOption,
    kind="lab-trace",
    help="Save each request at the drives as CSV: when it came, when it was done, what and where.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="TEXT",
    help="Let something fail at a virtual time: 'vdb at 2s: dies', 'at 3s: power cut' ...  [repeatable]",
)
@click.option(
    "--disks",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Read the contents of the drives from this folder, if they are there, and keep them in it.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Fail if the command still runs at this virtual time.",
)
@click.option("--summary", is_flag=True, help="Print virtual time, requests and CPU time on stderr at the end.")
def exec_(
    machine: str,
    words: tuple[str, ...],
    version: str | None,
    memory: int,
    assembled: bool,
    programs: tuple[str, ...],
    trace: Output | None,
    faults: tuple[str, ...],
    disks: Path | None,
    time_limit: float | None,
    summary: bool,
) -> int:
    """Boot MACHINE, run COMMAND in it, and exit with its status.

    The drives of MACHINE (a machine file, or a name of the catalogue) are /dev/vda, /dev/vdb ... A program that the lab
    lacks is taken from this system, with its libraries.
    """
    from spindle.library import lab

    def write(is_error: bool, data: bytes) -> None:
        stream = sys.stderr if is_error else sys.stdout
        stream.buffer.write(data)
        stream.flush()

    outcome = lab.execute(
        machine,
        words,
        write,
        memory,
        programs,
        trace is not None,
        assembled,
        faults,
        time_limit_s=time_limit,
        disks=disks,
        version=version,
    )
    if trace is not None and outcome.trace is not None:
        trace.save(outcome.trace.encode())
    if summary:
        requests = sum(drive.requests for drive in outcome.boot.drives)
        print(
            f"spindle: {outcome.boot.virtual_ns / 1e9:.6f} s of virtual time, {requests} requests, "
            f"{outcome.cpu_s:.2f} s of CPU time for the kernel",
            file=sys.stderr,
        )
    if outcome.status is None:
        print(f"spindle: power cut at {outcome.boot.virtual_ns / 1e9:.6f} s of virtual time", file=sys.stderr)
        return Exit.FINE
    return outcome.status


@command.command("shell")
@click.argument("machine")
@_KERNEL
@_MEMORY
@_ASSEMBLED
def shell(machine: str, version: str | None, memory: int, assembled: bool) -> int:
    """Boot MACHINE and give a prompt in it. Time passes as on a real machine; Ctrl-] leaves at once."""
    from spindle.library import lab

    return lab.shell(machine, memory, assembled, version)
