"""Files that Spindle obeys: read only if nobody but their owner, whom we trust, could have written them.

What a state file says is carried out with our rights: values written to the kernel, files removed, commands run. So it
must be an ordinary file of our own, under one name, that nobody else may write to, in folders where nobody else can
put another in its place (as sshd does with StrictModes).

Files that a person chose (a store whose campaign goes on, a profile) may also be root's or, under sudo, of the user who
called it: that user may carry out commands as root anyway.
"""

from __future__ import annotations

import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .errors import Refused

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # as the kernel follows (MAXSYMLINKS)


class Untrusted(Refused):
    """Somebody else could have written it; the text says why and what to do."""


@dataclass(frozen=True)
class _Rule:
    """Who may have written a file."""

    owners: frozenset[int]
    own_group: bool
    """May the group write that is its owner's only by custom (it has the owner's number)?"""


def _of_state() -> _Rule:
    return _Rule(frozenset({os.geteuid()}), own_group=False)


def _of_chosen() -> _Rule:
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return _Rule(frozenset({0, os.geteuid(), *([int(caller)] if caller.isdecimal() else [])}), own_group=True)


def open_own(path: Path, *, appending: bool = False) -> int:
    """Open a file that is obeyed, to read it, or to add to it as well. Raises Untrusted, or OSError where that cannot
    be done."""
    return _open(path, appending, _of_state())


def _open(path: Path, appending: bool, rule: _Rule) -> int:
    if path.is_symlink():
        raise Untrusted(
            f"{path}: is a symbolic link and is not followed; put the file itself there, or remove the link"
        )
    # O_NONBLOCK: a pipe put there must not make us wait.
    flags = os.O_RDWR if appending else os.O_RDONLY
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if (why := _distrusted(os.fstat(fd), rule)) is not None:
        os.close(fd)
        raise Untrusted(f"{path}: {why}")
    return fd


def new_own(path: Path) -> int:
    """Make a file that will be obeyed: nobody else may write to it, whatever the umask is. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def read_own(path: Path) -> bytes:
    """The content of a file that is obeyed. Raises Untrusted or OSError."""
    with open(open_own(path), "rb") as file:
        return file.read()


def check_chosen(path: Path) -> None:
    """A file that a person chose to be obeyed: nobody whom we do not trust can write to it or exchange it. Raises
    Untrusted or OSError."""
    os.close(_open_chosen(path))


def read_chosen(path: Path) -> bytes:
    """The content of such a file. Raises Untrusted or OSError."""
    with open(_open_chosen(path), "rb") as file:
        return file.read()


def _open_chosen(path: Path) -> int:
    rule = _of_chosen()
    _check_way(path.parent, rule)
    return _open(path, False, rule)


def make_folder(path: Path) -> list[Path]:
    """Make a folder for such files, and those above it that are missing, for us alone whatever the umask is. Returns
    those made, the lowest first. Raises OSError."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            os.mkdir(one, 0o700)
    return missing


def check_folder(path: Path) -> None:
    """Nobody but us and root can put a file into it, or another folder in its place. Raises Untrusted or OSError."""
    _check_way(path, _of_state())


def _check_way(path: Path, rule: _Rule) -> None:
    here = Path("/")
    left = list(path.absolute().parts[1:])
    links = 0
    while left:
        name = left.pop(0)
        if name == "..":
            here = here.parent
            continue
        here = here / name
        status = os.lstat(here)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if status.st_uid not in rule.owners | {0} or links > _MOST_LINKS:
                raise Untrusted(f"{here}: is a symbolic link of {_who(status.st_uid)}; name a folder of your own")
            target = Path(os.readlink(here))
            here = Path("/") if target.is_absolute() else here.parent
            left = [*(target.parts[1:] if target.is_absolute() else target.parts), *left]
        elif (why := _open_to_others(status, rule, is_last=not left)) is not None:
            raise Untrusted(f"{here}: {why}")


def _open_to_others(status: os.stat_result, rule: _Rule, is_last: bool) -> str | None:
    cure = "make the folder your own (chown, chmod go-w)"
    if status.st_uid not in (rule.owners if is_last else rule.owners | {0}):
        return f"belongs to {_who(status.st_uid)}; {cure}"
    others = status.st_mode & _OTHERS
    if not is_last and status.st_mode & stat.S_ISVTX:
        return None
    if (not is_last or rule.own_group) and _is_own_group(status, rule):
        return None
    return f"others may write to it; {cure}" if others else None


def _is_own_group(status: os.stat_result, rule: _Rule) -> bool:
    """Only a group may write that nobody but an owner we trust is in by custom: it has that owner's number."""
    return status.st_mode & _OTHERS == stat.S_IWGRP and status.st_gid == status.st_uid in rule.owners


def _distrusted(status: os.stat_result, rule: _Rule) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file; remove it"
    if status.st_uid not in rule.owners:
        return (
            f"belongs to {_who(status.st_uid)} and is not obeyed; have its owner see to it, or remove it if "
            "nobody needs it"
        )
    if status.st_mode & _OTHERS and not (rule.own_group and _is_own_group(status, rule)):
        return "others may write to it, so it is not obeyed; look at it, then `chmod go-w` it or remove it"
    if status.st_nlink > 1:
        return "has other names (hard links), so it is not obeyed; look at it, then remove these or it"
    return None


def _who(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user number {uid}, who is not known here"
