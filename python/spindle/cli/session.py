"""The live line on stderr of a verb that measures."""

from __future__ import annotations

from contextlib import AbstractContextManager

from spindle.cli.failure import spelled
from spindle.library import session as library
from spindle.report.terminal.progress import watching
from spindle.run.watch import Watch


def live_line(quiet: bool) -> AbstractContextManager[Watch]:
    """Return the watch that shows progress on stderr, for `progress=` of the library."""
    return watching(quiet=quiet, spelled=spelled)


def session(quiet: bool) -> AbstractContextManager[Watch]:
    """Return the library's session, with progress on stderr."""
    return library.session(live_line(quiet))
