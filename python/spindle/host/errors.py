"""What can be wrong with a target. Each text is one line: what, where, what to do."""

from __future__ import annotations


class TargetError(Exception):
    """The target cannot be used: missing, of the wrong kind, full, no right, gone."""

    exit_code = 1


class NoCapture(TargetError):
    """What was named as a capture is not there or is none: bad input, as any file that cannot be read."""

    exit_code = 2


class Refused(TargetError):
    """Refused for safety: going on could destroy data."""

    exit_code = 3


class Held(Refused):
    """Some program that is not known holds the device: it may let go again."""


def reason(error: OSError) -> str:
    """The system's words for an error, in lower case and without the number."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
