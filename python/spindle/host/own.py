"""Something of Spindle's own on the user's file system: registered while it is there, removed when closed."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from .errors import TargetError
from .register import Record
from .signals import held_back


class Own:
    """A file or folder, open, with the folder it lies in and its entry in the register."""

    WHAT: ClassVar[str]
    """What messages call it."""
    __test__: ClassVar[bool] = False  # names of heirs are no tests for pytest

    def __init__(self, path: Path, fd: int, parent: int, record: Record) -> None:
        self.path = path
        self._fd = fd
        self._parent = parent
        self._record: Record | None = record
        self._maker = os.getpid()

    def fileno(self) -> int:
        """Its descriptor."""
        if self._record is None:
            raise TargetError(f"{self.path}: the {self.WHAT} is removed already")
        return self._fd

    def remove(self) -> str | None:
        """Remove it and its entry. Returns one line when something was left, and why. Idempotent."""
        raise NotImplementedError

    def keep(self) -> None:
        """Leave it where it is: from now on it is the user's own. May be called again."""
        if (record := self._taken()) is None:
            return
        with held_back():
            self._record = None
            try:
                record.discard()
            finally:
                self._close()

    def _taken(self) -> Record | None:
        """Its entry, if it is still there and this process made it."""
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
        # An exception may strike after it is made and before `with` has it.
        if hasattr(self, "_maker"):
            self.remove()
