"""Temporary test files for a run: of the requested size, or of the size that the caches require."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from spindle.base import units
from spindle.conditions.caches import known_caches
from spindle.conditions.sizing import SizeRule, rule_of
from spindle.host.errors import reason
from spindle.host.filling import Progress
from spindle.host.mounts import mount_of
from spindle.host.testfile import KEEP_FREE, TestFile
from spindle.host.testfiles import FileSetSpec, TestFiles, TreeSpec, allow_open, words_of
from spindle.result.workload import AutoFileSize, Workload
from spindle.run.errors import RunFailed
from spindle.run.preparation import devices_under_place
from spindle.run.resolve import ResolvedWorkload
from spindle.run.watch import Watch

_T = TypeVar("_T", TestFile, TestFiles)

MIB = 1 << 20
LEAST_FILE_BYTES = 64 * MIB
"""A smaller test file gives meaningless figures."""
FULL_FILE_BYTES = 1 << 30
"""Default size without relevant caches: small files make short seeks."""
_BLOCK = 4096
"""Space of a file of one byte."""
PROBE_S = 2.0
"""Writing time before the first estimate: the first bytes go into a cache."""


@dataclass(frozen=True)
class Limits:
    """Limits of a test file."""

    free_share: float
    """Share of the free space."""
    seconds: float
    """Time to write it."""


OF_A_RUN = Limits(free_share=0.5, seconds=600.0)
OF_A_LOOK = Limits(free_share=0.1, seconds=15.0)


@dataclass(frozen=True)
class ChosenSize:
    """A chosen size, and the reason if it is smaller than the rule's."""

    rule: SizeRule
    wanted_bytes: int
    size_bytes: int
    limited_by: str | None = None
    """`space` or `time`; None: the full size of the rule."""

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
    """Make a file (`place` is an unused name, or a folder), and always remove it at the end."""
    with _removed(_written(place, size_bytes, None, watch), watch) as file:
        yield file


@contextmanager
def sized_file(place: Path, spec: Workload, limits: Limits, watch: Watch) -> Iterator[tuple[TestFile, ChosenSize]]:
    """Make and remove a file of the size that the caches require, as far as space and time permit."""
    sized = _by_space(place, rule_at(place, spec), limits.free_share)
    try:
        file = _written(place, sized.size_bytes, limits.seconds, watch)
    except _TooSlow as slow:
        size = max(LEAST_FILE_BYTES, int(slow.bytes_per_s * limits.seconds)) // MIB * MIB
        sized = ChosenSize(sized.rule, sized.wanted_bytes, min(size, sized.size_bytes), "time")
        file = _written(place, sized.size_bytes, None, watch)
    with _removed(file, watch):
        yield file, sized


@contextmanager
def own_files(
    place: Path, resolved: ResolvedWorkload, limits: Limits, watch: Watch
) -> Iterator[tuple[TestFiles, ChosenSize | None]]:
    """The files of the workload's sets, in a folder of Spindle's own in the folder `place`; always removed at the
    end. Sets of `auto` size get the size that the caches require, as far as space and time permit.
    """
    spec = resolved.spec
    is_auto = [isinstance(each.filesize, AutoFileSize) for each in spec.filesets]
    fixed = sum(sum(resolved.core.file_sizes(index, 0)) for index, auto in enumerate(is_auto) if not auto)
    sized = None
    if any(is_auto):
        sized = _by_space(place, rule_at(place, spec), limits.free_share, fixed)
    try:
        files = _files_written(place, resolved, sized, fixed, limits.seconds if sized else None, watch)
    except _TooSlow as slow:
        assert sized is not None  # only such a set is timed
        size = max(LEAST_FILE_BYTES + fixed, int(slow.bytes_per_s * limits.seconds)) // MIB * MIB
        sized = ChosenSize(sized.rule, sized.wanted_bytes, min(size, sized.size_bytes), "time")
        files = _files_written(place, resolved, sized, fixed, None, watch)
    with _removed(files, watch):
        yield files, sized


def _files_written(
    place: Path, resolved: ResolvedWorkload, sized: ChosenSize | None, fixed: int, budget_s: float | None, watch: Watch
) -> TestFiles:
    autos = sum(each.files for each in resolved.spec.filesets if isinstance(each.filesize, AutoFileSize))
    share = max(0, sized.size_bytes - fixed) // max(1, autos) if sized is not None else 0
    sets = [
        FileSetSpec(each.name, resolved.core.file_sizes(index, share * each.files), each.fill)
        for index, each in enumerate(resolved.spec.filesets)
    ]
    _check_fit(resolved, {each.name: each.sizes for each in sets})
    allow_open(_opened(resolved.spec), str(place))
    progress = _progress(f"writing {words_of(sets)}", budget_s, watch)
    return TestFiles.create(place, sets, trees=trees_of(resolved.spec), on_progress=progress)


def _opened(spec: Workload) -> int:
    """File descriptors that the streams need: streams with the same access to a set share them."""
    count = {each.name: each.files for each in spec.filesets}
    accesses = {
        (stream.files.set, stream.writes, stream.direct, stream.sync.dsync, stream.sync.osync)
        for stream in spec.all_streams
        if stream.files is not None
    }
    return sum(count[access[0]] for access in accesses)


def _check_fit(resolved: ResolvedWorkload, sizes: dict[str, Sequence[int]]) -> None:
    """Check that the files suit the streams, before any is made. Raises `_core.ConfigError`."""
    for load in resolved.phases or [resolved]:
        block = 512 if any(stream.direct for stream in load.spec.streams) else 1
        load.core.check([list(sizes[each.files.set]) if each.files else [] for each in load.spec.streams], block)


@contextmanager
def _removed(file: _T, watch: Watch) -> Iterator[_T]:
    """Remove the file at the end, whatever happens."""
    try:
        yield file
    finally:
        left = file.remove() if isinstance(file, TestFile) else file.remove(_removing(watch))
        if left is not None:
            watch.say(f"spindle: {left}")


def _removing(watch: Watch) -> Callable[[int], None]:
    return lambda removed: watch.step(f"removing names: {units.count(removed)}")


def rule_at(place: Path, spec: Workload) -> SizeRule:
    """The size that the caches require for this load on a file there."""
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


def _by_space(place: Path, rule: SizeRule, free_share: float, fixed: int = 0) -> ChosenSize:
    """`fixed`: bytes that are needed in any case."""
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
    return ChosenSize(rule, wanted, min(wanted, room), "space" if room < wanted else None)


def _written(place: Path, size_bytes: int, budget_s: float | None, watch: Watch) -> TestFile:
    what = f"writing a test file of {units.size(size_bytes)}"
    return TestFile.create(place, size_bytes, on_progress=_progress(what, budget_s, watch))


def _progress(what: str, budget_s: float | None, watch: Watch) -> Progress:
    """Shows progress; raises `_TooSlow` if the rest would take too long."""
    begun = time.monotonic()

    def progress(done: int, total: int) -> None:
        watch.portion(what, done, total)
        passed = time.monotonic() - begun
        if budget_s is not None and passed > PROBE_S and passed * total / done > budget_s and total > LEAST_FILE_BYTES:
            raise _TooSlow(done / passed)

    return progress


def trees_of(spec: Workload) -> list[TreeSpec]:
    """The trees of a workload; if several streams share one, the largest of their sizes."""
    trees: dict[str, TreeSpec] = {}
    for stream in spec.all_streams:
        if stream.names is None:
            continue
        tree = stream.names.tree
        owners = stream.workers if tree.each == "worker" else 1
        blocks = -(-tree.largest_file // _BLOCK) * _BLOCK
        found = TreeSpec(
            name=tree.name,
            files=owners * tree.files,
            largest_bytes=tree.largest_file,
            names=owners * (tree.files + tree.directories),
            data_bytes=owners * (tree.files * blocks + tree.directories * _BLOCK),
        )
        trees[tree.name] = found.or_larger(trees.get(tree.name, found))
    return list(trees.values())
