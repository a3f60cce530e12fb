"""Test files for the length of a run: of a size that was asked for, or of the size that the caches ask for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from spindle.host.caches import known_caches
from spindle.host.errors import reason
from spindle.host.filling import Progress
from spindle.host.mounts import mount_of
from spindle.host.sizing import SizeRule, rule_of
from spindle.host.testfile import KEEP_FREE, TestFile
from spindle.host.testfiles import FilesWanted, TestFiles, TreeWanted, allow_open, words_of
from spindle.result import units
from spindle.result.workload import AutoFileSize, Workload
from spindle.run.errors import RunFailed
from spindle.run.preparation import devices_under_place
from spindle.run.resolve import Resolved
from spindle.run.watch import Watch

_T = TypeVar("_T", TestFile, TestFiles)

MIB = 1 << 20
LEAST_FILE_BYTES = 64 * MIB
"""A test file that is smaller tells too little."""
FULL_FILE_BYTES = 1 << 30
"""And one of this size is made even where no cache asks for it: small files make short seeks."""
_BLOCK = 4096
"""What a file of one byte takes."""
PROBE_S = 2.0
"""So long a file is written before it is told how long the rest will take: what comes first goes into a cache."""


@dataclass(frozen=True)
class Limits:
    """What a test file may take."""

    free_share: float
    """Of the free space."""
    seconds: float
    """To be written."""


OF_A_RUN = Limits(free_share=0.5, seconds=600.0)
OF_A_LOOK = Limits(free_share=0.1, seconds=15.0)


@dataclass(frozen=True)
class Sized:
    """A size that was chosen, and why not the one that the rule asks for."""

    rule: SizeRule
    wanted_bytes: int
    size_bytes: int
    limited_by: str | None = None
    """`space` or `time`; None: it is as large as the rule asks."""

    def to_dict(self) -> dict[str, Any]:
        """For the record."""
        return {
            "wanted_bytes": self.wanted_bytes,
            "size_bytes": self.size_bytes,
            "limited_by": self.limited_by,
            "safe_bytes": self.rule.safe_bytes,
        }


@contextmanager
def own_file(place: Path, size_bytes: int, watch: Watch) -> Iterator[TestFile]:
    """Make it (`place` is a free name, or a folder), and remove it whatever happens."""
    with _removed(_written(place, size_bytes, None, watch), watch) as file:
        yield file


@contextmanager
def sized_file(place: Path, spec: Workload, limits: Limits, watch: Watch) -> Iterator[tuple[TestFile, Sized]]:
    """The same, as large as the caches ask and space and time permit."""
    sized = _by_space(place, rule_at(place, spec), limits.free_share)
    try:
        file = _written(place, sized.size_bytes, limits.seconds, watch)
    except _TooSlow as slow:
        size = max(LEAST_FILE_BYTES, int(slow.bytes_per_s * limits.seconds)) // MIB * MIB
        sized = Sized(sized.rule, sized.wanted_bytes, min(size, sized.size_bytes), "time")
        file = _written(place, sized.size_bytes, None, watch)
    with _removed(file, watch):
        yield file, sized


@contextmanager
def own_files(
    place: Path, resolved: Resolved, limits: Limits, watch: Watch
) -> Iterator[tuple[TestFiles, Sized | None]]:
    """The files of the workload's sets, in a folder of Spindle's own in the folder `place`; removed whatever happens.
    Sets of `auto` size get what the caches ask for and space and time permit."""
    spec = resolved.spec
    is_auto = [isinstance(each.filesize, AutoFileSize) for each in spec.filesets]
    fixed = sum(sum(resolved.core.file_sizes(index, 0)) for index, auto in enumerate(is_auto) if not auto)
    sized = None
    if any(is_auto):
        sized = _by_space(place, rule_at(place, spec), limits.free_share, fixed)
    try:
        files = _files_written(place, resolved, sized, fixed, limits.seconds if sized else None, watch)
    except _TooSlow as slow:
        assert sized is not None  # only then it is timed
        size = max(LEAST_FILE_BYTES + fixed, int(slow.bytes_per_s * limits.seconds)) // MIB * MIB
        sized = Sized(sized.rule, sized.wanted_bytes, min(size, sized.size_bytes), "time")
        files = _files_written(place, resolved, sized, fixed, None, watch)
    with _removed(files, watch):
        yield files, sized


def _files_written(
    place: Path, resolved: Resolved, sized: Sized | None, fixed: int, budget_s: float | None, watch: Watch
) -> TestFiles:
    autos = sum(each.files for each in resolved.spec.filesets if isinstance(each.filesize, AutoFileSize))
    share = max(0, sized.size_bytes - fixed) // max(1, autos) if sized is not None else 0
    sets = [
        FilesWanted(each.name, resolved.core.file_sizes(index, share * each.files), each.fill)
        for index, each in enumerate(resolved.spec.filesets)
    ]
    _check_fit(resolved, {each.name: each.sizes for each in sets})
    allow_open(_opened(resolved.spec), str(place))
    told = _told(f"writing {words_of(sets)}", budget_s, watch)
    return TestFiles.create(place, sets, trees=trees_of(resolved.spec), on_progress=told)


def _opened(spec: Workload) -> int:
    """Descriptors that the streams need: those that want the same access to a set share them."""
    count = {each.name: each.files for each in spec.filesets}
    accesses = {
        (stream.files.set, stream.writes, stream.direct, stream.sync.dsync, stream.sync.osync)
        for stream in spec.all_streams
        if stream.files is not None
    }
    return sum(count[access[0]] for access in accesses)


def _check_fit(resolved: Resolved, sizes: dict[str, Sequence[int]]) -> None:
    """Whether the files suit the streams, before any is made. Raises `_core.ConfigError`."""
    for load in resolved.phases or [resolved]:
        block = 512 if any(stream.direct for stream in load.spec.streams) else 1
        load.core.check([list(sizes[each.files.set]) if each.files else [] for each in load.spec.streams], block)


@contextmanager
def _removed(file: _T, watch: Watch) -> Iterator[_T]:
    """At the end, whatever happens."""
    try:
        yield file
    finally:
        left = file.remove() if isinstance(file, TestFile) else file.remove(_removing(watch))
        if left is not None:
            watch.say(f"spindle: {left}")


def _removing(watch: Watch) -> Callable[[int], None]:
    return lambda removed: watch.step(f"removing names: {units.count(removed)}")


def rule_at(place: Path, spec: Workload) -> SizeRule:
    """What the caches ask for, for this load on a file there."""
    folder = place if place.is_dir() else place.absolute().parent
    devices = devices_under_place(folder)
    try:
        mount = mount_of(folder)
    except OSError:
        mount = None
    direct = all(stream.direct for stream in spec.all_streams)
    return rule_of(known_caches(devices), devices, direct=direct, file_system=mount.fs_type if mount else None)


class _TooSlow(Exception):
    """Writing the file would take too long."""

    def __init__(self, bytes_per_s: float) -> None:
        super().__init__()
        self.bytes_per_s = bytes_per_s


def _by_space(place: Path, rule: SizeRule, free_share: float, fixed: int = 0) -> Sized:
    """`fixed`: what is taken in any case, bytes."""
    folder = place if place.is_dir() else place.absolute().parent
    try:
        space = os.statvfs(folder)
    except OSError as error:
        raise RunFailed(f"{folder}: {reason(error)}; name a directory that exists") from None
    free = space.f_bavail * space.f_frsize
    room = int(min(free * free_share, free - space.f_blocks * space.f_frsize * KEEP_FREE)) // MIB * MIB
    wanted = max(FULL_FILE_BYTES, fixed + LEAST_FILE_BYTES, -(-rule.least_bytes // MIB) * MIB)
    if room < fixed + LEAST_FILE_BYTES:
        raise RunFailed(
            f"{folder.resolve()}: only {units.size(free)} free, a test file would take more than "
            f"{units.percent(free_share)} of it; name another directory, a file or a device"
        )
    return Sized(rule, wanted, min(wanted, room), "space" if room < wanted else None)


def _written(place: Path, size_bytes: int, budget_s: float | None, watch: Watch) -> TestFile:
    what = f"writing a test file of {units.size(size_bytes)}"
    return TestFile.create(place, size_bytes, on_progress=_told(what, budget_s, watch))


def _told(what: str, budget_s: float | None, watch: Watch) -> Progress:
    """Shows how far it is; raises `_TooSlow` when the rest would take too long."""
    begun = time.monotonic()

    def progress(done: int, total: int) -> None:
        watch.portion(what, done, total)
        passed = time.monotonic() - begun
        if budget_s is not None and passed > PROBE_S and passed * total / done > budget_s and total > LEAST_FILE_BYTES:
            raise _TooSlow(done / passed)

    return progress


def trees_of(spec: Workload) -> list[TreeWanted]:
    """Those of a workload; where several streams have one of a name, as large as any of them makes it."""
    trees: dict[str, TreeWanted] = {}
    for stream in spec.all_streams:
        if stream.names is None:
            continue
        tree = stream.names.tree
        owners = stream.workers if tree.each == "worker" else 1
        blocks = -(-tree.largest_file // _BLOCK) * _BLOCK
        found = TreeWanted(
            name=tree.name,
            files=owners * tree.files,
            largest_bytes=tree.largest_file,
            names=owners * (tree.files + tree.directories),
            data_bytes=owners * (tree.files * blocks + tree.directories * _BLOCK),
        )
        trees[tree.name] = found.or_larger(trees.get(tree.name, found))
    return list(trees.values())
