"""Workload keys as options, from the core's table of keys: a new key there is a new option here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import click

from spindle import _core

KEY_PREFIX = "key_"
"""Prefix of a key's name among a verb's values, to keep it apart from other options."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key of a workload file."""

    name: str
    level: str
    kind: str
    help: str
    default: str
    example: str
    choices: tuple[str, ...] = ()
    opposite: str | None = None
    option: bool = True


def keys() -> list[Key]:
    """Return every key, in the order of the documentation."""
    known = {field.name for field in fields(Key)}
    return [
        Key(**{name: value for name, value in key.items() if name in known})
        for key in json.loads(_core.workload_keys())
    ]


def key_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add an option for each key that has one."""
    for key in reversed([key for key in keys() if key.option]):
        command = _option(key)(command)
    return command


def _option(key: Key) -> Any:
    flag = "--" + key.name.replace("_", "-")
    text = key.help[:1].upper() + key.help[1:] + "."
    if key.choices and not _is_short(key):
        text += f" One of {', '.join(key.choices)}."
    if key.kind == "flag":
        opposite = f"--{key.opposite or 'no-' + flag[2:]}"
        return click.option(f"{flag}/{opposite}", KEY_PREFIX + key.name, default=None, help=text)
    return click.option(
        flag,
        KEY_PREFIX + key.name,
        metavar=_metavar(key),
        help=f"{text} Example: {key.example}",
        shell_complete=lambda _context, _parameter, begun: completed(key, begun),
    )


def completed(key: Key, begun: str) -> list[str]:
    """Return completions for the shell: the key's choices, or the values named in its help."""
    values = key.choices or (key.example, key.default)
    return [value for value in values if value and value.startswith(begun)]


def _metavar(key: Key) -> str:
    return _listed(key) if _is_short(key) else key.kind.upper()


def _listed(key: Key) -> str:
    return "|".join(key.choices)


def _is_short(key: Key) -> bool:
    """The choices are short enough for the left column of a help page of 80 columns."""
    return bool(key.choices) and len(_listed(key)) <= 36


def overrides_of(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Take the given keys out of a verb's values, as the core expects them."""
    for name in [name for name in values if name.startswith(KEY_PREFIX)]:
        value = values.pop(name)
        if value is not None:
            yield name.removeprefix(KEY_PREFIX), str(value).lower() if isinstance(value, bool) else value


def set_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--set STREAM.key=value`."""
    return click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="[STREAM.]KEY=VALUE",
        callback=_assignments,
        help="Set a key, of all streams or of STREAM. May be repeated.",
    )(command)


def vary_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--vary STREAM.key=value,value`."""
    return click.option(
        "--vary",
        "variations",
        multiple=True,
        metavar="[STREAM.]KEY=VALUES",
        help="Run the workload with each of these values (comma-separated; 4KiB..1MiB: doubling). May be repeated: "
        "every combination is run.",
    )(command)


def _assignments(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    found = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE; write for example log.size=64KiB")
        found.append((name.strip(), value.strip()))
    return tuple(found)
