"""Verdicts for people: what is invalid stands above the figures, the rest below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spindle.report.style import Style
from spindle.result.record import Level, Verdict


def lines(verdicts: Sequence[Verdict], style: Style, levels: Sequence[Level]) -> list[str]:
    """One entry for each verdict of these levels."""
    shown = [verdict for verdict in verdicts if verdict.level in levels]
    found = []
    for verdict in sorted(shown, key=lambda verdict: -verdict.level.rank):
        text = f"{verdict.check}: {verdict.evidence}" + (f" -> {verdict.advice}" if verdict.advice else "")
        found.extend(coloured(style, verdict.level, style.wrap(text, first=f"{verdict.level:<7} ")))
    return found


def coloured(style: Style, level: Level, wrapped: list[str]) -> list[str]:
    """Colour the level's name at the start of the first line."""
    if not style.colour:
        return wrapped
    return [wrapped[0].replace(str(level), style.level(level), 1), *wrapped[1:]]


def unchecked(idle: Mapping[str, Any], style: Style) -> list[str]:
    """What the check before the run could not look at, and why."""
    reasons = [str(reason) for reason in idle.get("unchecked") or []]
    return style.wrap("; ".join(reasons), first="not checked: ") if reasons else []


def passed(verdicts: Sequence[Verdict], style: Style) -> list[str]:
    """The checks that found nothing on any device, by name."""
    found = {verdict.check for verdict in verdicts if verdict.level is not Level.OK}
    names = [name for name in dict.fromkeys(verdict.check for verdict in verdicts) if name not in found]
    return coloured(style, Level.OK, style.wrap(", ".join(names), first=f"{'ok':<7} ")) if names else []
