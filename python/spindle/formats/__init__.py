"""Other tools' results: `read` makes records of them, `fio_json.write` makes fio's JSON of records.

    read(path, format=None) -> list[Record]      # "-" is stdin; Spindle's own records are read as well
    read_bytes(data, name, format=None)
    FORMATS                                      # name -> Format(name, about, looks, read)
    fio_json.write(records) -> bytes

The format is detected by the content. Each reader is a module that turns `Text` into `Repetition`s, one for each
repetition in the file; `found.record_of` makes records of them. Unknown figures are None.
`fio_job` reads job files instead of results, and is imported by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spindle.result import document
from spindle.result.document import Unreadable
from spindle.result.record import Record

from . import (
    agent,
    bonnie,
    dd,
    elbencho,
    fio_json,
    fio_terse,
    hdparm,
    ioping,
    iostat,
    iostat_json,
    iozone,
    randomio,
    sadf,
    sadf_text,
    sar,
    vdbench,
)
from .found import Repetition, is_empty, record_of
from .text import MOST_BYTES, Text, decoded

__all__ = ["AGENT", "FORMATS", "NATIVE", "Format", "fio_json", "read", "read_bytes"]

NATIVE = "spindle"
"""Spindle's own records."""
AGENT = "spindle-agent"
"""Results that `spindle-agent` measured: they become Spindle's own records."""
MOST_RECORDS = 10_000


@dataclass(frozen=True)
class Format:
    """A format of another tool."""

    name: str
    about: str
    looks: Callable[[Text], bool]
    """True if a text looks like this format."""
    read: Callable[[Text], list[Repetition]]
    """Reader. Raises Unreadable: file, line, reason."""


FORMATS = {
    name: Format(name, about, module.looks, module.read)
    for name, about, module in (
        ("fio-json", "fio's JSON and JSON+", fio_json),
        ("fio-terse", "fio's terse output, versions 3, 4 and 5", fio_terse),
        ("bonnie", "bonnie++'s CSV and its table as text, 1.03 and 1.96 to 2.00", bonnie),
        ("iozone", "iozone's report, its Excel part as text, throughput mode", iozone),
        ("randomio", "randomio's table", randomio),
        ("dd", "stderr of dd or sdd", dd),
        ("hdparm", "hdparm -t, -T, --direct", hdparm),
        ("ioping", "ioping's text, -B and -J", ioping),
        ("iostat", "iostat's text, -x or plain", iostat),
        ("iostat-json", "iostat -o JSON", iostat_json),
        ("sadf", "sadf -j, its section on disks", sadf),
        ("sadf-text", "sadf -d or -p, its section on disks", sadf_text),
        ("sar", "sar -d as text", sar),
        ("vdbench", "vdbench's flatfile.html", vdbench),
        ("elbencho", "elbencho's --csvfile", elbencho),
    )
}
"""Every reader, by name."""


def read(path: Path, format: str | None = None) -> list[Record]:
    """Return the records of a file. Raises `Unreadable`, one line: the file, the place, the reason."""
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        elif path.exists() and not path.is_file():
            raise ValueError("not a regular file")
        else:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreadable(
            f"{path}: cannot be read ({reason}); give a file of results; `spindle store show` shows a stored one"
        ) from None
    return read_bytes(data, str(path), format)


def read_bytes(data: bytes, name: str, format: str | None = None) -> list[Record]:
    """Return the records in data; `name` is for messages and the record."""
    if format == AGENT or (format is None and agent.looks(data)):
        return [_clean(agent.read(data, name), name)]
    if format == NATIVE or (format is None and _is_native(data)):
        return [document.decode(data, name)]
    if format is not None and format not in FORMATS:
        raise Unreadable(f"{name}: no format `{format}`; the formats are {', '.join([NATIVE, *FORMATS, AGENT])}")
    text = decoded(name, data)
    chosen = FORMATS[format] if format is not None else _told(text, data)
    found = [each for each in chosen.read(text) if not is_empty(each)]
    if not found:
        raise Unreadable(f"{name}: it has no figures of {chosen.name} ({chosen.about})")
    if len(found) > MOST_RECORDS:
        raise Unreadable(f"{name}: {len(found)} results in one file; split it into files of at most {MOST_RECORDS}")
    file = name.rpartition("/")[2]
    return [_clean(record_of(each, chosen.name, file, data, place), name) for place, each in enumerate(found)]


def _clean(record: Record, name: str) -> Record:
    """Return the record as it will be read back, without control characters for a terminal."""
    try:
        return document.decode(document.encode(record), name)
    except UnicodeEncodeError:
        raise Unreadable(f"{name}: it has halves of characters, which are not text") from None


def _is_native(data: bytes) -> bool:
    head = data[:4096].lstrip()
    return head.startswith(b"{") and b'"kind"' in head and b'"sysstat"' not in head and b'"fio version"' not in head


def _told(text: Text, data: bytes) -> Format:
    fitting = [each for each in FORMATS.values() if each.looks(text)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = " or ".join(each.name for each in fitting)
        raise Unreadable(f"{text.file}: looks like {names}; say which with `from=`")
    if data.lstrip()[:1] in (b"{", b"["):
        document.decode(data, text.file)  # reports the problem of the record
    raise Unreadable(f"{text.file}: unknown format; tried {', '.join([NATIVE, *FORMATS])}")
