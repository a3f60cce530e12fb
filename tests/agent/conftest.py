"""spindle-agent."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Ended

ROOT = Path(__file__).resolve().parents[2]

Agent = Callable[..., Ended]


@pytest.fixture(scope="session")
def binary() -> Path:
    """The static one that is installed, built if a source is newer."""
    subprocess.run(["make", "--quiet", "build/spindle-agent"], cwd=ROOT, capture_output=True, text=True, check=True)
    return ROOT / "build/spindle-agent"


@pytest.fixture
def agent(binary: Path) -> Agent:
    """Runs it to its end: `agent(workload, target, output, ...)`."""

    def run(workload: str | Path, target: str | Path, output: str | Path, *more: str | Path) -> Ended:
        command = [binary, "run", "--workload", workload, "--target", target, "--output", output, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
