"""`hdparm -t`, `-T` and `--direct`. hdparm's MB are 2^20 bytes (its buffer is 2 MiB, and it counts those)."""

from __future__ import annotations

import re

from spindle.result.imported import PartialOp, PartialStream

from .found import Repetition
from .numbers import amount, scaled
from .text import Text

_DEVICE = re.compile(r"^\s*(/\S+):\s*$")
_TIMING = re.compile(
    r"^\s*Timing (.+?) reads(?: \((.+?)\))?:\s*([\d.,]+) MB in\s+([\d.,]+) seconds\s*=\s*([\d.,]+) ([kMG])B/sec\s*$"
)
_UNITS = {"k": 1024.0, "M": 1024.0**2, "G": 1024.0**3}


def looks(text: Text) -> bool:
    """True for `Timing ... reads:`."""
    return re.search(r"^\s*Timing .+ reads(?: \(.+\))?:", text.head, re.M) is not None


def read(text: Text) -> list[Repetition]:
    """Return one for each time a device is named, and for each repetition of a test."""
    found: list[tuple[str | None, list[PartialStream]]] = []
    device: str | None = None
    for at, line in enumerate(text.lines):
        if match := _DEVICE.match(line):
            device = match[1]
            found.append((device, []))
        elif re.match(r"^\s*Timing .+ reads(?: \(.+\))?:", line):
            stream = _stream(text, at, line)
            if not found or any(stream.name == other.name for other in found[-1][1]):
                found.append((device, []))
            found[-1][1].append(stream)
    return [
        Repetition(tool="hdparm", target=target, workload="hdparm", streams=_in_turn(streams))
        for target, streams in found
        if streams
    ]


def _in_turn(streams: list[PartialStream]) -> list[PartialStream]:
    return [
        PartialStream(name=s.name, group=place, seconds=s.seconds, operations=s.operations, settings=s.settings)
        for place, s in enumerate(streams)
    ]


def _stream(text: Text, at: int, line: str) -> PartialStream:
    match = _TIMING.match(line)
    if match is None:
        text.fail(at, f"not a line of hdparm: {line.strip()[:70]}")
    rate = scaled(match[5], _UNITS[match[6]])
    if rate is None or amount(match[4]) is None:
        text.fail(at, f"no numbers: {line.strip()[:70]}")
    return PartialStream(
        name="-".join(match[1].split()),
        seconds=amount(match[4]),
        operations={"read": PartialOp(bytes_per_s=rate)},
        settings={"place": match[2]} if match[2] else {},
    )
