"""Stores to test with: each test of a store is run on SQLite and on PostgreSQL."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "cli")]  # what tests import

from program import Ended  # noqa: E402
from server import Server, missing  # noqa: E402

from spindle.store import Store, open_store  # noqa: E402


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


@pytest.fixture
def invoke(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run a command line in this process."""
    from spindle.cli.main import invoke as run

    monkeypatch.delenv("SPINDLE_TRACEBACK", raising=False)

    def call(*arguments: str) -> Ended:
        capfd.readouterr()
        status = run(list(arguments))
        sys.stdout.flush()
        captured = capfd.readouterr()
        return Ended(int(status), captured.out, captured.err)

    return call
