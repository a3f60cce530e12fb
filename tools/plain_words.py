"""Plain words: names the lines that use a pattern which docs/contributing/words.md asks to avoid. Part of `make lint`.

python tools/plain_words.py [PATH ...]     these files and folders; without any, the whole project
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOKED_AT = (
    "python",
    "crates",
    "docs",
    "tests",
    "benches",
    "examples",
    "tools",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
SUFFIXES = (".py", ".pyi", ".rs", ".md", ".toml", ".html")
UNREAD = ("tests/data", "tools/plain_words.py", "docs/contributing/words.md", "python/spindle/pages")
"""Other people's words, those that quote the patterns, and copies."""

PATTERNS = {
    "name the subject first": re.compile(r'(?:"""|^\s*//!? |^\s*/// )(What|Whoever|Whatever|Whichever|Of|Whether)\b'),
    "say report, show, print, detect or distinguish": re.compile(r"(?<!\.)\b([Tt]ells?|[Tt]elling|[Tt]old)\b"),
    "say have, carry, tolerate or survive": re.compile(r"\b([Bb]ears?|[Bb]earing|[Bb]orne)\b"),
    "say is, is given, is shown or applies": re.compile(
        r"\b([Ss]tands?(?! for\b| still\b)|[Ss]tood|[Ll]ies? (?:in|on|at|between|within|behind|under|elsewhere))\b"
    ),
    "a type is a noun": re.compile(
        r"\b(?:class|struct|enum|type) (Looked|Sought|Told|Care|Warmth|Making|Kept|Asked|Found|Made|Compared|Left|Tried|Both|Way|Beside|Loaded)\b"
    ),
}
_CONTINUED = re.compile(r"^\s*//[/!]? ?\S")


def main() -> int:
    """Print what is found. Exit status 1: something is."""
    given = [Path(one).resolve() for one in sys.argv[1:]]
    found = [line for path in _files(given) for line in _lines(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


def _files(given: list[Path]) -> Iterator[Path]:
    roots = given or [ROOT / one for one in LOOKED_AT]
    for root in roots:
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            name = str(path.relative_to(ROOT))
            if path.suffix in SUFFIXES and path.is_file() and not any(_is_under(name, one) for one in UNREAD):
                yield path


def _is_under(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + "/")


def _lines(path: Path) -> Iterator[str]:
    name, before = path.relative_to(ROOT), ""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        for advice, pattern in PATTERNS.items():
            match = pattern.search(line)
            if match and not (
                line.lstrip().startswith("//") and advice.startswith("name") and _CONTINUED.match(before)
            ):
                yield f"{name}:{number}: `{match[1]}`: {advice}: {line.strip()[:100]}"
        before = line


if __name__ == "__main__":
    sys.exit(main())
