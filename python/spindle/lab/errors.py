"""Errors of the lab. Each text is one line: what, where, what to do."""

from __future__ import annotations

from spindle.base.errors import SpindleError


class LabError(SpindleError):
    """The lab cannot be built or run."""


class LabMissing(LabError):
    """Something that the lab needs is not installed or not built; the text says how to get it."""

    exit_code = 2
