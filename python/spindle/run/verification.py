"""Verification of written blocks: reading back after a load, and saving the expected state."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from spindle import _core
from spindle.base import units
from spindle.host.errors import TargetError
from spindle.host.guard import OpenTarget, StreamAccess, open_target
from spindle.host.outputs import Output
from spindle.host.signals import Stopped
from spindle.result.figures import ReadBack, read_back_from_json
from spindle.result.verification import StateCheck
from spindle.run.errors import Usage
from spindle.run.watch import Watch

POLL_S = 0.1
File = tuple[int, int, int, int]
"""A file in `_core.Run`'s form."""


def read_back(written: _core.ExpectedContent, watch: Watch, files: Sequence[File] | None = None) -> ReadBack:
    """Read everything back; on request it stops regularly, with the findings up to then."""
    reading = written.read_back(files)
    try:
        while not reading.wait(POLL_S):
            progress = msgspec.json.decode(reading.progress())
            wrong = f", {units.count(progress['faults'])} wrong" if progress["faults"] else ""
            watch.portion(f"reading back{wrong}", progress["done"], progress["total"])
    except Stopped:
        reading.stop()
        watch.step("stopping")
        while not reading.wait(POLL_S):
            pass
    return read_back_from_json(reading.figures())


def keep_state(written: _core.ExpectedContent, place: str, output: Output) -> None:
    """Save the expected state of the file or device `place`, or of the files in that folder: complete or not at all,
    as a new file gets its name when complete.
    """
    # Files of sets are opened by name; a test file's descriptor has none.
    paths = [] if os.path.isdir(place) else [os.path.abspath(place)]
    output.save(written.to_state(paths))


def check_state(path: Path, asked: str | None, watch: Watch) -> StateCheck:
    """Check a target against the state that an earlier run saved. `asked`: the target, if its place has changed (of
    several files, their folder). Raises Usage, TargetError or `_core.RunError`.
    """
    try:
        written = _core.ExpectedContent.from_state(path.read_bytes())
    except OSError as error:
        raise Usage(f"`state=` {path}: {error.strerror}; give a file that `verify_state=` saved") from None
    except _core.ConfigError as error:
        raise Usage(f"`state=` {path}: {error}; give a file that `verify_state=` saved") from None
    places = _places(written, asked)
    files: list[File] = []
    opened = []
    try:
        for place, (_, size_bytes) in zip(places, written.files, strict=True):
            target = _open(place)
            opened.append(target)
            ((file,),) = target.engine_files()
            if file[1] < size_bytes:
                watch.say(f"spindle: {place} has {units.size(file[1])}, and had {units.size(size_bytes)} when written")
            files.append(file)
        found = read_back(written, watch, files)
    finally:
        for target in opened:
            target.close()
    return StateCheck(
        target=asked or ", ".join(places),
        state=str(path),
        run=written.run,
        block_bytes=written.block_bytes,
        read_back=found,
    )


def _places(written: _core.ExpectedContent, asked: str | None) -> list[str]:
    then = [path for path, _ in written.files]
    if asked is None:
        return then
    if not Path(asked).is_dir():
        if len(then) == 1:
            return [asked]
        raise Usage(f"{asked}: the state has {len(then)} files; name their folder")
    root = os.path.commonpath([os.path.dirname(path) for path in then])
    folder = Path(asked)
    if (folder / Path(root).name).is_dir():  # the folder of all sets, if only one of them was verified
        folder /= Path(root).name
    return [str(folder / os.path.relpath(path, root)) for path in then]


def _open(place: str) -> OpenTarget:
    if not os.path.exists(place):
        raise Usage(
            f"{place}: does not exist; name the target as it is called now: `spindle verify TARGET` with `state=FILE`"
        )
    try:
        return open_target(place, [StreamAccess(write=False, direct=True)])
    except TargetError as error:
        if "`direct=False`" not in str(error):
            raise
        return open_target(place, [StreamAccess(write=False, direct=False)])
