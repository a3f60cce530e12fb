"""Plans to test with, a store of the test's own, real loop queues, and a PostgreSQL server where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from spindle.store import Store, open_store
from tests.program import Ended
from tests.queue import Queue
from tests.store.server import Server, missing
from tests.workbench import Workbench


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of the test's own, which commands find."""
    path = tmp_path / "store.db"
    monkeypatch.setenv("SPINDLE_STORE", str(path))
    return path


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    with open_store(place) as opened:
        yield opened


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server for all tests of campaigns."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    made = Server()
    yield made
    made.remove()


@pytest.fixture
def invoke(invoke: Callable[..., Ended], place: Path) -> Callable[..., Ended]:
    """`spindle campaign ...`."""
    return partial(invoke, "campaign")


@pytest.fixture
def queue(bench: Workbench) -> Iterator[Queue]:
    """A loop device with random content; as it was afterwards, as the next one to use the device inherits it."""
    made = Queue(Path(bench.loop()).name)
    made["scheduler"] = "none"
    before = made.values()
    yield made
    made["scheduler"] = "none"
    for path, value in before.items():
        if path.startswith(str(made.folder)) and not path.endswith("/scheduler"):
            with suppress(OSError):
                if Path(path).read_text() != value:
                    Path(path).write_text(value.strip())
