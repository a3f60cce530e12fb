"""`spindle.schema`: JSON Schema of what the program writes."""

from __future__ import annotations

from typing import Any, Literal

from spindle.doctor import schema as of_doctor
from spindle.inspect import schema as of_inspect
from spindle.library.arguments import public
from spindle.result import document, workload_file


@public
def schema(of: Literal["result", "workload", "workload-file", "inspect", "doctor"]) -> dict[str, Any]:
    """JSON Schema of a result, of a resolved workload, of a workload file, or of the JSON of `inspect` or `doctor`."""
    match of:
        case "inspect":
            return of_inspect()
        case "doctor":
            return of_doctor()
        case "workload-file":
            return workload_file.schema()
        case _:
            return document.schema(of)
