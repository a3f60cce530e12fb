"""The documentation, which ships with the package: its topics, and a page as text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
_CHECKOUT = _PACKAGE.parents[1]
FOLDER = _CHECKOUT / "docs" if (_CHECKOUT / "pyproject.toml").exists() else _PACKAGE / "pages"
"""docs/ of the project; in an installed package the copy that crates/python/build.rs made."""
_FOLDERS = (
    *("start", "guides", "reference", "explanation", ".", "reference/verbs", "reference/doctor"),
    *("contributing", "contributing/decisions"),
)
"""Where a topic is looked for, in this order."""
_ENTRY = re.compile(r"^- \[[^]]*\]\(([a-z/-]+/)?([\w-]+)\.md\): (.+(?:\n  .+)*)$", re.M)
_SECTION = re.compile(r"^## (.+)$", re.M)


def topics() -> dict[str, dict[str, str]]:
    """Section of the index -> topic -> its line there."""
    _before, *parts = _SECTION.split((FOLDER / "README.md").read_text(encoding="utf-8"))
    sections = {}
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        found = {_topic(folder or "", stem): " ".join(line.split()) for folder, stem, line in _ENTRY.findall(text)}
        if found:
            sections[title] = found
    return sections


def _topic(folder: str, stem: str) -> str:
    """An index page has the name of its folder."""
    return Path(folder).name if stem == "README" else stem


def paths() -> dict[str, Path]:
    """Topic -> its page."""
    found: dict[str, Path] = {}
    for folder in _FOLDERS:
        for path in sorted((FOLDER / folder).glob("*.md")):
            name = "index" if path.parent == FOLDER and path.stem == "README" else _topic(folder, path.stem)
            found.setdefault(name, path)
    return found


def source(path: Path) -> str:
    """A page without the comments for its tests."""
    return re.sub(r"^<!--.*?-->\n", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def rendered(path: Path, width: int) -> str:
    """A page for a terminal of this width."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard")
    with console.capture() as shown:
        console.print(Markdown(source(path), hyperlinks=False))
    return shown.get()


def listed() -> Iterator[str]:
    """The topics, a line each, under the titles of the index."""
    sections = topics()
    width = max(len(name) for found in sections.values() for name in found)
    for title, found in sections.items():
        yield f"{title}:"
        yield from (f"  {name:<{width}}  {line}" for name, line in found.items())
        yield ""
