"""Attributes of new arrays: the lab's kernel and the models agree. Needs the lab's kernel (`make lab`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "benches/array_defaults.py"


def test_arrays_have_the_attributes_that_the_models_have(four: Path) -> None:
    said = subprocess.run([sys.executable, BENCH], capture_output=True, text=True, timeout=900, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert len(said.stdout.splitlines()) == 21
