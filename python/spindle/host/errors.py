"""What can be wrong with a target. Each text is one line: what, where, what to do."""

from __future__ import annotations

import errno

from spindle.base.errors import SpindleError


class TargetError(SpindleError):
    """The target cannot be used: full, no right, gone, an I/O error."""


class WrongTarget(TargetError):
    """What was named is no target: it is not there, or of a kind that cannot be one. The command line is wrong."""

    exit_code = 2


class NoCapture(WrongTarget):
    """What was named as a capture is not there or is none."""


class Refused(TargetError):
    """Refused for safety: going on could destroy data."""

    exit_code = 3


class Held(Refused):
    """Some program that is not known holds the device: it may let go again."""


_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


def not_found(path: object, error: OSError | ValueError, hint: str = "") -> TargetError:
    """Why a named target cannot be looked up. ValueError: the name holds a zero byte."""
    is_wrong = isinstance(error, ValueError) or error.errno in _NOT_THERE
    text = str(error) if isinstance(error, ValueError) else reason(error)
    return (WrongTarget if is_wrong else TargetError)(f"{path}: {text}{hint}")


def reason(error: OSError) -> str:
    """The system's words for an error, in lower case and without the number."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
