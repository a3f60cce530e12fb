"""JSON Schema of a workload file, from the core's table of keys: for editors and for programs that write such files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from spindle import _core

QUANTITIES: dict[str, dict[str, Any]] = {
    "flag": {"type": "boolean"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "fraction": {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string"}]},
    "size": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]},
    "sizes": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]},
    "seconds": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]},
    "iops": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]},
}
"""Kinds of values that are not always text: a bare number, or text with a unit."""


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a workload file, as read from TOML."""
    keys = json.loads(_core.workload_keys())

    def table(levels: Iterable[str], **tables: Any) -> dict[str, Any]:
        own = {key["name"]: _value(key) for key in keys if key["level"] in levels or key["name"] == "name"}
        return {"type": "object", "properties": own | tables, "additionalProperties": False}

    def several(of: str) -> dict[str, Any]:
        return {"type": "array", "items": {"$ref": f"#/$defs/{of}"}}

    tables = {name: several(name) for name in ("stream", "phase", "files")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "spindle workload file",
        "$defs": {
            "stream": table(["stream"]),
            "phase": table(["phase", "workload", "stream"], stream=several("stream")),
            "files": table(["files"]),
        },
        **table(["workload", "stream"], **tables),
    }


def _value(key: dict[str, Any]) -> dict[str, Any]:
    form = QUANTITIES.get(key["kind"], {"type": "string"})
    if "choices" in key:
        form = {"enum": key["choices"]}
    elif "range" in key and key["kind"] in ("integer", "number"):
        least, most = (int(bound) if key["kind"] == "integer" else bound for bound in key["range"])
        form = {**form, "minimum": least, "maximum": most}
    if key["default"] == "none" and "choices" not in key:
        form = {"anyOf": [*form.get("anyOf", [form]), {"const": "none"}]}
    return {"description": key["help"], **form, "default": key["default"], "examples": [key["example"]]}
