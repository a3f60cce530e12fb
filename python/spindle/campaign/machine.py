"""A modelled machine with changed fields of its file: `array.chunk`, `queue.scheduler`, `drive.0.model`.

Knobs of a block queue have equivalents there, so plans with knobs also run on modelled machines.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from spindle.knobs.catalogue import IOSCHED, knob
from spindle.run.errors import Usage

_EVERY = "*"
_EQUIVALENT = ("scheduler", "nr_requests", "max_sectors_kb", "queue_depth", "stripe_cache_size", "write_cache")
"""Knobs with a field of their own in `_of_knob`."""


def with_fields(
    text: str, fields: Mapping[str, object], knobs: Mapping[str, str], where: str, has_kernel: bool = False
) -> str:
    """The text of the machine file with these fields. Raises Usage: `where` names the place in messages. `has_kernel`:
    it runs under the real kernel, which has more knobs.
    """
    wanted = {
        **{
            field: value for one, setting in knobs.items() for field, value in _of_knob(one, setting, where, has_kernel)
        },
        **fields,
    }
    if not wanted:
        return text
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return text  # reading it as a machine reports the error with its place
    for path, value in wanted.items():
        _set(data, path.split("."), value, f"{where}: machine.{path}")
    return _toml(data)


def _set(data: dict[str, Any], path: list[str], value: object, where: str) -> None:
    key, *rest = path
    if not rest:
        data[key] = value
        return
    inner = data.setdefault(key, {} if key not in ("drive", "sheet") else [])
    if isinstance(inner, dict):
        _set(inner, rest, value, where)
    elif isinstance(inner, list) and all(isinstance(one, dict) for one in inner):
        for one in _members(inner, rest[0], where):
            if len(rest) < 2:
                raise Usage(f"{where}: which field of it? write for example machine.{key}.{rest[0]}.model")
            _set(one, rest[1:], value, where)
    else:
        raise Usage(f"{where}: `{key}` is a value of the machine file and has no fields")


def _members(inner: list[dict[str, Any]], which: str, where: str) -> list[dict[str, Any]]:
    if which == _EVERY:
        return inner
    if not re.fullmatch("[0-9]{1,4}", which):
        raise Usage(f"{where}: `{which}` is not a number; there are 0 to {len(inner) - 1}, or * for each")
    if int(which) >= len(inner):
        raise Usage(
            f"{where}: the machine file has {len(inner)} of them; there are 0 to {len(inner) - 1}, or * for each"
        )
    return [inner[int(which)]]


def has_equivalent(name: str) -> bool:
    """True if a modelled machine has this knob."""
    return name.startswith(IOSCHED) or name in _EQUIVALENT


# --- knobs -----------------------------------------------------------------------------------------------------------


def _of_knob(name: str, value: str, where: str, has_kernel: bool) -> list[tuple[str, object]]:
    """The machine's fields for a knob of its queues. Raises Usage for a knob without an equivalent."""
    if name.startswith(IOSCHED):
        return [_parameter(name, value)]
    match name:
        case "scheduler":
            return [("queue.scheduler", value)]
        case "nr_requests":
            return [("queue.nr_requests", _number(value))]
        case "max_sectors_kb":
            return [("queue.max_request", f"{value}KiB")]
        case "read_ahead_kb" if has_kernel:
            return [("queue.read_ahead", f"{value}KiB")]
        case "queue_depth":
            return [("drive.*.queue_depth", _number(value))]
        case "stripe_cache_size":
            return [("array.stripe_cache_size", _number(value))]
        case "write_cache":
            return [("drive.*.write_cache", value == "write back")]
        case _:
            raise Usage(
                f"{where}: a modelled machine has no knob `{name}`; set a field of it (machine.FIELD), or give a device"
            )


def _parameter(name: str, value: str) -> tuple[str, object]:
    """A parameter of an elevator; the machine file has units, sysfs has bare numbers."""
    one = knob(name)
    field = name.removeprefix(IOSCHED).removesuffix("_nsec")
    if one.values.kind == "flag":
        return f"queue.iosched.{field}", value == "1"
    unit = {"µs": "us"}.get(one.unit, one.unit) if one.unit in ("ns", "µs", "ms", "KiB") else ""
    return f"queue.iosched.{field}", f"{value}{unit}" if unit else _number(value)


def _number(text: str) -> object:
    return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else text


# --- TOML ------------------------------------------------------------------------------------------------------------


def _toml(data: Mapping[str, Any], path: str = "") -> str:
    """Write a document of scalars, lists of scalars, tables and lists of tables: everything in a machine file."""
    lines = [f"{_key(key)} = {_scalar(value)}" for key, value in data.items() if not _is_table(value)]
    text = "".join(f"{line}\n" for line in lines)
    for key, value in data.items():
        if isinstance(value, dict):
            text += f"\n[{path}{_key(key)}]\n{_toml(value, f'{path}{_key(key)}.')}"
        elif _is_table(value):
            text += "".join(f"\n[[{path}{_key(key)}]]\n{_toml(one, f'{path}{_key(key)}.')}" for one in value)
    return text


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _key(text: str) -> str:
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _scalar(text)


def _scalar(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(_scalar, value))}]"
        case dict():
            return f"{{ {', '.join(f'{_key(name)} = {_scalar(one)}' for name, one in value.items())} }}"
        case _:
            return str(value)
