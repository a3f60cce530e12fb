"""An exception as one line: what, where, what to do; and the exit status that belongs to it."""

from __future__ import annotations

import re
import traceback

import click

from spindle.base.errors import SpindleError
from spindle.cli.exits import Exit


def explain(error: BaseException) -> tuple[str, Exit]:
    """The line for stderr (a job file is refused with a line for each reason) and the exit status."""
    text, status = _known(error)
    lines = error.lines if isinstance(error, SpindleError) else []
    return "\n".join(f"spindle: {one_line(line)}" for line in lines or [text]), status


def one_line(text: str) -> str:
    """Line breaks and control characters in file names and messages must not break the line or the terminal."""
    return " ".join("".join(char if char.isprintable() else " " for char in spelled(text)).split())


def spelled(text: str) -> str:
    """`verify_state=`, as a caller of the library gives it, as --verify-state."""
    return re.sub(r"`([a-z][a-z_]*)=`", lambda key: f"--{key[1].replace('_', '-')}", text)


def _known(error: BaseException) -> tuple[str, Exit]:
    if isinstance(error, click.ClickException):
        return _usage(error), Exit.USAGE
    if isinstance(error, click.Abort):
        return "stopped at the question; nothing was done", Exit.FAILED
    if isinstance(error, KeyboardInterrupt):
        return (
            f"stopped{f' by {error}' if str(error) else ''} before there were figures; what was made is removed",
            Exit.FAILED,
        )
    if isinstance(error, SpindleError):
        return str(error), Exit(error.exit_code)

    from spindle import _core

    if isinstance(error, _core.ConfigError | _core.RunError):
        return str(error), Exit.USAGE if isinstance(error, _core.ConfigError) else Exit.FAILED
    return _unexpected(error), Exit.FAILED


def _usage(error: click.ClickException) -> str:
    message = error.format_message().strip()
    context = getattr(error, "ctx", None)
    help_of = context.command_path if context is not None else "spindle"
    message = message[:1].lower() + message[1:].rstrip(".")
    return message if ";" in message else f"{message}; see `{help_of} --help`"


def _unexpected(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return (
        f"unexpected {type(error).__name__}: {error or 'no text'}{where}; "
        "this is a defect of spindle: set SPINDLE_TRACEBACK=1 to see where it comes from, and report it"
    )
