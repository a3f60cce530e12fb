"""What surrounds every verb that measures: leftovers, signals, the live line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from spindle.cli.failure import spelled
from spindle.host.knobs.restore import interrupted
from spindle.host.signals import unwinding
from spindle.host.testfile import sweep_leftovers
from spindle.report.progress import watching
from spindle.run.errors import Usage
from spindle.run.watch import Watch


@contextmanager
def session(quiet: bool) -> Iterator[Watch]:
    """Removes what a killed run left, then watches; Ctrl-C and SIGTERM unwind instead of killing."""
    try:
        os.getcwd()
    except OSError as error:
        raise Usage(f"the current directory is gone ({error.strerror}); change to one that exists") from None
    with unwinding(), watching(quiet=quiet, spelled=spelled) as watch:
        for leftover in sweep_leftovers():
            watch.say(f"spindle: {leftover.line}")
        for line in interrupted():
            watch.say(f"spindle: {line}")
        yield watch
