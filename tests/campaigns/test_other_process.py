"""Another process opens and closes the store of a running campaign, again and again: nothing is lost.

SQLite's locks are POSIX locks: closing any descriptor of the file drops all that the process has on it. The other
process is then the last one that closes the store, as far as it can see, and removes the write-ahead log that the
campaign goes on writing to.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from spindle.campaign.execution import begin, carry_out, reopened
from spindle.library.importing import take_in
from spindle.run.errors import Usage
from spindle.run.watch import SilentWatch
from spindle.store import Store, open_store
from spindle.store.connection import is_database
from tests.campaigns import small

FEW = small.SIXTY.replace("[1, 16, 64]", "[1]").replace("count = 5", "count = 1")
OTHER = "import sys; from spindle.store import open_store; print(open_store(sys.argv[1]).count())"


def other_process(place: Path) -> int:
    """Opens the store, counts the results and ends."""
    done = subprocess.run([sys.executable, "-c", OTHER, str(place)], capture_output=True, text=True, check=True)
    return int(done.stdout)


_watched: list[Path] = []
_seen: list[str] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _watched and isinstance(arguments[0], str | bytes):
        flags = arguments[2] if isinstance(arguments[2], int) else 0
        if os.path.realpath(os.fsdecode(arguments[0])) in map(str, _watched) and not flags & os.O_PATH:
            _seen.append(os.fsdecode(arguments[0]))


sys.addaudithook(_hook)


@contextmanager
def only_sqlite_opens(place: Path) -> Iterator[None]:
    """Fails if Python opens the store's file or its log."""
    _watched[:] = [place.with_name(place.name + end) for end in ("", "-wal", "-shm")]
    _seen.clear()
    try:
        yield
    finally:
        _watched.clear()
    assert not _seen


def test_a_resumed_campaign_keeps_its_log(place: Path) -> None:
    with open_store(place) as store:
        campaign = begin(small.ready(FEW), store, "small")
    with open_store(place) as store:
        found = store.campaigns.get(campaign.name)
        ready = reopened(found, store)
        other_process(place)
        carry_out(found, ready, store, SilentWatch())
        assert other_process(place) == 4
        assert store.check().problems == []


def test_the_file_of_a_store_is_opened_by_sqlite_alone(place: Path, store: Store, tmp_path: Path) -> None:
    with only_sqlite_opens(place):
        campaign = begin(small.ready(FEW), store, "small")
        carry_out(campaign, reopened(campaign, store), store, SilentWatch())
        with pytest.raises(Usage, match="the store itself"):
            take_in(store, str(place), [])
        with open_store(place, read_only=True) as other:
            other.info()
            other.check()
        store.vacuum()
        with open_store(tmp_path / "second.db") as second:
            take_in(second, str(place), [])


def test_the_watch_over_opened_files_sees_an_open(place: Path, store: Store) -> None:
    with suppress(AssertionError), only_sqlite_opens(place):
        place.open("rb").close()
    assert _seen == [str(place)]


def test_databases_are_recognised_without_opening_them_beside_sqlite(place: Path, store: Store) -> None:
    others = {"empty": b"", "text": b"{}\n" * 100, "folder": None, "almost": b"SQLite format 3\n" + bytes(600)}
    for name, content in others.items():
        path = place.with_name(name)
        path.mkdir() if content is None else path.write_bytes(content)
        assert not is_database(path), name
    assert is_database(place)
    assert not is_database(place.with_name("missing"))
