"""`spindle drive`: one modelled drive."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.showing import show


@click.group("drive")
def command() -> None:
    """Use one modelled drive: serve it as a disk. `spindle drives` lists them."""


def _keys(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if wrong := [key for key, sign, _ in pairs if not sign or not key]:
        raise click.BadParameter(f"{wrong[0]}: write KEY=VALUE")
    return {key: value for key, _, value in pairs}


@command.command("serve")
@click.argument("model")
@click.option("--socket", metavar="PATH", help="Speak vhost-user-blk on a new Unix socket, for QEMU.")
@click.option("--nbd", metavar="PATH|HOST:PORT", help="Speak NBD on a new Unix socket, or on an address.")
@click.option("--file", metavar="DIR", help="Show the disk as the file `disk` in this empty folder, through FUSE.")
@click.option("--size", metavar="SIZE", help="Use the first SIZE of the drive; the size of model `service`.")
@click.option("--queue-depth", type=click.IntRange(1, 65_536), metavar="N", help="Requests at the drive at a time.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_keys,
    help="A key of `[[drive]]` in a machine file, as write_cache=false.  [repeatable]",
)
@click.option(
    "--contents", type=click.Path(path_type=Path), metavar="FILE", help="Keep contents in a sparse file, not in memory."
)
@click.option(
    "--spin",
    metavar="TIME",
    default="50us",
    show_default=True,
    help="Spin, not sleep, so long before and after a completion: more is more exact and takes more CPU time.",
)
@click.option("--summary", is_flag=True, help="Print requests and the lateness of completions at the end.")
@json_option
def serve(
    model: str,
    socket: str | None,
    nbd: str | None,
    file: str | None,
    size: str | None,
    queue_depth: int | None,
    keys: dict[str, str],
    contents: Path | None,
    spin: str,
    summary: bool,
    json: bool,
) -> Exit:
    """Serve drive MODEL as a disk in real time, until Ctrl-C.

    MODEL is a name of the catalogue, a sheet file, or `service` with --key service=TIME and --size. Each request is
    done when the model says.
    """
    from spindle.library.serving import ServedDrive, serve_until_stopped

    def ready(disk: ServedDrive) -> None:
        print(f"spindle: {model}, {disk.bytes} bytes: {disk.where}", file=sys.stderr, flush=True)

    found = serve_until_stopped(
        model,
        ready,
        socket=socket,
        nbd=nbd,
        file=file,
        size=size,
        queue_depth=queue_depth,
        keys=keys,
        contents=contents,
        spin=spin,
    )
    if summary or json:
        show(found, json)
    return Exit.FINE
