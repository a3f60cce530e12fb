"""Shared by the tests of the statistics."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))  # records.py
sys.path.insert(0, str(Path(__file__).parent))  # campaign.py and noise.py
