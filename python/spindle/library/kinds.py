"""The kinds of files that users name for results, and how each is recognised by its content
(docs/explanation/safety.md)."""

from __future__ import annotations

import re
from typing import IO

import msgspec

from spindle.base.decoding import decode_json
from spindle.host.outputs import Kind, begins, never
from spindle.report.render.picture import is_marked
from spindle.result.completions import COLUMNS
from spindle.run import trace

HEAD_BYTES = 4096
LARGEST_RESULT = 1 << 30
"""Bytes. A larger file is not read to find out whether it is a result."""


class _Tool(msgspec.Struct):
    name: str


class _Result(msgspec.Struct):
    """The part that all results share."""

    kind: str
    tool: _Tool


def _is_result(file: IO[bytes]) -> bool:
    data = file.read(LARGEST_RESULT)
    try:
        return decode_json(data, _Result).tool.name == "spindle"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _is_page(head: bytes) -> bool:
    return head.startswith(b"<!doctype html>") and b'<meta name="generator" content="spindle">' in head


def _is_chart(file: IO[bytes]) -> bool:
    head = file.read(HEAD_BYTES)
    return is_marked(head) or _is_page(head)


def _is_report(file: IO[bytes]) -> bool:
    head = file.read(HEAD_BYTES)
    return (
        _is_page(head)
        or head.startswith(b"run,started,workload,target,target_kind,stream,op,outstanding,")
        # The line below the title, in text, Markdown and JSON.
        or re.match(rb'(\{\n  "title": .*\n  "about": "|# .*\n\n|.*\n).* Spindle [0-9]+\.[0-9]+', head) is not None
        or is_marked(head)
    )


def _is_sheet(file: IO[bytes]) -> bool:
    """A table as `store export` writes it: CSV, or Parquet, whose own metadata is at the end."""
    head = file.read(HEAD_BYTES)
    if head.startswith(b"PAR1"):
        file.seek(-min(file.seek(0, 2), LARGEST_RESULT), 2)
        return b"spindle.sheet" in file.read()
    return head.startswith(b"run,kind,started,workload,target,level,tags,campaign,trial,block")


KINDS = {
    "result": Kind("a result of Spindle", _is_result),
    "log": Kind("a completion log of Spindle", begins((",".join(COLUMNS) + "\n").encode())),
    "trace": trace.KIND,
    "lab-trace": Kind("a trace of Spindle's lab", begins(b"drive,arrive_ns,finish_ns,operation,sector,sectors\n")),
    "state": Kind("a state of Spindle", begins(b"spindle verify-state ")),
    "report": Kind("a report of Spindle", _is_report),
    "chart": Kind("a picture of Spindle", _is_chart),
    "sheet": Kind("a table of Spindle", _is_sheet),
    "fio-json": Kind("a result that Spindle wrote as fio's JSON", lambda file: _is_fio_json(file.read(HEAD_BYTES))),
    # Its text has no mark, and is never replaced without being asked for.
    "fio-output": Kind("a result of Spindle in JSON", lambda file: _is_fio_output(file)),
    "workload": Kind("a workload that Spindle converted", lambda file: _is_converted(file.read(HEAD_BYTES))),
    "machine": Kind("a machine file of Spindle", lambda file: _is_machine(file)),
    "capture": Kind("a capture of Spindle", lambda file: _is_capture(file)),
    # A recording is made once, and grows while it is made.
    "recording": Kind("a file that may be replaced (a recording is not written over)", never),
    # Their content does not show who wrote them: fio's logs have no heading.
    "fio-log": Kind("a file that may be replaced (it may be fio's own)", never),
}
"""By the name that `OutputOption` takes."""


def _is_capture(file: IO[bytes]) -> bool:
    from spindle.inspect.capture import is_capture

    return is_capture(file)


def _is_machine(file: IO[bytes]) -> bool:
    from spindle.design.commands import MADE_BY as OF_DESIGN
    from spindle.inspect.machine import MADE_BY as OF_INSPECT

    return file.readline(HEAD_BYTES).decode(errors="replace").rstrip("\n") in (OF_DESIGN, OF_INSPECT)


def _is_fio_json(head: bytes) -> bool:
    return re.match(rb'\s*\{\s*"fio version"\s*:\s*"[^"]*-spindle-', head) is not None


def _is_fio_output(file: IO[bytes]) -> bool:
    if _is_fio_json(file.read(HEAD_BYTES)):
        return True
    file.seek(0)
    return _is_result(file)


def _is_converted(head: bytes) -> bool:
    return re.match(rb"# from .*\n# spindle run ", head) is not None
