"""docs/explanation/safety.md names tests; each of them exists."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs/explanation/safety.md"


def test_every_test_named_on_the_page_exists() -> None:
    source = "\n".join(path.read_text() for path in HERE.parent.rglob("test_*.py"))
    names = {name.removeprefix("test_") for name in re.findall(r"^def (\w+)\(", source, re.M)}
    named = []
    for row in PAGE.read_text().splitlines():
        cells = re.split(r"(?<!\\)\|", row)
        if row.startswith("| ") and len(cells) >= 5:
            named += re.findall(r"`([a-z0-9_.]+_[a-z0-9_.]+)`", cells[3])
    named += re.findall(r"\(`(\w+_\w+_\w+\w*(?:\.\.\.)?)`", PAGE.read_text())
    assert len(named) > 40
    for name in named:
        if not name.endswith(".py"):
            assert fnmatch.filter(names, name.replace("...", "*")), f"{PAGE.name} names {name}, which does not exist"
