"""Errors of a run, besides those of the target (host) and the workload (core). Each text is one line."""

from __future__ import annotations

from spindle.base.errors import SpindleError


class RunFailed(SpindleError):
    """The run failed."""


class Usage(SpindleError):
    """The arguments do not fit together."""

    exit_code = 2
