"""Exceptions as one line (the problem, its place, what to do) and an exit status."""

from __future__ import annotations

import os
import re
import shlex
import traceback

import click

from spindle.base.commands import option, switched_off
from spindle.base.errors import SpindleError
from spindle.base.suggestions import meant
from spindle.cli.exits import Exit
from spindle.host.errors import not_found


def explain(error: BaseException) -> tuple[str, Exit]:
    """Return the line for stderr and the exit status. A refused job file has one line for each reason."""
    text, status = _known(error)
    lines = error.lines if isinstance(error, SpindleError) else []
    return "\n".join(f"spindle: {one_line(line)}" for line in lines or [text]), status


def one_line(text: str) -> str:
    """Escape line breaks and control characters of file names and messages."""
    return " ".join("".join(char if char.isprintable() else " " for char in spelled(text)).split())


_KEYWORD = re.compile(r"`([A-Za-z][\w.-]*)=([^`]*)`")
_COMMAND = re.compile(rf"`(spindle [^`]+)` with ({_KEYWORD.pattern}(?: and {_KEYWORD.pattern})*)")


def spelled(text: str) -> str:
    """Write the library's keywords as options: `keep=` and `keep=True` are --keep, `seconds=60` is --seconds 60, and
    `spindle run` with `create=SIZE` and `keep=True` is `spindle run --create SIZE --keep`."""
    whole = _COMMAND.sub(lambda found: f"`{found[1]} {' '.join(map(_option, _KEYWORD.finditer(found[2])))}`", text)
    return _KEYWORD.sub(_option, whole)


def _option(keyword: re.Match[str]) -> str:
    name, value = option(keyword[1]), keyword[2].strip('"')
    if value in ("", "True"):
        return name
    if value == "False":
        return switched_off(keyword[1])
    return f"{name}{'=' if '.' in keyword[1] else ' '}{shlex.quote(value)}"


def _known(error: BaseException) -> tuple[str, Exit]:
    if isinstance(error, click.ClickException):
        return _usage(error), Exit.USAGE
    if isinstance(error, click.Abort):
        return "stopped at the confirmation; nothing was done", Exit.FAILED
    if isinstance(error, KeyboardInterrupt):
        return (
            f"stopped{f' by {error}' if str(error) else ''} before the first result; temporary files are removed",
            Exit.FAILED,
        )
    if isinstance(error, SpindleError):
        return str(error), Exit(error.exit_code)
    if isinstance(error, OSError) and error.filename is not None:
        of_file = not_found(_shown(error.filename), error)
        return str(of_file), Exit(of_file.exit_code)
    if isinstance(error, UnicodeEncodeError) and error.reason == _NOT_UTF8:
        return f"{_shown(error.object)[:100]}: not UTF-8; only names of files and targets may be anything", Exit.USAGE
    return _unexpected(error), Exit.FAILED


_NOT_UTF8 = "surrogates not allowed"
"""Python has bytes of an argument that are not UTF-8 as surrogates, and refuses to encode them."""


def _shown(name: object) -> str:
    """The name of a file, whose bytes may be anything."""
    text = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else str(name)
    return text.encode(errors="backslashreplace").decode()


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    help_of = context.command_path if context is not None else "spindle"
    if isinstance(error, click.NoSuchOption):
        hint = meant(error.option_name, _names(error), f"see `{help_of} --help`", 0.7)
        return f"no such option {error.option_name}; {hint}"
    message = error.format_message().strip()
    message = message[:1].lower() + message[1:].rstrip(".")
    return message if ";" in message else f"{message}; see `{help_of} --help`"


def _names(error: click.NoSuchOption) -> list[str]:
    parameters = error.ctx.command.get_params(error.ctx) if error.ctx is not None else []
    return [name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)]


def _unexpected(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return (
        f"unexpected {type(error).__name__}: {error or 'no text'}{where}; "
        "this is a defect of spindle: set SPINDLE_TRACEBACK=1 to see where it comes from, and report it"
    )
