"""The completion log of a run, which takes its name when the run is over."""

from __future__ import annotations

from collections.abc import Callable

from spindle.host.outputs import Output
from spindle.run.load import Forwarding, RunningLoad


class LoggedLoad(Forwarding):
    """A load whose completions go to a file; the core writes, to a descriptor that it is lent."""

    def __init__(self, output: Output, start: Callable[[int], RunningLoad]) -> None:
        self._draft = output.draft()
        try:
            super().__init__(start(self._draft.file.fileno()))
        except BaseException:
            self._draft.drop()
            raise

    def figures(self) -> str:
        """As `RunningLoad`; the log is in its place then."""
        with self._draft as draft:
            figures = self._load.figures()
            draft.commit()
        return figures


def logged(output: Output | None, start: Callable[[int | None], RunningLoad]) -> RunningLoad:
    """A load that has begun, with a log if a file for it is named."""
    return start(None) if output is None else LoggedLoad(output, start)
