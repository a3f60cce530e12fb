"""`spindle doctor`: problems of the block stack, and how to fix them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.options.targets import TARGET
from spindle.cli.output import json_option, put_lines

if TYPE_CHECKING:
    from spindle.library.stack import Findings


@click.command("doctor")
@click.argument("target", type=TARGET, required=False)
@click.option("--root", metavar="PATH", help="Examine a capture: a folder that contains sys and proc, or a tar.")
@click.option("--rule", "names", multiple=True, metavar="NAME", help="Check this rule only. May be repeated.")
@click.option(
    "--workload",
    type=click.Choice(["random", "sequential"]),
    help="Purpose of the stack; rules that depend on it (read-ahead) then need not guess.",
)
@click.option("--fix-plan", is_flag=True, help="Print the fixes as a script, in a safe order. Nothing is run.")
@click.option("--list", "listing", is_flag=True, help="List the rules.")
@json_option
def command(
    target: str | None,
    root: str | None,
    names: tuple[str, ...],
    workload: Literal["random", "sequential"] | None,
    fix_plan: bool,
    listing: bool,
    json: bool,
) -> Exit:
    """Find problems of the block stack under TARGET (a mount point, a file or a block device; without it, everything):
    the evidence, why it matters, what it costs, and the commands that would fix it, which are never run.

    Exit status: 0 nothing found (or notes alone), 1 a finding of level warn or critical, 2 usage.
    """
    if fix_plan and json:
        raise click.UsageError("--json has the steps of each finding already; leave out --fix-plan")
    if listing:
        if target is not None or fix_plan:
            raise click.UsageError("--list takes no TARGET and no --fix-plan; it only lists the rules")
        return _list(names, json)
    from spindle.library.stack import doctor

    found = doctor(target, root=root, rules=names, workload=workload)
    _show(found, fix_plan, json)
    return _status(found)


def _list(names: tuple[str, ...], json: bool) -> Exit:
    import sys

    from spindle.library.stack import rules_named
    from spindle.report.terminal.doctor import rules_json, rules_table
    from spindle.report.terminal.style import style_of

    rules = rules_named(names)
    for line in [rules_json(rules)] if json else rules_table(rules, style_of(sys.stdout)):
        print(line)
    return Exit.FINE


def _show(found: Findings, fix_plan: bool, json: bool) -> None:
    import sys

    from spindle.report.terminal.style import style_of

    if json or fix_plan:
        print(found.to_json().decode() if json else found.fix_plan, end="")
    else:
        put_lines(found.page(style_of(sys.stdout)))


def _status(found: Findings) -> Exit:
    worst = found.worst
    if worst is None:
        return Exit.FINE
    others = len(found.bad) - 1
    also = f" (and {others} more)" if others else ""
    return failed(f"{worst.object}: {worst.severity}: {worst.summary}{also}")
