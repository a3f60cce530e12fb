"""The completion log of a run; its file gets its name when the run is over."""

from __future__ import annotations

from collections.abc import Callable

from spindle.host.outputs import Output
from spindle.run.load import LoadWrapper, RunningLoad


class LoggedLoad(LoadWrapper):
    """A load whose completions go to a file; the core writes to its descriptor."""

    def __init__(self, output: Output, start: Callable[[int], RunningLoad]) -> None:
        self._draft = output.draft()
        try:
            super().__init__(start(self._draft.file.fileno()))
        except BaseException:
            self._draft.drop()
            raise

    def figures(self) -> str:
        """See `RunningLoad`; the log is complete then."""
        with self._draft as draft:
            figures = self._load.figures()
            draft.commit()
        return figures


def logged(output: Output | None, start: Callable[[int | None], RunningLoad]) -> RunningLoad:
    """Start a load, with a log if there is a file for it."""
    return start(None) if output is None else LoggedLoad(output, start)
