"""The recipes of docs/contributing, applied to a copy of the project: three source files at most, and it works.

Those that change no Rust run with all tests; `make recipes` runs all (RECIPES=all), each with a build of its own.
"""

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
PAGES = sorted(path for path in (ROOT / "docs/contributing").glob("*.md") if path.stem != "words")
CHANGE = re.compile(
    r"^<!-- change: (\S+), (new|append|before|after|replace)(?:: ([^\n]*))? -->\n```\w+\n(.*?)^```$", re.M | re.S
)
FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)
PRINTS = re.compile(r"^<!-- prints: (.*) -->\n<!-- run: not, .* -->\n```\n\$ (.*)\n```$", re.M)
CHANGES = {page: CHANGE.findall(page.read_text()) for page in PAGES}
WANTED = {
    *("importer", "doctor-rule", "preset", "preset-with-a-table", "elevator", "md-layout", "drive", "verdict"),
    *("metric", "knob", "chart", "verb", "workload-key", "target"),
}

TWO_ROOMS = ("verb", "preset-with-a-table", "target")
"""A verb shows what another room does, a table is in `report`, the meaning of a target's records in `result`."""


def needs_build(page: Path) -> bool:
    """True if a recipe changes a source file of the core."""
    return any(not path.startswith("python/") for path, *_ in CHANGES[page])


def changed(text: str, how: str, line: str, new: str) -> str:
    """A file with a change; `line`: a part of the line that changes."""
    if how in ("new", "append"):
        return text + new
    lines = text.splitlines(keepends=True)
    [at] = [at for at, found in enumerate(lines) if line in found.rstrip()]
    lines[at] = {"before": new + lines[at], "after": lines[at] + new, "replace": new}[how]
    return "".join(lines)


def applied(page: Path) -> dict[str, str]:
    """The changed files of a recipe."""
    files: dict[str, str] = {}
    for path, how, line, new in CHANGES[page]:
        before = "" if how == "new" else files.get(path) or (ROOT / path).read_text()
        files[path] = changed(before, how, line, new)
    return files


def test_every_kind_of_change_has_a_recipe() -> None:
    assert {page.stem for page in PAGES} == WANTED


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_names_three_source_files_at_most(page: Path) -> None:
    assert page.read_text().count("<!-- change") == len(CHANGES[page])
    files = {path for path, *_ in CHANGES[page]}
    assert 1 <= len(files) <= 3
    rooms = {"/".join(path.split("/")[:3]) for path in files if not path.startswith("catalogue/")}  # the rest is data
    assert len({room.removesuffix("/src") for room in rooms}) <= (2 if page.stem in TWO_ROOMS else 1)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_lines_that_a_recipe_changes_exist(page: Path) -> None:
    assert applied(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_works(page: Path, tmp_path: Path) -> None:
    if needs_build(page) and os.environ.get("RECIPES") != "all":
        pytest.skip("builds the core: make recipes")
    text = page.read_text()
    copied(tmp_path, whole=needs_build(page))
    for path, changed_text in applied(page).items():
        (tmp_path / path).write_text(changed_text)
    if needs_build(page):
        build(tmp_path)
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    prints = PRINTS.findall(text)
    assert prints
    for pattern, command in prints:
        words = [sys.executable, "-m", "spindle.cli", *shlex.split(command)[1:]]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "python"), "SPINDLE_STORE": str(tmp_path / "store")}
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert re.search(pattern, done.stdout), done.stdout + done.stderr


def copied(to: Path, whole: bool) -> None:
    """The package with its core, or all files for a build."""
    kept = shutil.ignore_patterns("__pycache__", "target", "*.so") if whole else shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python", to / "python", ignore=kept)
    if whole:
        for name in ("crates", "catalogue", "docs", "tools"):
            shutil.copytree(ROOT / name, to / name, ignore=kept)
        for name in ("Cargo.toml", "Cargo.lock", "pyproject.toml", "clippy.toml"):
            shutil.copy(ROOT / name, to / name)


def build(root: Path) -> None:
    """The core, and the Python types of its output."""
    target = ROOT / "target/recipes"
    cargo = ["cargo", "build", "--quiet", "--package", "spindle-python", "--target-dir", str(target)]
    generate = [sys.executable, "tools/generate_types.py"]
    for command in (cargo, generate):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    shutil.copy(target / "debug/lib_core.so", root / "python/spindle/_core.abi3.so")
