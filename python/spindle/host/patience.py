"""Retries, with growing pauses and for a bounded time, of calls that fail because something is busy for a moment.

A program that lists open files (lsof, fuser, another spindle), probes a device (udev, lvm) or ends with requests in
flight keeps a file system or a device busy for milliseconds to seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0)

T = TypeVar("T")


class ResourceBusy(Exception):
    """Something is in use; the text names it and its users, as far as they can be seen."""


def patiently(attempt: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """Call `attempt` until it no longer raises `ResourceBusy`. Raises the last one, with the spent time."""
    for pause in PAUSES_S:
        try:
            return attempt()
        except ResourceBusy:
            sleep(pause)
    try:
        return attempt()
    except ResourceBusy as busy:
        raise ResourceBusy(f"{busy} (tried for {sum(PAUSES_S):.0f} s)") from None
