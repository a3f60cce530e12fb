"""Progress: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from spindle.base import units
from spindle.run.watch import Moment, Watch

ERASE = "\r\x1b[2K"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
USUAL_WIDTH = 80
SPARSE_S = 30.0
"""Interval of progress lines without a terminal."""


@contextmanager
def watching(stream: TextIO | None = None, quiet: bool = False, spelled: Callable[[str], str] = str) -> Iterator[Watch]:
    """Yield the watch for the stream (stderr); its live line is removed at the end. `spelled`: how keys are shown."""
    out = sys.stderr if stream is None else stream
    watch: LiveLine | SparseLines = (
        LiveLine(out, spelled) if out.isatty() and not quiet else SparseLines(out, quiet, spelled)
    )
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
    """Progress in pipes and logs: important lines at once, others now and then."""

    def __init__(self, out: TextIO, quiet: bool, spelled: Callable[[str], str] = str) -> None:
        self._out = out
        self._spelled = spelled
        self._quiet = quiet
        self._last = time.monotonic()

    def say(self, text: str) -> None:
        print(self._spelled(text), file=self._out, flush=True)

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
    """Progress on a terminal: one line that changes in place.

    Written by hand: a layout library caches the texts it measured, and a line that changes ten times a second would
    fill memory during a long run.
    """

    def __init__(self, out: TextIO, spelled: Callable[[str], str] = str) -> None:
        self._out = out
        self._spelled = spelled
        self._shown = False

    def say(self, text: str) -> None:
        self.end()
        print(self._spelled(text), file=self._out, flush=True)

    def step(self, text: str) -> None:
        self._show(f"{text} ...")

    def portion(self, text: str, done: int, total: int) -> None:
        self._show(f"{text}: {units.percent(done / total if total else 1.0)}")

    def moment(self, moment: Moment) -> None:
        self._show(words(moment))

    def end(self) -> None:
        if self._shown:
            self._write(f"{ERASE}{SHOW_CURSOR}")
            self._shown = False

    def _show(self, text: str) -> None:
        self._write(f"{ERASE}{'' if self._shown else HIDE_CURSOR}{clipped(text, self._width())}")
        self._shown = True

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or USUAL_WIDTH
        except (OSError, ValueError):  # not a terminal after all
            return USUAL_WIDTH


def clipped(text: str, width: int) -> str:
    """Cut text to fit a line without reaching its end, where a terminal would begin a new line."""
    left = max(width - 1, 1)
    kept = []
    for char in text:
        if not char.isprintable():
            continue
        cells = 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if cells > left:
            break
        left -= cells
        kept.append(char)
    return "".join(kept)
