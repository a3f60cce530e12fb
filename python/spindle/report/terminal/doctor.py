"""A diagnosis for people: worst finding first, each with its evidence, cost and fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spindle.base.plain import as_json
from spindle.base.words import listed
from spindle.doctor.finding import Diagnosis, Finding, Needs, Severity, Step, UnjudgedPart
from spindle.doctor.rule import Rule
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import Level

_LEVELS = {Severity.WARN: Level.WARN, Severity.CRITICAL: Level.INVALID}
_WIDTH = max(len(level) for level in Severity)
_HEAD = 7
_ALIKE = 4
"""Most findings of one group that are listed; they differ only in their object."""
_WORDS = {
    Needs.BACKUP: "needs a backup",
    Needs.OFFLINE: "offline",
    Needs.EDIT: "by hand",
    Needs.HARDWARE: "by hand",
}


def diagnosis_page(diagnosis: Diagnosis, style: Style) -> list[str]:
    """Return the page for a terminal or a pipe."""
    lines = style.headline(_plain(_title(diagnosis)))
    for group in _groups(diagnosis.findings):
        lines += ["", *_group(group, style)]
    lines += [""] if diagnosis.findings else []
    found = {finding.rule for finding in diagnosis.findings}
    silent = {one.rule for one in diagnosis.unjudged} - found
    if fine := [name for name in diagnosis.rules if name not in found | silent]:
        lines += style.wrap(", ".join(fine), first="fine      ")
    for rule, why, objects in _unjudged(diagnosis.unjudged):
        lines += style.wrap(_plain(f"{rule} of {listed(objects)}: {why}"), first="unknown   ")
    if any(finding.steps for finding in diagnosis.findings):
        lines += ["", *style.wrap("Nothing was changed; `fix_plan=True` prints the commands in a safe order.")]
    return lines


def rules_table(rules: Sequence[Rule], style: Style) -> list[str]:
    """Return the table of rules."""
    return table(
        [Column("rule", words=True), Column("what it checks", words=True)], [[r.name, r.about] for r in rules], style
    )


def rules_json(rules: Sequence[Rule]) -> str:
    """Return the rules as JSON."""
    return to_json({"rules": [{"rule": rule.name, "about": rule.about} for rule in rules]})


def to_json(data: object) -> str:
    """Return indented JSON without a final newline."""
    return as_json(data)


def _title(diagnosis: Diagnosis) -> str:
    about = diagnosis.target or ("this machine" if diagnosis.origin == "live" else "the capture")
    if not diagnosis.findings:
        return f"{about}: nothing found"
    counts = [
        f"{count} {level}"
        for level in sorted(Severity, key=lambda level: -level.rank)
        if (count := sum(finding.severity is level for finding in diagnosis.findings))
    ]
    total = len(diagnosis.findings)
    return f"{about}: {total} finding{'' if total == 1 else 's'} ({', '.join(counts)})"


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in findings:
        key = (finding.rule, finding.severity, finding.why, finding.effect)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _group(group: list[Finding], style: Style) -> Iterator[str]:
    first, others = group[0], [finding.object for finding in group[1:]]
    title = f"{first.rule}: {first.summary}" + (f"; so {_verb(others)} {listed(others)}" if others else "")
    yield from _titled(first.severity, _plain(title), style)
    for at, finding in enumerate(group[:_ALIKE]):
        named = f"{finding.object}: " if others else ""
        yield from _row("seen" if at == 0 else "", named + finding.evidence, style)
    if len(group) > _ALIKE:
        yield from _row("", f"and {len(group) - _ALIKE} more of the kind; `json=True` has all", style)
    yield from _row("why", first.why, style)
    yield from _row("effect", first.effect, style)
    for at, step in enumerate(first.steps):
        yield from _step("mend" if at == 0 else "", step, style)
    if others and first.steps:
        yield from _row("", f"and likewise for {listed(others)}", style)


def _verb(others: list[str]) -> str:
    return "does" if len(others) == 1 else "do"


def _titled(severity: Severity, title: str, style: Style) -> list[str]:
    word = severity.ljust(_WIDTH)
    lines = style.wrap(title, first=f"{word}  ")
    if severity in _LEVELS and lines and lines[0].startswith(word):
        lines[0] = style.level(_LEVELS[severity], severity) + lines[0][len(severity) :]
    return lines


def _row(head: str, words: str, style: Style) -> list[str]:
    return style.wrap(_plain(words), first=f"  {head.ljust(_HEAD)} ")


def _step(head: str, step: Step, style: Style) -> Iterator[str]:
    waits = [f"WAIT: {listed(step.waits)}"] if step.waits else []
    needs = ", ".join([*waits, *(_WORDS[need] for need in step.needs)])
    yield from _row(head, f"{step.about}{f' ({needs})' if needs else ''}", style)
    for command in step.commands:
        yield f"  {' ' * _HEAD}   {_plain(command)}"  # not wrapped, to be copied


def _unjudged(unjudged: Sequence[UnjudgedPart]) -> list[tuple[str, str, list[str]]]:
    """Group by rule, and rules without data about the same objects together; of several reasons the first is shown."""
    grouped: dict[str, tuple[str, list[str]]] = {}
    for one in unjudged:
        grouped.setdefault(one.rule, (one.why, []))[1].append(one.object)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for rule, (why, objects) in grouped.items():
        alike.setdefault((why, tuple(objects)), []).append(rule)
    return [(", ".join(rules), why, list(objects)) for (why, objects), rules in alike.items()]


def _plain(text: str) -> str:
    """Escape names of devices and mount points for the terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)
