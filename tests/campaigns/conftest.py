"""Plans to test with, a store of the test's own, real loop queues, and a PostgreSQL server where there is one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

for folder in ("store", "knobs"):  # server.py and real_queue.py, which their tests use too
    sys.path.insert(0, str(Path(__file__).parent.parent / folder))
sys.path.insert(0, str(Path(__file__).parent))

from real_queue import Queue  # noqa: E402
from server import Server, missing  # noqa: E402

from program import Ended  # noqa: E402
from spindle.store import Store, open_store  # noqa: E402


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
def queue(bench: object) -> Iterator[Queue]:
    """A loop device with random content; as it was afterwards, as the next one to use the device inherits it."""
    made = Queue(Path(bench.loop()).name)  # type: ignore[attr-defined]
    made["scheduler"] = "none"
    before = made.values()
    yield made
    made["scheduler"] = "none"
    for path, value in before.items():
        if path.startswith(str(made.folder)) and not path.endswith("/scheduler"):
            with suppress(OSError):
                if Path(path).read_text() != value:
                    Path(path).write_text(value.strip())
