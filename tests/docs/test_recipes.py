"""The recipes of docs/contributing, applied to a copy of the package: three source files at most, and it works."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/contributing").glob("*.md"))
CHANGE = re.compile(
    r"^<!-- change: (\S+), (new|append|before|after|replace)(?:: ([^\n]*))? -->\n```python\n(.*?)^```$", re.M | re.S
)
PRINTS = re.compile(r"^<!-- prints: (.*) -->\n<!-- run: not, .* -->\n```\n\$ (.*)\n```$", re.M)


def changed(text: str, how: str, line: str, new: str) -> str:
    """A file with a change; `line`: what stands in the one line that it is about."""
    if how in ("new", "append"):
        return text + new
    lines = text.splitlines(keepends=True)
    [at] = [at for at, found in enumerate(lines) if line in found]
    lines[at] = {"before": new + lines[at], "after": lines[at] + new, "replace": new}[how]
    return "".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_works(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    changes = CHANGE.findall(text)
    assert text.count("<!-- change") == len(changes)
    assert 1 <= len({path for path, *_ in changes}) <= 3
    package = tmp_path / "python/spindle"
    shutil.copytree(ROOT / "python/spindle", package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, how, line, new in changes:
        file = tmp_path / path
        file.write_text(changed("" if how == "new" else file.read_text(), how, line, new))
    prints = PRINTS.findall(text)
    assert prints
    for pattern, command in prints:
        words = [sys.executable, "-m", "spindle.cli", *shlex.split(command)[1:]]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "python")}
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert re.search(pattern, done.stdout), done.stdout + done.stderr
