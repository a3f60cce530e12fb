"""A phase as the TOML of a native workload."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

from .stream import Keys, written

if TYPE_CHECKING:  # who makes a conversion checks its text first
    from .convert import Conversion, Phase


def toml_of(conversion: Conversion, phase: Phase) -> str:
    """Runnable by `spindle run`; what was said about the conversion is in front."""
    lines = [f"# {_plain(line)}" for line in (f"from {conversion.file}", command_line(phase))]
    lines += [f"# {_plain(str(finding))}" for finding in conversion.findings]
    return "\n".join(lines) + "\n" + body_of(phase)


def body_of(phase: Phase) -> str:
    """The workload alone."""
    lines = ["", *_table(phase.head)]
    for stream in phase.streams:
        lines += ["", "[[stream]]", *_table(stream)]
    return "\n".join(lines) + "\n"


def command_line(phase: Phase, file: str = "FILE.toml") -> str:
    """How the workload is run as the job file asks."""
    target = phase.target or "TARGET"
    parts = ["spindle run", "--engine", phase.engine, file, shlex.quote(target)]
    if phase.changes and target.startswith("/dev/"):
        parts += ["--erase", shlex.quote(target)]
    elif phase.needs_bytes and not target.startswith("/dev/"):
        parts += ["--create", written(phase.needs_bytes)]
    return " ".join(parts)


def as_json(conversion: Conversion) -> str:
    """Jobs as they were read (bytes, microseconds), what each phase became, and every finding."""
    document = {
        "file": conversion.file,
        "runs": not conversion.refused,
        "jobs": [{**asdict(each.job), "place": str(each.job.place)} for each in conversion.jobs],
        "phases": [
            {
                "target": phase.target,
                "engine": phase.engine,
                "needs_bytes": phase.needs_bytes,
                "command": command_line(phase),
                "workload": phase.head,
                "streams": phase.streams,
            }
            for phase in conversion.phases
        ],
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
