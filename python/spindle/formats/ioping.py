"""ioping: the text, the raw numbers of `-B` and `-p` (ten columns, since 1.0), and the JSON of `-J`.

The rate is that of the requests alone, without the pauses between them. The raw numbers do not distinguish
reads from writes: the operation is `request`.
"""

from __future__ import annotations

import re
from typing import Any

from spindle.result.imported import PartialLatency, PartialOp, PartialStream

from .found import Repetition, known
from .numbers import amount, prefixed, scaled, scaled_whole, time_ns, whole
from .text import Text, documents

_TITLE = re.compile(r"^--- (.+) ioping statistics ---$")
_DONE = re.compile(
    r"^([\d.]+)(?: ([kMG]))? requests completed in ([\d.]+ \w+), (?:([\d.]+) ([KMGTP]?i?B) (read|written), )?"
    r"([\d.]+)(?: ([kMG]))? iops, ([\d.]+) ([KMGTP]?i?B)/s$"
)
_TIMES = re.compile(r"^min/avg/max/mdev = (\S+ \w+) / (\S+ \w+) / (\S+ \w+) / (\S+ \w+)$")
_RAW = re.compile(r"^\d+( \d+){9}$")


def looks(text: Text) -> bool:
    """True for its statistics, its JSON, or lines of ten consistent numbers."""
    if _TITLE.search(text.head) or "ioping statistics ---" in text.head:
        return True
    if '"io"' in text.head and '"target"' in text.head and '"stat"' in text.whole and '"bps"' in text.whole:
        return True
    lines = [line for line in text.head.split("\n") if line.strip()]
    return bool(lines) and len(text.head) == len(text.whole) and all(_is_raw(line) for line in lines)


def _is_raw(line: str) -> bool:
    if len(line) > 250 or not _RAW.match(line.strip()):
        return False
    count, time, iops, _, least, mean, most, _, total, whole_time = (int(each) for each in line.split())
    rate = count * 1e9 / time if time else 0
    return least <= mean <= most and count <= total and time <= whole_time and abs(rate - iops) <= 1 + rate / 100


def read(text: Text) -> list[Repetition]:
    """Return one for each summary."""
    if "ioping statistics ---" in text.whole:
        return _text(text)
    if text.whole.lstrip()[:1] in ("[", "{"):
        return [_json(text, line, part) for line, value in documents(text) for part in _summaries(text, line, value)]
    found = []
    for at, line in enumerate(text.lines):
        if line.strip():
            if not _is_raw(line):
                text.fail(at, f"not ten numbers that agree: {line.strip()[:70]}")
            cells = line.split()
            found.append(_found(None, {}, "request", _raw(cells), int(cells[1]) / 1e9))
    return found


def _found(target: str | None, settings: dict[str, str], name: str, op: PartialOp, seconds: float | None) -> Repetition:
    stream = PartialStream(name="main", seconds=seconds, operations={name: op})
    return Repetition(tool="ioping", target=target, workload="ioping", settings=settings, streams=[stream])


def _raw(cells: list[str]) -> PartialOp:
    count, _, iops, rate, least, mean, most, mdev = (whole(each) for each in cells[:8])
    return PartialOp(
        requests=count,
        iops=None if iops is None else float(iops),
        bytes_per_s=None if rate is None else float(rate),
        latency=PartialLatency(min_ns=least, mean_ns=_float(mean), max_ns=most, sdev_ns=_float(mdev)),
    )


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _text(text: Text) -> list[Repetition]:
    found = []
    target: str | None = None
    done: re.Match[str] | None = None
    for at, line in enumerate(text.lines):
        line = line.strip()
        if title := _TITLE.match(line):
            if done is not None:
                found.append(_of_text(target, done, None))
            target, done = title[1].partition(" (")[0], None
        elif line.startswith("no requests completed"):
            target = None
        elif target is not None and " requests completed in " in line:
            done = _DONE.match(line)
            if done is None:
                text.fail(at, f"not a line of ioping: {line[:70]}")
        elif done is not None and line.startswith("min/avg/max/mdev"):
            times = _TIMES.match(line)
            if times is None or any(time_ns(each) is None for each in times.groups()):
                text.fail(at, f"not a line of ioping: {line[:70]}")
            found.append(_of_text(target, done, times))
            target, done = None, None
    if done is not None:
        found.append(_of_text(target, done, None))
    return found


def _of_text(target: str | None, done: re.Match[str], times: re.Match[str] | None) -> Repetition:
    least, mean, most, mdev = (time_ns(each) for each in times.groups()) if times else (None,) * 4
    exact = done[2] is None
    seconds = time_ns(done[3])
    op = PartialOp(
        requests=scaled_whole(done[1], prefixed(done[2] or "", 1000)) if exact else None,
        bytes=scaled_whole(done[4], prefixed(done[5].rstrip("iB"), 1024)) if exact and done[4] else None,
        iops=scaled(done[7], prefixed(done[8] or "", 1000)),
        bytes_per_s=scaled(done[9], prefixed(done[10].rstrip("iB"), 1024)),
        latency=known(PartialLatency(min_ns=least, mean_ns=_float(mean), max_ns=most, sdev_ns=_float(mdev))),
    )
    return _found(
        target,
        {},
        {"read": "read", "written": "write"}.get(done[6], "request"),
        op,
        None if seconds is None else seconds / 1e9,
    )


def _summaries(text: Text, line: int, value: Any) -> list[tuple[dict[str, Any], str]]:
    """Return (the part with the statistics, the operation) of each."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, dict) for part in parts):
        text.fail(line, "not ioping's JSON")
    found = []
    operation = "request"
    for part in parts:
        if isinstance(part.get("io"), dict):
            operation = str(part["io"].get("operation", operation))[:40]
        if isinstance(part.get("stat"), dict):
            found.append((part, operation))
    return found


def _json(text: Text, line: int, summary: tuple[dict[str, Any], str]) -> Repetition:
    part, operation = summary
    stat = part["stat"]
    target = part.get("target")
    target = target if isinstance(target, dict) else {}
    op = PartialOp(
        requests=whole(stat.get("count")),
        bytes=whole(stat.get("size")),
        iops=amount(stat.get("iops")),
        bytes_per_s=amount(stat.get("bps")),
        latency=known(
            PartialLatency(
                min_ns=whole(stat.get("min")),
                mean_ns=amount(stat.get("avg")),
                max_ns=whole(stat.get("max")),
                sdev_ns=amount(stat.get("mdev")),
            )
        ),
    )
    if op == PartialOp():
        text.fail(line, "`stat` has no figures")
    path = target.get("path")
    settings = {name: str(target[name]) for name in ("fstype", "device", "device_size") if name in target}
    return _found(str(path) if path is not None else None, settings, operation, op, scaled(stat.get("time"), 1e-9))
