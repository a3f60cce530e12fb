"""A command for whose time knobs are turned: it gets our signals, and we wait for it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

from ..signals import Stopped
from .errors import KnobRefused, KnobUsage

PATIENCE = 3
"""After so many signals the command is killed."""


class NotFound(KnobUsage):
    """There is no such command, or it cannot be run; the statuses are the shell's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def check(command: Sequence[str]) -> None:
    """Before anything is changed. Raises KnobUsage or NotFound."""
    if not command:
        raise KnobUsage("which command? write it after --: spindle knobs with DEVICE KNOB=VALUE -- COMMAND")
    if shutil.which(command[0]) is None:
        there = os.path.sep in command[0] and os.path.exists(command[0])
        what = "cannot be run" if there else "no such command"
        raise NotFound(f"{command[0]}: {what}; nothing was changed", 126 if there else 127)


def run(command: Sequence[str]) -> int:
    """Its exit status; 128 + the number of a signal that ended it, as the shell has it."""
    try:
        process = subprocess.Popen(list(command))
    except OSError as error:
        raise KnobRefused(f"{command[0]}: cannot be run: {error.strerror}") from None
    signals = 0
    while True:
        try:
            status = process.wait()
            return status if status >= 0 else 128 - status
        except Stopped as stopped:
            signals += 1
            _pass_on(process, stopped.signum, signals)
        except BaseException:
            process.kill()
            process.wait()
            raise


def _pass_on(process: subprocess.Popen[bytes], signum: int, count: int) -> None:
    if count >= PATIENCE:
        process.kill()
    elif not (signum == signal.SIGINT and _in_foreground()):
        process.send_signal(signum)


def _in_foreground() -> bool:
    """Whether a Ctrl-C of the terminal went to the command as well."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
