"""A file's text, and errors in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from spindle.result.document import Unreadable

MOST_BYTES = 32 << 20
MOST_LINES = 500_000
"""Twelve devices every second for half a day. Longer files take minutes and gigabytes to read."""


@dataclass(frozen=True)
class Text:
    """Text of a file."""

    file: str
    whole: str

    @cached_property
    def lines(self) -> list[str]:
        """Lines without line ends of any system."""
        return self.whole.split("\n")

    @cached_property
    def head(self) -> str:
        """Beginning that is enough to detect the format."""
        return self.whole[: 1 << 16]

    def fail(self, line: int, reason: str) -> NoReturn:
        """Raise an error at a line, counted from 0."""
        raise Unreadable(f"{self.file}:{line + 1}: {reason}")


def decoded(file: str, data: bytes) -> Text:
    """Decode bytes written by any system."""
    if len(data) > MOST_BYTES:
        raise Unreadable(f"{file}: longer than {MOST_BYTES >> 20} MiB; cut it into parts, or give the results alone")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        whole = data.decode("utf-16", "replace")
    elif b"\0" in data[:4096]:
        raise Unreadable(f"{file}: binary; save the report as text (iozone: redirect its output instead of -b)")
    else:
        whole = data.decode("utf-8-sig", "replace")
    if whole.count("\n") + whole.count("\r") > 2 * MOST_LINES or whole.count("\n") > MOST_LINES:
        raise Unreadable(f"{file}: more than {MOST_LINES} lines; cut it into parts, or give the results alone")
    return Text(file, whole.replace("\r\n", "\n").replace("\r", "\n"))


_DOCUMENT = re.compile(r"^[ \t]*(\{|\[\s*\{)", re.M)


def documents(text: Text) -> Iterator[tuple[int, Any]]:
    """Yield (line, value) of each JSON document in a text; other text is skipped."""
    decoder = json.JSONDecoder()
    at = 0
    while (found := _DOCUMENT.search(text.whole, at)) is not None:
        start = found.start(1)
        line = text.whole.count("\n", 0, start)
        try:
            value, at = decoder.raw_decode(text.whole, start)
        except json.JSONDecodeError as error:
            ends = error.pos >= len(text.whole.rstrip()) or error.msg.startswith("Unterminated string")
            reason = "the JSON ends in the middle: the file is cut off" if ends else f"not JSON ({error.msg})"
            text.fail(error.lineno - 1, reason)
        except (RecursionError, ValueError):
            text.fail(line, "JSON that is nested too deep, or numbers that are too long")
        yield line, value
