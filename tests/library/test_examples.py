"""The examples run, and the page about the library does what it shows."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
PAGE = (ROOT / "docs/reference/library.md").read_text()


def shown(code: str, names: dict[str, Any]) -> Any:
    """Carry out a cell; the value of its last line, as a notebook shows it."""
    *lines, last = ast.parse(code).body
    exec(compile(ast.Module(lines, []), "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    exec(compile(ast.Module([last], []), "cell", "exec"), names)
    return None


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_each_script_runs(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name in re.findall(r"(\S+\.\w+) has the", done.stdout):
        assert (tmp_path / name).stat().st_size > 0


def test_the_gate_fails_where_the_bound_is_missed_and_where_there_is_no_target(tmp_path: Path) -> None:
    script = ROOT / "examples/latency_gate.py"
    for arguments, words in ((("one-sata", "1"), "slower than 1.0 ms"), (("no-such-file",), "no-such-file: ")):
        done = subprocess.run(
            [sys.executable, script, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_runs_and_shows_its_cells(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(notebook.read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # results are not kept in the repository
            value = shown("".join(cell["source"]), names)
            if hasattr(value, "_repr_html_"):
                assert value._repr_html_().startswith(("<div>", "<table>", "<pre>"))
            elif hasattr(value, "_repr_mimebundle_"):
                assert value._repr_mimebundle_()["image/svg+xml"].startswith("<svg")


def test_the_code_of_the_page_runs_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINDLE_STORE", str(tmp_path / "store.db"))
    blocks = re.findall(r"(<!-- run: not, [^\n]*-->\n)?```python\n(.*?)```", PAGE, re.S)
    names: dict[str, Any] = {}
    for left_out, code in blocks:
        if left_out:
            compile(code, "page", "exec")
        else:
            exec(compile(code, "page", "exec"), names)
    assert len(blocks) > 5
    assert sum(bool(left_out) for left_out, _ in blocks) <= 2


def test_every_public_name_is_on_the_page() -> None:
    import spindle

    missing = [name for name in spindle.__all__ if f"`{name}" not in PAGE and f"spindle.{name}" not in PAGE]
    assert missing == []


def test_a_reader_of_the_environment_is_not_needed() -> None:
    """`python -m spindle` is the program."""
    done = subprocess.run(
        [sys.executable, "-m", "spindle", "--version"], env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("spindle ")
