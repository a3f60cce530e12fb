"""What can go wrong with a store. Each text is one line: what, where, what to do."""

from __future__ import annotations

from spindle.base.errors import SpindleError


class StoreError(SpindleError):
    """The store could not do it: damaged, full, server gone."""


class StoreUsage(StoreError):
    """What was asked for is wrong: no such store, run, tag or campaign."""

    exit_code = 2


class StoreRefused(StoreError):
    """Refused: something would be lost, or another process is at it."""

    exit_code = 3
