"""Shared by the tests of the statistics."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]  # noise.py; records.py and program.py of the command line's tests
