"""What can go wrong around a run, besides the target (host) and the workload (core). Each text is one line."""

from __future__ import annotations

from spindle.base.errors import SpindleError


class RunFailed(SpindleError):
    """The run could not be carried out."""


class Usage(SpindleError):
    """What was asked for does not fit together."""

    exit_code = 2
