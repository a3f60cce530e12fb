"""Names of the parts of a result, so that another tool's result of the same jobs has the same names."""

from __future__ import annotations

import re
from collections import Counter

from spindle.result.imported import PartialStream
from spindle.result.record import ImportedRecord, PhasesRecord, Record, RunRecord
from spindle.result.workload_properties import stream_name

JOBS = "fio-json"
"""The format whose streams are jobs that Spindle can run as well."""


def cases(record: ImportedRecord) -> dict[str, list[PartialStream]]:
    """Streams by name. Jobs of fio get the names of the streams in a run of the same job file: clones `NAME-0`,
    `NAME-1`; groups one after another `FIRST` and, with several jobs, `FIRST/NAME`.
    """
    if record.source.format != JOBS:
        return {stream.name: [stream] for stream in record.streams}
    names = _names(record.streams)
    if len(set(names)) < len(names):
        return {stream.name: [stream] for stream in record.streams}
    groups: dict[int, list[tuple[str, PartialStream]]] = {}
    for name, stream in zip(names, record.streams, strict=True):
        groups.setdefault(stream.group, []).append((name, stream))
    if len(groups) == 1:
        return {name: [stream] for name, stream in zip(names, record.streams, strict=True)}
    found: dict[str, list[PartialStream]] = {}
    for jobs in groups.values():
        phase = _base(jobs[0][1].name, {stream.name for stream in record.streams})
        first = stream_name(phase)
        found[first] = [stream for _, stream in jobs]
        if len(jobs) > 1:
            found |= {f"{first}/{name}": [stream] for name, stream in jobs}
    return found


def jobs_of(record: Record) -> frozenset[str]:
    """Names of all streams of a run, of all phases, or of an imported result; empty if it has none."""
    match record:
        case RunRecord():
            return frozenset(stream.name for stream in record.figures.streams)
        case PhasesRecord(varied=[]):
            return frozenset(stream.name for run in record.runs for stream in run.figures.streams)
        case ImportedRecord() if record.source.format == JOBS:
            return frozenset(_names(record.streams))
        case _:
            return frozenset()


def _names(streams: list[PartialStream]) -> list[str]:
    """Names without the numbers that the reader gave to clones, as in fio's file."""
    there = {stream.name for stream in streams}
    bases = [_base(stream.name, there) for stream in streams]
    clones, seen = Counter(bases), Counter[str]()
    names = []
    for base in bases:
        names.append(stream_name(f"{base}-{seen[base]}" if clones[base] > 1 else base))
        seen[base] += 1
    return names


def _base(name: str, there: set[str]) -> str:
    numbered = re.fullmatch(r"(.*)#\d+", name)
    return numbered[1] if numbered and numbered[1] in there else name
