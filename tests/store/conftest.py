"""Stores to test with: each test of a store is run on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spindle.store import Store, open_store
from tests.store.server import Server, missing


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server for all tests."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    made = Server()
    yield made
    made.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of a new store."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    found: Server = request.getfixturevalue("server")
    return found.new_database()


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    with open_store(where) as opened:
        yield opened


@pytest.fixture
def fresh(where: str) -> Callable[[], Store]:
    """The same store opened once more."""
    return lambda: open_store(where)
