"""Trees of files for metadata operations: brings them to the state that an operation needs before it is measured.

A tree begins as an empty folder. The engine does the steps that a load does not do itself, uncounted: it makes
directories before files are made in them, and files before they are opened.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import IntEnum
from types import TracebackType

from spindle import _core
from spindle.host.folder import make_tree
from spindle.result.figures import EndedByRequests, Figures, figures_from_json
from spindle.result.workload import Names, Workload, WorkloadStream
from spindle.run.errors import RunFailed
from spindle.run.watch import Watch


class State(IntEnum):
    """The content of a tree."""

    NOTHING = 0
    DIRECTORIES = 1
    FILES = 2


NEEDS = {
    "mkdir": State.NOTHING,
    "create": State.DIRECTORIES,
    "rmdir": State.DIRECTORIES,
    "readdir": State.FILES,
    "open": State.FILES,
    "stat": State.FILES,
    "rename": State.FILES,
    "unlink": State.FILES,
}
LEAVES = {
    "mkdir": State.DIRECTORIES,
    "create": State.FILES,
    "unlink": State.DIRECTORIES,
    "rmdir": State.NOTHING,
}
"""Operations that change the state."""
MAKES = {State.DIRECTORIES: "mkdir", State.FILES: "create"}

EngineFile = tuple[int, int, int, int]


@dataclass
class _Tree:
    """One tree."""

    fd: int
    state: State = State.NOTHING
    cut_short: str | None = None
    """The reason for an unknown state."""


@dataclass
class Trees:
    """The trees of a workload, in a folder of Spindle's own. The folder's owner removes them."""

    folder: int
    """Its descriptor."""
    _trees: dict[str, _Tree] = field(default_factory=dict)

    def engine_file(self, names: Names) -> EngineFile:
        """The file of the engine: the tree's folder."""
        return (self._of(names).fd, 0, 1, 1)

    def get_ready(self, core: _core.Workload, spec: Workload, watch: Watch) -> None:
        """Before a load: bring each tree to the state that its operation needs. Raises RunFailed."""
        for index, stream in enumerate(spec.streams):
            if stream.names is None:
                continue
            tree = self._of(stream.names)
            needed = NEEDS[stream.names.operation]
            if tree.cut_short is not None:
                raise RunFailed(f"{stream.names.operation} of the tree {stream.names.tree.name}: {tree.cut_short}")
            if tree.state > needed:
                raise RunFailed(
                    f"{stream.names.operation} of the tree {stream.names.tree.name}: it exists already; "
                    "an unlink and an rmdir come first"
                )
            while tree.state < needed:
                wanted = State(tree.state + 1)
                watch.step(f"making a tree: {MAKES[wanted]}")
                self._make(core, index, stream, MAKES[wanted])
                tree.state = wanted

    def is_done(self, spec: Workload, figures: Figures) -> None:
        """After a load: note the new states."""
        for stream, done in zip(spec.streams, figures.streams, strict=True):
            if stream.names is None or stream.names.operation not in LEAVES:
                continue
            tree = self._of(stream.names)
            names = stream.names
            count = _count(stream, names)
            op = getattr(done, names.operation)
            made = (op.requests if op is not None else 0) + done.late.requests
            if isinstance(figures.ended_by, EndedByRequests) and made >= count:
                tree.state = LEAVES[names.operation]
            else:
                tree.cut_short = (
                    f"its {names.operation} was over after {made} of {count} names; "
                    "let it do all of them, or set fewer nrfiles"
                )

    def _make(self, core: _core.Workload, index: int, stream: WorkloadStream, operation: str) -> None:
        assert stream.names is not None
        load = core.only_names(index, operation)
        run = _core.Run(load, [[self.engine_file(stream.names)]])
        try:
            while not run.wait(0.2):
                pass
        except BaseException:
            run.stop()
            run.wait(60.0)
            raise
        figures = figures_from_json(run.figures())
        if not isinstance(figures.ended_by, EndedByRequests):
            first = next((error for each in figures.streams for error in each.errors), None)
            why = os.strerror(first.errno) if first is not None else "it was stopped"
            raise RunFailed(f"the tree {stream.names.tree.name} could not be made: {operation}: {why}")

    def _of(self, names: Names) -> _Tree:
        name = names.tree.name
        if name not in self._trees:
            self._trees[name] = _Tree(make_tree(self.folder, name))
        return self._trees[name]

    def close(self) -> None:
        """Close the folders."""
        for tree in self._trees.values():
            os.close(tree.fd)
        self._trees.clear()

    def __enter__(self) -> Trees:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _count(stream: WorkloadStream, names: Names) -> int:
    tree = names.tree
    each = tree.directories if names.on_directories else tree.files
    return each * (stream.workers if tree.each == "worker" else 1)
