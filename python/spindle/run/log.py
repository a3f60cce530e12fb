"""The completion log of a run, which takes its name when the run is over."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from spindle.host.durably import part_of
from spindle.run.errors import Usage
from spindle.run.load import Forwarding, RunningLoad


class LoggedLoad(Forwarding):
    """A load whose completions go to a file; the core writes, to a descriptor that it is lent."""

    def __init__(self, path: Path, start: Callable[[int], RunningLoad]) -> None:
        self._path = path
        self._part = part_of(path)
        try:
            self._file = self._part.open("xb", buffering=0)
        except OSError as error:
            raise Usage(f"--log {path}: {error.strerror}; name a file in a folder that can be written") from None
        try:
            super().__init__(start(self._file.fileno()))
        except BaseException:
            self._drop()
            raise

    def figures(self) -> str:
        """As `RunningLoad`; the log is in its place then."""
        try:
            figures = self._load.figures()
            os.replace(self._part, self._path)
        except OSError as error:
            raise Usage(f"--log {self._path}: {error.strerror}; the log is lost, write it elsewhere") from None
        finally:
            self._drop()
        return figures

    def _drop(self) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)


def logged(path: Path | None, start: Callable[[int | None], RunningLoad]) -> RunningLoad:
    """A load that has begun, with a log if a file for it is named."""
    return start(None) if path is None else LoggedLoad(path, start)
