"""A test file for the length of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spindle.host.testfile import TestFile
from spindle.result import units
from spindle.run.watch import Watch


@contextmanager
def own_file(place: Path, size_bytes: int, watch: Watch) -> Iterator[TestFile]:
    """Make it (`place` is a free name, or a folder), and remove it whatever happens."""
    what = f"writing a test file of {units.size(size_bytes)}"
    file = TestFile.create(place, size_bytes, on_progress=lambda done, total: watch.portion(what, done, total))
    try:
        yield file
    finally:
        left = file.remove()
        if left is not None:
            watch.say(f"spindle: {left}")
