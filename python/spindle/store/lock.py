"""A lock: one process at a time runs a campaign. It ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import IO, Protocol

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from spindle.host.trusted import new_own, open_own

from .connection import in_words
from .database import Database
from .errors import StoreError, StoreRefused


class Lock(Protocol):
    """Owned by one process."""

    def take(self) -> None:
        """Take the lock. Raises StoreRefused if another process has it."""

    def keep(self) -> None:
        """Confirm the lock, or take it again. Raises StoreRefused."""

    def release(self) -> None:
        """Release the lock."""


def lock_of(database: Database, campaign_id: str, name: str) -> Lock:
    """The lock that fits the database."""
    if database.place.file is not None:
        return FileLock(database.place.file, campaign_id, name)
    return ServerLock(database, campaign_id, name)


def _taken(name: str, holder: str = "") -> StoreRefused:
    return StoreRefused(
        f"campaign {name}: another process runs it{f' ({holder})' if holder else ''}; "
        "wait until it has ended, or stop it"
    )


class FileLock:
    """flock on a file next to the store."""

    def __init__(self, store: Path, campaign_id: str, name: str) -> None:
        self._path = store.with_name(f"{store.name}.{campaign_id}.lock")
        self._name = name
        self._file: IO[bytes] | None = None

    def take(self) -> None:
        while self._file is None:
            try:
                file = os.fdopen(self._open(), "r+b")
            except FileExistsError:  # another process was faster
                continue
            except OSError as error:
                raise StoreError(f"{self._path}: the lock cannot be made: {(error.strerror or '').lower()}") from None
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                pid = file.read(20).decode("ascii", "replace").strip()
                file.close()
                raise _taken(self._name, f"process {pid}" if pid.isdigit() else "") from None
            if not self._is_current(file):  # its last owner removed it while we waited
                file.close()
                continue
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            self._file = file

    def _open(self) -> int:
        """Open without following links: in a folder that others may write to, a link could lead to a file of ours."""
        try:
            return open_own(self._path, appending=True)
        except FileNotFoundError:
            return new_own(self._path)

    def _is_current(self, file: IO[bytes]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def keep(self) -> None:
        """Nothing to do: the kernel keeps it."""

    def release(self) -> None:
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._file.close()
            self._file = None


class ServerLock:
    """An advisory lock of PostgreSQL on a connection of its own; it ends with the connection."""

    def __init__(self, database: Database, campaign_id: str, name: str) -> None:
        self._database = database
        self._number = int.from_bytes(hashlib.sha256(campaign_id.encode()).digest()[:8], "big", signed=True)
        self._name = name
        self._connection: Connection | None = None

    def take(self) -> None:
        def work(_: Connection) -> None:
            self._take()

        self._database.write(work)  # with its patience

    def _take(self) -> None:
        if self._connection is not None:
            return
        connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            had = connection.execute(text("SELECT pg_try_advisory_lock(:number)"), {"number": self._number}).scalar()
        except BaseException:
            connection.close()
            raise
        if not had:
            connection.close()
            raise _taken(self._name)
        self._connection = connection

    def keep(self) -> None:
        """Take the lock again after a restart of the server. The campaign's state shows if another process was
        faster.
        """
        if self._connection is not None:
            try:
                self._connection.execute(text("SELECT 1"))
                return
            except DBAPIError:
                self._connection.invalidate()
                self._connection.close()
                self._connection = None
        self._take()

    def release(self) -> None:
        if self._connection is None:
            return
        try:
            self._connection.execute(text("SELECT pg_advisory_unlock(:number)"), {"number": self._number})
        except DBAPIError as error:
            in_words(error, self._database.place)  # the server is gone, and the lock with it
        finally:
            self._connection.close()
            self._connection = None
