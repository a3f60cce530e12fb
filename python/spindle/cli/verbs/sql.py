"""`spindle sql`: query the store with SQL."""

from __future__ import annotations

import sys

import click

from spindle.cli.exits import Exit
from spindle.cli.options.storing import opened, store_option


@click.command("sql")
@click.argument("query", required=False)
@store_option
@click.option("--json", is_flag=True, help="Print the rows as JSON objects.")
@click.option("--csv", is_flag=True, help="Print the rows as CSV.")
def command(query: str | None, where: str | None, json: bool, csv: bool) -> Exit:
    """Print the result of QUERY, or open a prompt. The store is opened read-only.

    The tables are in docs/reference/store.md; `.tables` and `.schema TABLE` in the prompt list them.
    """
    from spindle.cli.sql_prompt import Form, prompt

    if json and csv:
        raise click.UsageError("--json and --csv exclude each other; take one")
    form = Form.JSON if json else Form.CSV if csv else Form.TABLE
    with opened(where, read_only=True) as store:
        if query is not None:
            form.show(*store.answer(query))
        elif sys.stdin.isatty():
            prompt(store, form)
        else:
            form.show(*store.answer(sys.stdin.read()))
    return Exit.FINE
