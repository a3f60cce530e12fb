"""Shared by the tests of the inspection."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # trees.py, for the tests beside it

from trees import load

from spindle.inspect import Inventory, inspect_stack


@pytest.fixture
def stack() -> Callable[..., Inventory]:
    """The inventory of a fixture."""

    def inspect(name: str, target: str | None = None) -> Inventory:
        return inspect_stack(target, load(name).held())

    return inspect
