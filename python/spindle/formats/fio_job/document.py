"""A conversion as the TOML of a native workload."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from spindle.base.commands import given, shell
from spindle.base.units import exact_size

from .quantity import Keys

if TYPE_CHECKING:  # the conversion checks its text first
    from .convert import Conversion
    from .search import LatencyTarget


def toml_of(conversion: Conversion, spelled: Callable[[str], str] = str) -> str:
    """Return a workload for `spindle run`, with the findings in front. `spelled`: how keywords are shown."""
    lines = [f"# {_plain(line)}" for line in (f"from {conversion.file}", command_line(conversion))]
    if any(each.job.logs for each in conversion.jobs):
        lines.append("# its logs are written only by `spindle run` of the job file itself")
    lines += [f"# {_plain(spelled(str(finding)))}" for finding in conversion.findings]
    return "\n".join(lines) + "\n" + body_of(conversion)


def body_of(conversion: Conversion) -> str:
    """Return the workload without findings."""
    lines: list[str] = []
    several = len(conversion.phases) > 1
    for phase in conversion.phases:
        head = {key: value for key, value in phase.head.items() if several or key not in _OF_PHASES}
        lines += ["", *(["[[phase]]"] if several else []), *_table(head)]
        for stream in phase.streams:
            lines += ["", "[[phase.stream]]" if several else "[[stream]]", *_table(stream)]
    for files in conversion.files:
        lines += ["", "[[files]]", *_table(files)]
    return "\n".join(lines) + "\n"


_OF_PHASES = ("name", "drop_caches")


def command_line(conversion: Conversion, file: str = "FILE.toml") -> str:
    """Return the command that runs the workload as the job file asks."""
    target = conversion.target or "TARGET"
    erase = target if conversion.changes else None
    does_io = conversion.engine != "null"
    if does_io and conversion.listed:
        itself = shell("spindle", "run", conversion.file, *given(erase=erase))
        return f"run the job file itself, a workload names no devices: {itself}"
    on_device = target.startswith("/dev/")
    keys: dict[str, object] = {}
    if does_io and on_device:
        keys["erase"] = erase
    elif does_io and conversion.needs_bytes:
        keys["create"] = exact_size(conversion.needs_bytes)
    keys |= {
        "cpus": ",".join(map(str, conversion.cpus)) or None,
        "cpus_shared": conversion.cpus_shared,
        "iopoll": conversion.iopoll,
        "sqpoll": conversion.sqpoll,
    }
    engine = given(engine=conversion.engine if does_io else None)
    return shell("spindle", "run", *engine, file, target, *given(**keys), *_search_options(conversion.search))


def _search_options(bound: LatencyTarget | None) -> list[str]:
    if bound is None:
        return []
    figure = "max" if bound.percent == 100 else f"p{bound.percent:g}"
    seconds = f"{bound.window_us / 1e6:g}" if bound.window_us else None
    return given(latency_target=f"{figure}:{bound.target_us}us", seconds=seconds)


def as_json(conversion: Conversion) -> str:
    """Return the jobs as read (bytes, microseconds), the converted phases, and every finding."""
    document = {
        "file": conversion.file,
        "runs": not conversion.refused,
        "target": conversion.target,
        "directory": conversion.place.folder,
        "engine": conversion.engine,
        "needs_bytes": conversion.needs_bytes,
        "command": command_line(conversion),
        "jobs": [{**asdict(each.job), "place": str(each.job.place)} for each in conversion.jobs],
        "phases": [{"workload": phase.head, "streams": phase.streams} for phase in conversion.phases],
        "files": conversion.files,
        "cpus": conversion.cpus,
        "iopoll": conversion.iopoll,
        "sqpoll": conversion.sqpoll,
        "search": asdict(conversion.search) if conversion.search is not None else None,
        "findings": [
            {
                "level": finding.level.value,
                "file": finding.place.file,
                "line": finding.place.line,
                "option": finding.option,
                "text": finding.text,
            }
            for finding in conversion.findings
        ],
    }
    return json.dumps(document, indent=2)


def _table(keys: Keys) -> list[str]:
    # A JSON string of printable ASCII is a TOML string.
    return [f"{key} = {json.dumps(value)}" for key, value in keys.items()]


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
