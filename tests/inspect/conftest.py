"""Shared by the tests of the inspection."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spindle.inspect import Inventory, inspect_stack
from tests.inspect.trees import load


@pytest.fixture
def stack() -> Callable[..., Inventory]:
    """The inventory of a fixture."""

    def inspect(name: str, target: str | None = None) -> Inventory:
        return inspect_stack(target, load(name).held())

    return inspect
