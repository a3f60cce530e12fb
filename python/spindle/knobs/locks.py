"""One Spindle at a time: a lock for each device, and one each for virtual memory, md, CPUs and interrupts.

The lock (flock) ends with its process, however that ends. The file names the process.
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

from spindle.host.durably import sync_folder
from spindle.host.errors import reason
from spindle.host.register import state_folder
from spindle.host.trusted import UntrustedFile, check_folder, make_folder

from .errors import KnobRefusal


def folder() -> Path:
    """Folder of journal and locks. One for the whole machine, as there is one kernel; `sudo` with root's home or the
    user's makes no difference. XDG_STATE_HOME overrides it."""
    if os.path.isabs(os.environ.get("XDG_STATE_HOME", "")) or os.geteuid() != 0:
        return state_folder() / "knobs"
    return Path("/var/lib/spindle/knobs")


def made_folder() -> Path:
    """The folder, created if needed, writable for nobody else: its content is written to the kernel."""
    place = folder()
    try:
        made = make_folder(place)
        check_folder(place)
        for one in made:
            sync_folder(one.parent)
    except UntrustedFile as error:
        raise KnobRefusal(f"{error}; {place} keeps the journal of changes, nothing was changed") from None
    except OSError as error:
        raise KnobRefusal(
            f"{place}: the journal of changes cannot be kept: {reason(error)}; nothing was changed, "
            "set XDG_STATE_HOME to a folder of yours"
        ) from None
    return place


class Locks:
    """Several locks, held together."""

    def __init__(self) -> None:
        self._held: dict[str, IO[bytes]] = {}

    def take(self, wanted: dict[str, str]) -> None:
        """Take all of them (lock -> name for people) or none. Raises KnobRefusal."""
        taken: list[str] = []
        for lock in sorted(wanted):
            if lock in self._held:
                continue
            if not self.try_one(lock):
                for one in taken:
                    self._held.pop(one).close()
                raise KnobRefusal(
                    f"{wanted[lock]}: another spindle is changing it ({holder(lock)}); nothing was changed, "
                    "wait until it has ended"
                )
            taken.append(lock)

    def try_one(self, lock: str) -> bool:
        """Take one lock. Return False if another process has it."""
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
        """Release all. The files stay: if one were removed while somebody waits for it, there would be two locks."""
        for file in self._held.values():
            file.close()
        self._held.clear()


def holder(lock: str) -> str:
    """The process that has the lock, in words."""
    try:
        said = json.loads((folder() / f"{lock}.lock").read_bytes())
        return f"process {int(said['pid'])}: `{said['command']}`"
    except (OSError, ValueError, KeyError, TypeError):
        return "its name is not known"


def command_line() -> str:
    """The command line of this process, cut to the length of a message."""
    words = shlex.join(["spindle", *sys.argv[1:]])
    return words if len(words) <= 100 else words[:97] + "..."
