"""Workers that the tests of a module share: starting some takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spindle.cluster import sharing
from spindle.cluster.choice import Choice, choice_of
from spindle.run.watch import SilentWatch, Watch

pytest.importorskip("distributed", reason="needs dask; pip install 'spindle[cluster]'")


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[int, Any]]:
    """Clients of one and of two workers."""
    with (
        sharing.connected(choice_of(workers=1), SilentWatch()) as one,
        sharing.connected(choice_of(workers=2), SilentWatch()) as two,
    ):
        yield {1: one, 2: two}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results are kept in a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def shared(clients: dict[int, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """`workers=` uses the clients of the module."""

    @contextmanager
    def connected(choice: Choice, watch: Watch) -> Iterator[Any]:
        assert choice.workers is not None
        yield clients[choice.workers]

    monkeypatch.setattr(sharing, "connected", connected)
