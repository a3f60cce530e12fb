"""Errors of the store. Each text is one line: the object, the problem, the remedy."""

from __future__ import annotations

from spindle.base.errors import SpindleError


class StoreError(SpindleError):
    """The store failed: damaged, full, server gone."""


class StoreUsage(StoreError):
    """The request is wrong: no such store, run, tag or campaign."""

    exit_code = 2


class StoreRefused(StoreError):
    """Refused: something would be lost, or another process uses it."""

    exit_code = 3
