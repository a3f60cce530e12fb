"""One Spindle at a time: a lock for each device, and one each for virtual memory, md, CPUs and interrupts.

The lock (flock) ends with the process that holds it, however it ends. The file says who that is.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import IO

from ..durably import sync_folder
from ..errors import reason
from ..register import state_folder
from ..trusted import Untrusted, check_folder, make_folder
from .errors import KnobRefused


def folder() -> Path:
    """Where journal and locks are. One for the machine, whichever home `sudo` leaves root with, as there is one kernel
    to fight over; a folder that is named wins."""
    if os.path.isabs(os.environ.get("XDG_STATE_HOME", "")) or os.geteuid() != 0:
        return state_folder() / "knobs"
    return Path("/var/lib/spindle/knobs")


def made_folder() -> Path:
    """The same, made if need be, and nobody's but ours: what it says is written to the kernel."""
    place = folder()
    try:
        made = make_folder(place)
        check_folder(place)
        for one in made:
            sync_folder(one.parent)
    except Untrusted as error:
        raise KnobRefused(f"{error}; {place} keeps the journal of changes, nothing was changed") from None
    except OSError as error:
        raise KnobRefused(
            f"{place}: the journal of changes cannot be kept: {reason(error)}; nothing was changed, "
            "set XDG_STATE_HOME to a folder of yours"
        ) from None
    return place


class Locks:
    """Some locks, held together."""

    def __init__(self) -> None:
        self._held: dict[str, IO[bytes]] = {}

    def take(self, wanted: dict[str, str]) -> None:
        """All of them (lock -> what people call it) or none. Raises KnobRefused."""
        taken: list[str] = []
        for lock in sorted(wanted):
            if lock in self._held:
                continue
            if not self.try_one(lock):
                for one in taken:
                    self._held.pop(one).close()
                raise KnobRefused(
                    f"{wanted[lock]}: another spindle is changing it ({holder(lock)}); nothing was changed, "
                    "wait until it has ended"
                )
            taken.append(lock)

    def try_one(self, lock: str) -> bool:
        """Whether it could be had."""
        if lock in self._held:
            return True
        file = (made_folder() / f"{lock}.lock").open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        file.truncate(0)
        said = {"pid": os.getpid(), "command": command_line(), "since": int(time.time())}
        file.write(json.dumps(said).encode())
        file.flush()
        self._held[lock] = file
        return True

    def release(self) -> None:
        """All of them. The files stay: to remove one that somebody waits for would make two of it."""
        for file in self._held.values():
            file.close()
        self._held.clear()


def holder(lock: str) -> str:
    """Who holds it, in words."""
    try:
        said = json.loads((folder() / f"{lock}.lock").read_bytes())
        return f"process {int(said['pid'])}: `{said['command']}`"
    except (OSError, ValueError, KeyError, TypeError):
        return "its name is not known"


def command_line() -> str:
    """This process as it was called, not longer than a message can bear."""
    words = shlex.join(["spindle", *sys.argv[1:]])
    return words if len(words) <= 100 else words[:97] + "..."
