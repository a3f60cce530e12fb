"""What happens, while it happens: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from spindle.result import units
from spindle.run.watch import Moment, Watch

if TYPE_CHECKING:
    from rich.live import Live

SPARSE_S = 30.0
"""Off a terminal a long run says this often that it still goes on."""


@contextmanager
def watching(stream: TextIO | None = None, quiet: bool = False) -> Iterator[Watch]:
    """The watch that suits the stream (stderr); its live line is gone at the end."""
    out = sys.stderr if stream is None else stream
    watch: LiveLine | SparseLines = LiveLine(out) if out.isatty() and not quiet else SparseLines(out, quiet)
    try:
        yield watch
    finally:
        watch.end()


def words(moment: Moment) -> str:
    """`randomio: 12 345 IOPS, 50.6 MB/s, 45 %, 33 s left`."""
    parts = []
    if moment.phase in ("ramp", "measure"):
        parts.append(f"{units.count(round(moment.iops))} IOPS, {units.rate(moment.bytes_per_s)}")
    if moment.errors:
        parts.append(f"{moment.errors} errors")
    match moment.phase:
        case "calibrate":
            parts.append("calibrating")
        case "ramp":
            parts.append("ramp, not counted yet")
        case "sync":
            parts.append("waiting for the last requests")
        case _:
            pass
    if moment.done_fraction is not None and moment.left_s is not None and moment.phase in ("ramp", "measure"):
        parts.append(f"{moment.done_fraction * 100:.0f} %, {units.seconds(round(moment.left_s))} left")
    return f"{moment.label}: {', '.join(parts)}" if parts else moment.label


class SparseLines:
    """For pipes and logs: what a person should see at once, and a sign of life now and then."""

    def __init__(self, out: TextIO, quiet: bool) -> None:
        self._out = out
        self._quiet = quiet
        self._last = time.monotonic()

    def say(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def step(self, text: str) -> None:
        self._now_and_then(text)

    def portion(self, text: str, done: int, total: int) -> None:
        self._now_and_then(f"{text}: {units.percent(done / total if total else 1.0)}")

    def moment(self, moment: Moment) -> None:
        self._now_and_then(words(moment))

    def end(self) -> None:
        pass

    def _now_and_then(self, text: str) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._last >= SPARSE_S:
            self._last = now
            print(text, file=self._out, flush=True)


class LiveLine:
    """For a terminal: one line that changes in place."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live: Live | None = None

    def say(self, text: str) -> None:
        self.end()
        print(text, file=self._out, flush=True)

    def step(self, text: str) -> None:
        self._show(f"{text} ...")

    def portion(self, text: str, done: int, total: int) -> None:
        self._show(f"{text}: {units.percent(done / total if total else 1.0)}")

    def moment(self, moment: Moment) -> None:
        self._show(words(moment))

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self, text: str) -> None:
        from rich.text import Text  # only where there is a terminal: importing it takes longer than starting up

        line = Text(text, no_wrap=True, overflow="ellipsis")
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(line, console=Console(file=self._out), transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(line, refresh=True)
