"""What can go wrong around a run, besides the target (host) and the workload (core). Each text is one line."""

from __future__ import annotations


class RunFailed(Exception):
    """The run could not be carried out."""


class Usage(Exception):
    """What was asked for does not fit together."""
