"""Files that Spindle obeys: they are read only if nobody but a trusted owner could have written them.

Instructions in a state file are carried out with our permissions: values written to the kernel, files removed, commands
run. So it must be an ordinary file of our own, with one name, that nobody else may write to, in folders where nobody
else can replace it (as sshd requires with StrictModes).

Files that a person chose (a store whose campaign continues, a profile) may also belong to root or, under sudo, to the
user who called it: that user may run commands as root anyway.
"""

from __future__ import annotations

import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .errors import Refusal

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # as the kernel follows (MAXSYMLINKS)


class UntrustedFile(Refusal):
    """Somebody else could have written the file; the text says why and what to do."""


@dataclass(frozen=True)
class _Rule:
    """The owners that may have written a file."""

    owners: frozenset[int]
    own_group: bool
    """True if the owner's private group (same number as the owner) may write."""


def _of_state() -> _Rule:
    return _Rule(frozenset({os.geteuid()}), own_group=False)


def _of_chosen() -> _Rule:
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return _Rule(frozenset({0, os.geteuid(), *([int(caller)] if caller.isdecimal() else [])}), own_group=True)


def open_own(path: Path, *, appending: bool = False) -> int:
    """Open an obeyed file to read it, or to append to it as well. Raises UntrustedFile, or OSError."""
    return _open(path, os.O_RDWR if appending else os.O_RDONLY, _of_state())


def _open(path: Path, access: int, rule: _Rule) -> int:
    if path.is_symlink():
        raise UntrustedFile(
            f"{path}: is a symbolic link and is not followed; put the file itself there, or remove the link"
        )
    # O_NONBLOCK: a pipe at that path must not block us.
    fd = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if (why := _distrusted(os.fstat(fd), rule)) is not None:
        os.close(fd)
        raise UntrustedFile(f"{path}: {why}")
    return fd


def new_own(path: Path) -> int:
    """Make a file that will be obeyed: nobody else may write to it, whatever the umask. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def read_own(path: Path) -> bytes:
    """Content of an obeyed file. Raises UntrustedFile or OSError."""
    with open(open_own(path), "rb") as file:
        return file.read()


def check_chosen(path: Path) -> None:
    """Check a file that a person chose to be obeyed: only trusted users can write to it or replace it. The locks that
    this process has on it stay (`O_PATH`; closing any other descriptor drops them, fcntl_locking(2)). Raises
    UntrustedFile or OSError.
    """
    rule = _of_chosen()
    _check_way(path.parent, rule)
    os.close(_open(path, os.O_PATH, rule))


def read_chosen(path: Path) -> bytes:
    """Content of such a file. Raises UntrustedFile or OSError."""
    rule = _of_chosen()
    _check_way(path.parent, rule)
    with open(_open(path, os.O_RDONLY, rule), "rb") as file:
        return file.read()


def make_folder(path: Path) -> list[Path]:
    """Make a folder for such files, and missing parents, private to us whatever the umask. Returns the folders made,
    the lowest first. Raises OSError."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):  # another process made it first
            os.mkdir(one, 0o700)
    return missing


def check_folder(path: Path) -> None:
    """Check that only we and root can put a file into it, or replace it. Raises UntrustedFile or OSError."""
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
                raise UntrustedFile(f"{here}: is a symbolic link of {_who(status.st_uid)}; name a folder of your own")
            target = Path(os.readlink(here))
            here = Path("/") if target.is_absolute() else here.parent
            left = [*(target.parts[1:] if target.is_absolute() else target.parts), *left]
        elif (why := _open_to_others(status, rule, is_last=not left)) is not None:
            raise UntrustedFile(f"{here}: {why}")


def _open_to_others(status: os.stat_result, rule: _Rule, is_last: bool) -> str | None:
    cure = "change its owner to yourself (chown, chmod go-w)"
    if status.st_uid not in (rule.owners if is_last else rule.owners | {0}):
        return f"belongs to {_who(status.st_uid)}; {cure}"
    others = status.st_mode & _OTHERS
    if not is_last and status.st_mode & stat.S_ISVTX:
        return None
    if (not is_last or rule.own_group) and _is_own_group(status, rule):
        return None
    return f"others may write to it; {cure}" if others else None


def _is_own_group(status: os.stat_result, rule: _Rule) -> bool:
    """True if the only group that may write has the number of a trusted owner, so it has no other members by custom."""
    return status.st_mode & _OTHERS == stat.S_IWGRP and status.st_gid == status.st_uid in rule.owners


def _distrusted(status: os.stat_result, rule: _Rule) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file; remove it"
    if status.st_uid not in rule.owners:
        return f"belongs to {_who(status.st_uid)} and is not obeyed; ask its owner, or remove it if nobody needs it"
    if status.st_mode & _OTHERS and not (rule.own_group and _is_own_group(status, rule)):
        return "others may write to it, so it is not obeyed; check it, then `chmod go-w` it or remove it"
    if status.st_nlink > 1:
        return "has other names (hard links), so it is not obeyed; check it, then remove these or it"
    return None


def _who(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user number {uid}, who is not known here"
