"""Every verdict that the program gives has its name in `spindle.result.checks`, and a row on
docs/reference/verdicts.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from spindle.result.checks import CHECKS, CONDITIONS

ROOT = Path(__file__).resolve().parents[2]


def calls(name: str, folder: str) -> Iterator[ast.Call]:
    for path in (ROOT / "python/spindle" / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield node


def given(folder: str = ".") -> set[str]:
    """Names of verdicts as the program writes them."""
    words = (word.value for call in calls("Verdict", folder) for word in call.keywords if word.arg == "check")
    return {str(word.value) for word in words if isinstance(word, ast.Constant)}


def test_every_verdict_has_its_name_in_the_list() -> None:
    assert given() <= set(CHECKS)


def test_every_condition_has_its_name_in_the_list() -> None:
    first = (call.args[0] for call in calls("ConditionFinding", "conditions") if call.args)
    found = {str(word.value).replace("_", "-") for word in first if isinstance(word, ast.Constant)}
    assert found
    assert found <= set(CONDITIONS)


def test_no_name_in_the_list_is_left_over() -> None:
    conditions = {f"{when}-{condition}" for when in ("before", "during") for condition in CONDITIONS}
    assert set(CHECKS) - conditions == (given() | {"verify"}) - conditions


def test_the_page_has_a_row_for_every_name_and_no_other() -> None:
    rows = re.findall(r"^\| `([a-z-]+)`", (ROOT / "docs/reference/verdicts.md").read_text(), re.M)
    conditions = {f"{when}-{condition}" for when in ("before", "during") for condition in CONDITIONS}
    assert set(rows) <= set(CHECKS)
    assert set(CHECKS) - conditions <= set(rows)
