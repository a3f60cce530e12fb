"""spindle-agent as `cargo test` builds it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Ended

ROOT = Path(__file__).resolve().parents[2]

Agent = Callable[..., Ended]


@pytest.fixture(scope="session")
def binary() -> Path:
    """The profile is that of the Rust tests, so that nothing is built twice."""
    command = [
        "cargo",
        "build",
        "--quiet",
        "--profile",
        "test",
        "--package",
        "spindle-agent",
        "--message-format",
        "json",
    ]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    artifacts = [json.loads(line) for line in built.stdout.splitlines()]
    return Path(next(each["executable"] for each in artifacts if each.get("executable")))


@pytest.fixture
def agent(binary: Path) -> Agent:
    """Runs it to its end: `agent(workload, target, output, ...)`."""

    def run(workload: str | Path, target: str | Path, output: str | Path, *more: str | Path) -> Ended:
        command = [binary, "run", "--workload", workload, "--target", target, "--output", output, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
