"""Shared by the tests of the doctor: captured trees and stacks of any shape, and the findings on them."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "inspect")]  # shapes.py beside this, trees.py with the trees
