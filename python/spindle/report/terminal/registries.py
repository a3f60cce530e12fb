"""Lists of the metrics and the verdicts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.result.checks import CHECKS
from spindle.stats.names import METRICS


def metrics(as_json: bool) -> Iterator[str]:
    """Yield a line for each metric."""
    if as_json:
        yield json.dumps([entry.to_dict() for entry in METRICS], indent=2)
        return
    rows = [[entry.name, entry.unit or "-", str(entry.better), entry.meaning, entry.of] for entry in METRICS]
    yield from _table(["metric", "unit", "better", "meaning", "in"], rows)


def verdicts(as_json: bool, spelled: Callable[[str], str] = str) -> Iterator[str]:
    """Yield a line for each verdict. `spelled`: how keywords are shown."""
    if as_json:
        yield json.dumps([check.to_dict() for check in CHECKS.values()], indent=2)
        return
    rows = [[each.name, spelled(each.meaning), spelled(each.of)] for each in CHECKS.values()]
    yield from _table(["verdict", "meaning", "in"], rows)


def _table(heads: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield from table([Column(head, words=True) for head in heads], rows, style_of(sys.stdout))
