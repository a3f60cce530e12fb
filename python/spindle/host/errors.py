"""Errors of a target. Each text is one line: what, where, what to do."""

from __future__ import annotations

import errno

from spindle.base.errors import SpindleError


class TargetError(SpindleError):
    """The target cannot be used: full, no permission, gone, an I/O error."""


class WrongTarget(TargetError):
    """The name is not a target: it does not exist, or is of a kind that cannot be one. The command line is wrong."""

    exit_code = 2


class NoCapture(WrongTarget):
    """The name is not a capture, or does not exist."""


class Refusal(TargetError):
    """Refusal for safety: going on could destroy data."""

    exit_code = 3


class DeviceHeld(Refusal):
    """An unknown program holds the device; it may release it soon."""


_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


def not_found(path: object, error: OSError | ValueError, hint: str = "") -> TargetError:
    """The error for a target that cannot be looked up. ValueError: the name contains a zero byte."""
    is_wrong = isinstance(error, ValueError) or error.errno in _NOT_THERE
    text = str(error) if isinstance(error, ValueError) else reason(error)
    return (WrongTarget if is_wrong else TargetError)(f"{path}: {text}{hint}")


def reason(error: OSError) -> str:
    """The system's text of an error, in lower case and without the number."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
