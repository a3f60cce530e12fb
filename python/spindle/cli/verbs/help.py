"""`spindle help`: the pages of the documentation."""

from __future__ import annotations

import shutil
import sys

import click

from spindle.cli.exits import Exit


def _begun(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    from spindle.report.terminal import pages

    return [name for name in pages.paths() if name.startswith(begun)]


@click.command("help")
@click.argument("topic", required=False, shell_complete=_begun)
def command(topic: str | None) -> Exit:
    """Show the page on TOPIC; without TOPIC, list the pages. The rules of the doctor are topics too."""
    from spindle.base.suggestions import meant
    from spindle.report.terminal import pages

    if topic is None:
        print("\n".join(pages.listed()))
        print("`spindle help TOPIC` shows a page, `spindle VERB --help` the options of a verb.")
        return Exit.FINE
    found = pages.paths()
    if topic not in found:
        raise click.UsageError(f"no page `{topic}`; {meant(topic, found, '`spindle help` lists them')}")
    if sys.stdout.isatty():
        click.echo_via_pager(pages.rendered(found[topic], min(shutil.get_terminal_size().columns, 110)))
    else:
        print(pages.source(found[topic]), end="")
    return Exit.FINE
