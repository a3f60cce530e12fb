"""Lists of the metrics and the verdicts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from spindle.base.plain import as_json
from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.result.checks import CHECKS
from spindle.stats.names import METRICS


def metrics(json: bool) -> Iterator[str]:
    """Yield a line for each metric."""
    if json:
        yield as_json([entry.to_dict() for entry in METRICS])
        return
    rows = [[entry.name, entry.unit or "-", str(entry.better), entry.meaning, entry.of] for entry in METRICS]
    yield from _table(["metric", "unit", "better", "meaning", "in"], rows)


def verdicts(json: bool, spelled: Callable[[str], str] = str) -> Iterator[str]:
    """Yield a line for each verdict. `spelled`: how keywords are shown."""
    if json:
        yield as_json([check.to_dict() for check in CHECKS.values()])
        return
    rows = [[each.name, spelled(each.meaning), spelled(each.of)] for each in CHECKS.values()]
    yield from _table(["verdict", "meaning", "in"], rows)


def _table(heads: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield from table([Column(head, words=True) for head in heads], rows, style_of(sys.stdout))
