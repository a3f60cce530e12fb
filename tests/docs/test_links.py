"""Every link in README, CONTRIBUTING, CHANGELOG and docs leads to a file that exists, and to a heading in it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.pages import PAGES, ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
ALL = [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"]


@cache
def anchors(path: Path) -> set[str]:
    """Anchors that a Git forge gives to the headings of a page."""
    text = FENCE.sub("", path.read_text())
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?)\s*$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = sum(one == name or re.fullmatch(rf"{re.escape(name)}-\d+", one) is not None for one in found)
        found.add(f"{name}-{count}" if count else name)
    return found


def broken(page: str) -> list[str]:
    """Links of a page without a target."""
    path = ROOT / page
    wrong = []
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.promise(25)
@pytest.mark.parametrize("page", ALL)
def test_links_of_a_page_resolve(page: str) -> None:
    assert broken(page) == []


@pytest.mark.promise(25)
def test_pages_that_code_and_tests_name_exist() -> None:
    files = [
        path
        for folder in ("python", "crates", "tests", "benches", "tools")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".pyi", ".rs", ".toml", ".html") and "data" not in path.parts
    ]
    named = {
        (str(path.relative_to(ROOT)), name)
        for path in [*files, ROOT / "Makefile", ROOT / "pyproject.toml"]
        for name in re.findall(r"\bdocs/[a-z/-]+[a-z]\.md\b", path.read_text())
    }
    assert {one for one in named if not (ROOT / one[1]).exists()} == set()
