"""One server from start to end."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from spindle import _core
from spindle.host.signals import held_back

from .contents import open_contents
from .figures import ServeFigures, serve_figures_from_json
from .place import Place

_PIECE_S = 0.5
"""Signals are seen so often at least."""
_END_S = 60.0
"""Longest time that a server may need to end."""


class Session:
    """A server; leaving its context ends it, and removes its socket or mount."""

    def __init__(self, drive: _core.ModelledDrive, place: Place, contents: Path | None, spin_ns: int) -> None:
        place.check()
        self.place = place
        self.bytes = drive.bytes
        self.figures: ServeFigures | None = None
        fd = None if contents is None else open_contents(contents, drive.bytes)
        self._fd = fd
        self._cpu_s = time.process_time()
        try:
            self._server = _core.DriveServer(drive, place.protocol, place.name, contents=fd, spin_ns=spin_ns)
        except BaseException:
            self._close()
            raise
        self._made = place.identity()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the server ends by itself (its mount is gone), at most so long; True if it has ended."""
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            piece = _PIECE_S if end is None else max(0.0, min(_PIECE_S, end - time.monotonic()))
            if self._server.wait(piece):
                return True
        return False

    def stop(self) -> ServeFigures:
        """End it. Raises RunError if it has failed."""
        if self.figures is None:
            with held_back():
                self._server.stop()
                try:
                    self.wait(_END_S)
                    text = self._server.summary()
                finally:
                    self.place.remove(self._made)
                    self._close()
            figures = serve_figures_from_json(text)
            self.figures = msgspec.structs.replace(figures, cpu_s=time.process_time() - self._cpu_s)
        return self.figures

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
