"""Records of earlier formats, converted to the present one before they are read.

A stored document is never rewritten: its SHA-256 and its rows stay valid, as the rows do not depend on names of keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_RENAMED = (
    ("", "idle", "preflight"),
    ("", "during", "activity"),
    ("", "prepared", "preparation"),
    ("activity.samples.*", "working", "array_actions"),
    ("preparation", "quieted", "changed_settings"),
    ("preparation.changed_settings.*", "put_back", "restored"),
    ("preparation.changed_settings.*", "why_not", "reason"),
    ("preparation.precondition.window", "looks", "evaluations"),
    ("settings", "passing", "temporary"),
    ("figures.steady", "looks", "evaluations"),
    ("figures.log", "trouble", "error"),
    ("figures.verification", "during", "during_load"),
    ("figures.verification", "waited", "delayed_writes"),
    ("figures.verification.during_load.faults.*.first.*", "what", "description"),
    ("figures.verification.read_back.found.faults.*.first.*", "what", "description"),
    ("search.points.*", "seen", "checks"),
    ("search.points.*", "kept_up", "sustained"),
    ("search.points.*.checks.*", "over", "fraction_over"),
    ("curve", "carried", "sustained_iops"),
    ("curve", "saturated", "saturated_iops"),
    ("curve", "slots", "max_outstanding"),
    ("workload.streams.*", "writes_apart", "separate_writes"),
    ("workload.phases.*.load.streams.*", "writes_apart", "separate_writes"),
)
"""From format 1 to 2: the path to the objects (`*`: each of a list), the old key, the new key; applied in order."""


def converted(document: Any) -> Any:
    """Return the decoded JSON of a record, and of the runs in it, with the keys of format 2. Changes `document`.
    One that is not an object of format 1 is returned as it is, for the reader to check.
    """
    if not isinstance(document, dict) or document.get("format", 1) != 1:
        return document
    for path, old, new in _RENAMED:
        for found in _objects(document, path.split(".") if path else []):
            if old in found:
                found[new] = found.pop(old)
    if isinstance(runs := document.get("runs"), list):
        document["runs"] = [converted(run) for run in runs]
    return document | {"format": 2}


def _objects(value: Any, path: list[str]) -> Iterator[dict[str, Any]]:
    match value:
        case dict() if not path:
            yield value
        case list() if path and path[0] == "*":
            for each in value:
                yield from _objects(each, path[1:])
        case dict() if path[0] in value:
            yield from _objects(value[path[0]], path[1:])
