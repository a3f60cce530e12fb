"""The result of a check as a page of text, and as JSON."""

from __future__ import annotations

import msgspec

from spindle.base.numbers import as_change
from spindle.base.plain import as_json
from spindle.report.terminal.compare import amount, marked
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import Level
from spindle.stats.gate import Gate, Outcome

_LEVELS = {"fine": Level.OK, "lost": Level.INVALID, "unclear": Level.WARN, "untested": Level.WARN}
_WORDS = {"untested": "not tested"}


def encode(found: Gate) -> str:
    """Return indented JSON; numbers that are not finite are null."""
    data = msgspec.to_builtins(found) | {"outcome": found.outcome}
    data["likeness"]["words"] = found.likeness.words
    return as_json(data) + "\n"


def page(found: Gate, style: Style) -> list[str]:
    """Return the answer, then each metric."""
    answer = {
        "lost": f"{found.now} lost more than {100 * found.threshold:g} % against {found.baseline}",
        "fine": f"{found.now} lost no more than {100 * found.threshold:g} % against {found.baseline}",
        "unclear": f"{found.now} against {found.baseline}: the runs cannot decide whether more than "
        f"{100 * found.threshold:g} % were lost",
        "untested": f"{found.now} against {found.baseline}: not tested",
    }[found.outcome]
    lines = style.headline(f"{answer}; {found.means}, {100 * found.confidence:g} % confidence")
    for line in found.likeness.words:
        lines += marked(line, style)
    columns = [Column("metric", words=True), Column("runs"), Column("baseline"), Column("now"), Column("change")]
    rows = [
        [
            check.metric,
            f"{check.trials_baseline}, {check.trials_now}",
            amount(check.baseline, check.metric),
            amount(check.now, check.metric),
            as_change(check.now / check.baseline - 1, sign=True) if check.baseline > 0 else "-",
        ]
        for check in found.checks
    ]
    lines += ["", *table(columns, rows, style), ""]
    for check in found.checks:
        lines += _coloured(f"{check.metric}: {check.words}.", check.outcome, style)
    if found.notes or found.outcome == "untested":
        lines.append("")
    if found.outcome == "untested":
        lines += marked(
            "Untested metrics pass unless `fail_unclear=` is given; use it in continuous integration.", style
        )
    for note in found.notes:
        lines += marked(note, style)
    return lines


def _coloured(text: str, outcome: Outcome, style: Style) -> list[str]:
    wrapped = style.wrap(text, rest="  ")
    word = _WORDS.get(outcome, outcome)
    return [wrapped[0].replace(word, style.level(_LEVELS[outcome], word), 1), *wrapped[1:]]
