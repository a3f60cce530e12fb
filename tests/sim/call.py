"""The program as a person calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def spindle(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """One call; the caller looks at its exit status."""
    command = [sys.executable, "-m", "spindle.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
