"""The frame around every measurement: leftovers of killed runs are removed, signals unwind."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from spindle.host.signals import unwinding_here
from spindle.host.testfile import sweep_leftovers
from spindle.knobs.restore import interrupted
from spindle.run.errors import Usage
from spindle.run.watch import SilentWatch, Watch

LOGGER = "spindle"
"""Remarks of a run that nobody watches go to this logger, at level INFO."""


class LoggerWatch(SilentWatch):
    """A watch without progress; remarks go to the logger."""

    def say(self, text: str) -> None:
        """As `Watch`."""
        logging.getLogger(LOGGER).info(text)


Progress = bool | AbstractContextManager[Watch]
"""True: a live line on stderr; or a watch of the caller's own, which is given back at the end."""


def watched(progress: Progress) -> AbstractContextManager[Watch]:
    """The session of a function with `progress=`."""
    if isinstance(progress, bool):
        return session(_live_line() if progress else None)
    return session(progress)


def _live_line() -> AbstractContextManager[Watch]:
    from spindle.report.terminal.progress import watching

    return watching()


@contextmanager
def session(watching: AbstractContextManager[Watch] | None = None) -> Iterator[Watch]:
    """Remove the leftovers of a killed run, then watch; Ctrl-C and SIGTERM unwind instead of killing.

    Signals can be handled in the main thread only; in another one they stay as they are.
    """
    try:
        os.getcwd()
    except OSError as error:
        raise Usage(f"the current directory is gone ({error.strerror}); change to one that exists") from None
    with unwinding_here(), watching or nullcontext(LoggerWatch()) as watch:
        for leftover in sweep_leftovers():
            watch.say(f"spindle: {leftover.line}")
        for line in interrupted():
            watch.say(f"spindle: {line}")
        yield watch
