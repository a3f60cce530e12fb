"""The user's commands before and after a trial. Argument lists, never a shell."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from spindle.campaign.leftovers import Note, RemovalFailed, noted
from spindle.campaign.prepare import TARGET
from spindle.host.signals import ENDING, held_back
from spindle.run.errors import RunFailed

Command = Sequence[str]


def filled(command: Command, target: str) -> tuple[str, ...]:
    """The command with the target in place of `{target}`."""
    return tuple(word.replace(TARGET, target) for word in command)


@contextmanager
def around(
    campaign: str, setup: Sequence[Command], teardown: Sequence[Command], target: str, environment: Mapping[str, str]
) -> Iterator[None]:
    """Run setup before and teardown after, even if setup fails. Raises RunFailed."""
    if not setup and not teardown:
        yield
        return
    after = tuple(filled(command, target) for command in teardown)
    with noted(campaign, "teardown", Note(teardown=after)):
        try:
            for command in setup:
                run("setup", filled(command, target), environment)
            yield
        finally:
            with held_back():
                for command in after:
                    try:
                        run("teardown", command, environment)
                    except RunFailed as error:
                        raise RemovalFailed(str(error)) from None


def run(what: str, command: Command, environment: Mapping[str, str]) -> None:
    """Run a command to its end. Raises RunFailed with the last line of its output."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            env={**os.environ, **environment},
            preexec_fn=_hear,
            check=False,
        )
    except OSError as error:
        raise RunFailed(f"{what} `{shlex.join(command)}`: {(error.strerror or str(error)).lower()}") from None
    if done.returncode != 0:
        raise RunFailed(f"{what} `{shlex.join(command)}`: {ended(done.returncode, done.stderr or done.stdout)}")


def _hear() -> None:
    """In the child: unblock signals that are blocked here during cleanup."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def ended(status: int, said: str) -> str:
    """`exit status 3: no such table`."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    how = f"ended by signal {-status}" if status < 0 else f"exit status {status}"
    return f"{how}: {lines[-1][:200]}" if lines else how
