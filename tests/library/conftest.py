"""The kernel made of files that the tests of the knobs have."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "knobs"))
