"""An exception as one line: what, where, what to do; and the exit status that belongs to it."""

from __future__ import annotations

import sys
import traceback

import click

from spindle.cli.exits import Exit


def explain(error: BaseException) -> tuple[str, Exit]:
    """The line for stderr (a job file is refused with a line for each reason) and the exit status."""
    text, status = _known(error)
    lines = _findings(error)
    if lines:
        return "\n".join(f"spindle: {one_line(line)}" for line in lines), status
    return f"spindle: {one_line(text)}", status


def one_line(text: str) -> str:
    """Line breaks and control characters in file names and messages must not break the line or the terminal."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


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

    from spindle import _core
    from spindle.host.errors import TargetError
    from spindle.result.document import Unreadable
    from spindle.run.errors import RunFailed, Usage
    from spindle.stats.errors import Incomparable

    match error:
        case TargetError():
            return str(error), Exit(error.exit_code)
        case _ if _findings(error):
            return str(error), Exit.USAGE
        case _ if _is_of_store(error):
            return str(error), Exit(getattr(error, "exit_code", Exit.FAILED))
        case _core.ConfigError() | Usage() | Unreadable() | Incomparable():
            return str(error), Exit.USAGE
        case _core.RunError() | RunFailed():
            return str(error), Exit.FAILED
        case _:
            return _unexpected(error), Exit.FAILED


def _findings(error: BaseException) -> list[str]:
    """Told without loading what reads job files."""
    module = sys.modules.get("spindle.formats.fio_job")
    if module is None or not isinstance(error, module.JobFileRefused):
        return []
    return [str(finding) for finding in error.findings]


def _is_of_store(error: BaseException) -> bool:
    """Told without loading the store: it brings SQLAlchemy with it."""
    errors = sys.modules.get("spindle.store.errors")
    return errors is not None and isinstance(error, errors.StoreError)


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
