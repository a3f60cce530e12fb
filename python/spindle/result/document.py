"""Records as JSON documents: written, read back, and their JSON Schema."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from spindle.base.errors import SpindleError
from spindle.result.conversion import converted
from spindle.result.record import FORMAT, Record
from spindle.result.workload import Workload

_REMEDY = "give a file that `spindle run` with `output=FILE` has written"


class Unreadable(SpindleError):
    """A file is not a record."""

    exit_code = 2


def encode(record: Record) -> bytes:
    """Return one indented JSON document that ends with a newline; reading and encoding it again gives the same
    bytes.
    """
    try:
        data = msgspec.json.encode(record)
    except UnicodeEncodeError:  # a file name that is not UTF-8
        data = msgspec.json.encode(_printable(msgspec.to_builtins(record)))
    return msgspec.json.format(_as_read(data), indent=2) + b"\n"


def _as_read(data: bytes) -> bytes:
    """Return the document with 0.0 where a program wrote the integer 0 for a float."""
    try:
        return msgspec.json.encode(msgspec.json.decode(data, type=Record))
    except msgspec.ValidationError:  # the reader reports it
        return data


LINES = ("machine", "toml")
"""Keys of texts with several lines, a modelled machine and a workload. They are never printed unchanged."""


def _one_line_each(value: Any, kept: str = "") -> Any:
    """Replace control characters, which must not reach a terminal."""
    match value:
        case str() if not value.isprintable():
            return "".join(char if char.isprintable() or char in kept else "?" for char in value)
        case dict():
            return {
                _one_line_each(key): _one_line_each(item, "\n\t" if key in LINES else "") for key, item in value.items()
            }
        case list():
            return [_one_line_each(item) for item in value]
        case _:
            return value


def _printable(value: Any) -> Any:
    """Write `\\xff` for bytes of a name that are not UTF-8, as JSON cannot contain them."""
    match value:
        case str():
            return os.fsencode(value).decode("utf-8", "backslashreplace")
        case dict():
            return {_printable(key): _printable(item) for key, item in value.items()}
        case list() | tuple():
            return [_printable(item) for item in value]
        case _:
            return value


def decode(data: bytes, source: str) -> Record:
    """Read a record. Raises `Unreadable` naming `source` and the place."""
    try:
        record: Record = msgspec.convert(_one_line_each(converted(msgspec.json.decode(data))), type=Record)
    except msgspec.ValidationError as error:
        raise Unreadable(f"{source}: not a result of this version: {error}; see `spindle schema result`") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"{source}: not JSON: {error}; {_REMEDY}") from None
    except RecursionError:
        raise Unreadable(f"{source}: JSON that is nested too deep; {_REMEDY}") from None
    if record.format > FORMAT:
        raise Unreadable(
            f"{source}: format {record.format} is newer than this spindle reads ({FORMAT}); use a newer spindle"
        )
    return record


def read(file: Path) -> Record:
    """Read a record from a file; `-` is stdin."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else _bytes_of(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreadable(f"{file}: cannot be read ({reason}); {_REMEDY}") from None
    return decode(data, str(file))


def _bytes_of(file: Path) -> bytes:
    if file.exists() and not file.is_file():
        raise ValueError("not a regular file")
    return file.read_bytes()


def schema(of: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of `result` (what verbs print as JSON) or `workload` (a resolved workload)."""
    kind: Any = {"result": Record, "workload": Workload}[of]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"spindle {of}",
        **msgspec.json.schema(kind),
    }
