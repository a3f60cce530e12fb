"""Runs the command of `knobs with`: passes signals on to it and waits for it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

from spindle.host.signals import Stopped

from .errors import KnobRefusal, KnobUsage

PATIENCE = 3
"""Signals after which the command is killed."""


class CommandNotFound(KnobUsage):
    """The command does not exist or cannot be run; exit statuses are the shell's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def check(command: Sequence[str]) -> None:
    """Check the command before anything is changed. Raises KnobUsage or CommandNotFound."""
    if not command:
        raise KnobUsage("which command? write it after --: spindle knobs with DEVICE KNOB=VALUE -- COMMAND")
    if shutil.which(command[0]) is None:
        there = os.path.sep in command[0] and os.path.exists(command[0])
        what = "cannot be run" if there else "no such command"
        raise CommandNotFound(f"{command[0]}: {what}; nothing was changed", 126 if there else 127)


def run(command: Sequence[str]) -> int:
    """Run it and return its exit status; 128 + the signal's number if a signal ended it, as in the shell."""
    try:
        process = subprocess.Popen(list(command))
    except OSError as error:
        raise KnobRefusal(f"{command[0]}: cannot be run: {error.strerror}") from None
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
    """True if a Ctrl-C on the terminal also reached the command."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
