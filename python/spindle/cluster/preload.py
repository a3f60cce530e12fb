"""Loaded by Dask into each worker of `workers=`: a Ctrl-C at the terminal is for the client, which ends its workers."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Called by Dask on the main thread when the worker begins."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
