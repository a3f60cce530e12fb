"""Results of simulations on workers, kept until the run that asked for them is complete: one that was killed goes on.

They are by the digest of everything that they depend on, so another run that asks for the same may use them too.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from spindle.base.cache import cache_folder
from spindle.base.decoding import decode_json
from spindle.cluster.simulation import Simulated
from spindle.run.errors import RunFailed

KEPT_DAYS = 30
"""Results of a run that nobody went on with are removed after this time."""
_AT_ONCE = 500


def place() -> Path:
    """The file."""
    return cache_folder() / "simulations.sqlite"


class ResultFile:
    """The file. Used by one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS simulation (key TEXT PRIMARY KEY, at REAL, result BLOB) WITHOUT ROWID"
            )
            self._file.execute("DELETE FROM simulation WHERE at < ?", [time.time() - KEPT_DAYS * 86_400])
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from None

    def find(self, keys: Sequence[str]) -> dict[str, Simulated]:
        """The results that are there, by key."""
        found: dict[str, Simulated] = {}
        try:
            for first in range(0, len(keys), _AT_ONCE):
                some = keys[first : first + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = self._file.execute(f"SELECT key, result FROM simulation WHERE key IN ({marks})", some)
                found |= {key: decode_json(result, Simulated) for key, result in rows}
        except (sqlite3.Error, msgspec.DecodeError) as error:
            raise self._failed(error) from None
        return found

    def add(self, results: Mapping[str, Simulated]) -> None:
        """Keep results: they are on the disk on return, all of them or none."""
        now = time.time()
        rows = [(key, now, msgspec.json.encode(one)) for key, one in results.items()]
        try:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT OR REPLACE INTO simulation VALUES (?, ?, ?)", rows)
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failed(error) from None

    def forget(self, keys: Iterable[str]) -> None:
        """Remove results: the run is complete."""
        try:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("DELETE FROM simulation WHERE key = ?", [(key,) for key in keys])
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _failed(self, error: Exception) -> RunFailed:
        return RunFailed(f"{self._path}: results cannot be kept ({error}); free or remove it, or set XDG_CACHE_HOME")
