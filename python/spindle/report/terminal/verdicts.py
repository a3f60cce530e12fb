"""Verdicts for people: invalid ones above the figures in full, warnings below them in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spindle.report.terminal.style import Style
from spindle.result.record import Level, Verdict


def lines(verdicts: Sequence[Verdict], style: Style, levels: Sequence[Level]) -> list[str]:
    """Return one entry for each verdict of these levels."""
    shown = [verdict for verdict in verdicts if verdict.level in levels]
    found = []
    for verdict in sorted(shown, key=lambda verdict: -verdict.level.rank):
        text = f"{verdict.check}: {verdict.evidence}" + (f" -> {verdict.advice}" if verdict.advice else "")
        found.extend(coloured(style, verdict.level, style.wrap(text, first=f"{verdict.level:<7} ")))
    return found


FIRST = (
    "status",
    "interrupted",
    "errors",
    "verify",
    "cache-share",
    "cache-below",
    "settings",
    "group-limit",
    "steady",
    "target",
    "monotone",
    "knee",
    "curve",
    "on-time",
    "generator-bound",
    "during-array-sync",
    "other-io",
    "during-jobs",
    "during-throttling",
    "during-cpu",
    "during-steal",
    "during-swap",
)
"""Warnings that most likely distort the figures, worst first; others come after them."""
LAST = ("working-set", "before-governor", "before-cpu", "too-short", "saturated")
"""Warnings that most runs have by design."""


def warnings(verdicts: Sequence[Verdict], style: Style) -> list[str]:
    """Return the worst warning in full and the names of the others; all of them in full with `why=`."""
    found = [verdict for verdict in verdicts if verdict.level is Level.WARN]
    if style.why or len(found) < 2:
        return lines(found, style, [Level.WARN])
    worst = min(found, key=_place)
    others = list(dict.fromkeys(verdict.check for verdict in sorted(found, key=_place) if verdict is not worst))
    count = len(found) - 1
    more = f"and {count} more warning{'s' if count > 1 else ''}, with `why=True`: {', '.join(others)}"
    return [*lines([worst], style, [Level.WARN]), *style.wrap(more, first=" " * 8)]


def _place(verdict: Verdict) -> tuple[int, bool]:
    """Return a sort key: by severity; of one check, findings before unknowns; then their own order."""
    if verdict.check in FIRST:
        return FIRST.index(verdict.check), verdict.is_unknown
    return len(FIRST) + (1 + LAST.index(verdict.check) if verdict.check in LAST else 0), verdict.is_unknown


def coloured(style: Style, level: Level, wrapped: list[str]) -> list[str]:
    """Colour the level's name at the start of the first line."""
    if not style.colour:
        return wrapped
    return [wrapped[0].replace(str(level), style.level(level), 1), *wrapped[1:]]


def unchecked(idle: Mapping[str, Any], style: Style) -> list[str]:
    """Return what the preflight could not check, and why."""
    reasons = [str(reason) for reason in idle.get("unchecked") or []]
    return style.wrap("; ".join(reasons), first="not checked: ") if reasons else []


def passed(verdicts: Sequence[Verdict], style: Style) -> list[str]:
    """Return the names of the checks that found nothing on any device."""
    found = {verdict.check for verdict in verdicts if verdict.level is not Level.OK}
    names = [name for name in dict.fromkeys(verdict.check for verdict in verdicts) if name not in found]
    return coloured(style, Level.OK, style.wrap(", ".join(names), first=f"{'ok':<7} ")) if names else []
