"""Each promise of promises.toml has a test that tries to break it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.promises import PROMISES

HERE = Path(__file__).parent


def tried() -> set[int]:
    marks = (re.findall(r"mark\.promise\(([\d, ]+)\)", path.read_text()) for path in HERE.rglob("test_*.py"))
    return {int(number) for found in marks for group in found for number in group.split(",")}


def test_promises_are_numbered_from_one_without_a_gap() -> None:
    assert list(PROMISES) == list(range(1, len(PROMISES) + 1))


def test_each_promise_has_a_test() -> None:
    assert tried() == set(PROMISES)
