"""`spindle doctor`: what is wrong with the block stack, and what would mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.output import json_option
from spindle.cli.targets import TARGET

if TYPE_CHECKING:
    from spindle.host.doctor import Diagnosis
    from spindle.host.doctor.rule import Rule


@click.command("doctor")
@click.argument("target", type=TARGET, required=False)
@click.option("--root", metavar="PATH", help="Look at a capture: a folder with sys and proc in it, or a tar.")
@click.option("--rule", "names", multiple=True, metavar="NAME", help="This rule only; may be repeated.")
@click.option(
    "--workload",
    type=click.Choice(["random", "sequential"]),
    help="What the stack is for; rules whose verdict depends on it (read-ahead) then need not guess.",
)
@click.option("--fix-plan", is_flag=True, help="Print the remedies as a script, in a safe order. Nothing is run.")
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
    """Tell what is wrong with the block stack under TARGET (a mount point, a file or a block device; without it,
    everything): the evidence, why it matters, what it costs, and the commands that would mend it, which are never run.

    Exit status: 0 nothing found (or notes alone), 1 a finding of level warn or critical, 2 usage.
    """
    if fix_plan and json:
        raise click.UsageError("--json has the steps of each finding already; leave out --fix-plan")
    rules = _chosen(names)
    if listing:
        if target is not None or fix_plan:
            raise click.UsageError("--list takes no TARGET and no --fix-plan; it only names the rules")
        return _list(rules, json)
    from spindle.host.doctor import diagnose
    from spindle.host.inspect import inspect_stack, open_capture, running

    inventory = inspect_stack(target, running() if root is None else open_capture(root))
    told = diagnose(inventory, rules, workload)
    _show(told, fix_plan, json)
    return _status(told)


def _chosen(names: tuple[str, ...]) -> list[Rule]:
    from spindle.base.suggestions import meant
    from spindle.host.doctor import RULES

    known = {rule.name: rule for rule in RULES}
    for name in names:
        if name not in known:
            raise click.BadParameter(f"no rule `{name}`; {meant(name, known, '`spindle doctor --list` names them')}")
    return [rule for rule in RULES if not names or rule.name in names]


def _list(rules: list[Rule], json: bool) -> Exit:
    import sys

    from spindle.report.doctor import rules_json, rules_table
    from spindle.report.style import style_of

    for line in [rules_json(rules)] if json else rules_table(rules, style_of(sys.stdout)):
        print(line)
    return Exit.FINE


def _show(told: Diagnosis, fix_plan: bool, json: bool) -> None:
    import sys

    from spindle.host.doctor import script
    from spindle.report.doctor import diagnosis_page, to_json
    from spindle.report.style import style_of

    lines = [to_json(told)] if json else script(told) if fix_plan else diagnosis_page(told, style_of(sys.stdout))
    for line in lines:
        print(line)


def _status(told: Diagnosis) -> Exit:
    from spindle.host.doctor import Severity

    bad = [found for found in told.findings if found.severity is not Severity.NOTE]
    if not bad:
        return Exit.FINE
    worst = max(bad, key=lambda found: found.severity.rank)
    also = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return failed(f"{worst.object}: {worst.severity}: {worst.summary}{also}")
