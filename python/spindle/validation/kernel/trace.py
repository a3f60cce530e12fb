"""The requests at a drive as figures."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from spindle.validation.kernel.cases import REQUESTS, Case
from spindle.validation.kernel.runner import MemberFigures


class Request(Struct, frozen=True):
    """One request as it arrives."""

    arrive_ns: int
    operation: str
    """R, W or F."""
    sector: int
    sectors: int


def member_figures(case: Case, slot: int, requests: Sequence[Request], has_times: bool) -> MemberFigures:
    """Return the figures of the drive of a slot. `has_times`: times of arrival count from the begin of the
    measurement, as in the case.
    """
    first = case.data_offset_sectors if case.table == REQUESTS else 0
    data = [one for one in requests if one.operation != "F" and one.sector >= first]
    reads = Counter(one.sectors for one in data if one.operation == "R")
    writes = Counter(one.sectors for one in data if one.operation == "W")
    return MemberFigures(
        device=f"vd{'abcdefgh'[slot]}",
        reads=reads.total(),
        writes=writes.total(),
        read_sizes=dict(reads),
        write_sizes=dict(writes),
        read_sectors=sum(length * count for length, count in reads.items()),
        write_sectors=sum(length * count for length, count in writes.items()),
        order_sha1=_sha1(f"{one.operation} {one.sector} {one.sectors}" for one in requests),
        trace_sha1=_sha1(map(_line, requests)) if has_times else None,
    )


def _line(of: Request) -> str:
    return f"{of.arrive_ns} {of.operation} {of.sector} {of.sectors}"


def _sha1(lines: Iterable[str]) -> str:
    return hashlib.sha1("\n".join(lines).encode(), usedforsecurity=False).hexdigest()[:16]
