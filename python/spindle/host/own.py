"""A file or folder of Spindle's own on the user's file system: registered while it exists, removed when closed."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from .errors import TargetError
from .register import Record, settle
from .signals import held_back


class OwnedPath:
    """An open file or folder, its parent folder, and its entry in the register."""

    WHAT: ClassVar[str]
    """Its name in messages."""
    __test__: ClassVar[bool] = False  # pytest must not collect subclasses by their names

    def __init__(self, path: Path, fd: int, parent: int, record: Record) -> None:
        self.path = path
        self._fd = fd
        self._parent = parent
        self._record: Record | None = record
        self._maker = os.getpid()

    def fileno(self) -> int:
        """The descriptor."""
        if self._record is None:
            raise TargetError(f"{self.path}: the {self.WHAT} is already removed")
        return self._fd

    def remove(self) -> str | None:
        """Remove it and its entry. Returns one line with the reason if something was left. Idempotent."""
        raise NotImplementedError

    def keep(self) -> None:
        """Leave it in place; from now on it belongs to the user, even if power fails. May be called again."""
        if (record := self._taken()) is None:
            return
        with held_back():
            self._record = None
            try:
                record.discard()
                settle()
            finally:
                self._close()

    def _taken(self) -> Record | None:
        """Its entry, if it still exists and this process made it."""
        return self._record if os.getpid() == self._maker else None

    def _close(self) -> None:
        os.close(self._fd)
        os.close(self._parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __del__(self) -> None:
        # An exception may occur after it is made and before `with` has it.
        if hasattr(self, "_maker"):
            self.remove()
