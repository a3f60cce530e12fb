"""The live line on stderr around a verb that measures."""

from __future__ import annotations

from contextlib import AbstractContextManager

from spindle.cli.failure import spelled
from spindle.library import session as library
from spindle.report.terminal.progress import watching
from spindle.run.watch import Watch


def session(quiet: bool) -> AbstractContextManager[Watch]:
    """Return the library's session, with progress on stderr."""
    return library.session(watching(quiet=quiet, spelled=spelled))
