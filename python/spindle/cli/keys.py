"""Workload keys as options. The core's table of keys is the one source: a new key there is a new option here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import click

from spindle import _core

KEY_PREFIX = "key_"
"""In front of a key's name among a verb's values, so that no other option can have it."""


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
    """Every key, in the order of the documentation."""
    known = {field.name for field in fields(Key)}
    return [
        Key(**{name: value for name, value in key.items() if name in known})
        for key in json.loads(_core.workload_keys())
    ]


def key_options(command: click.decorators.FC) -> click.decorators.FC:
    """Adds an option for each key that has one."""
    for key in reversed([key for key in keys() if key.option]):
        command = _option(key)(command)
    return command


def _option(key: Key) -> Any:
    flag = "--" + key.name.replace("_", "-")
    text = key.help[:1].upper() + key.help[1:] + "."
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
    """Values that a shell may offer: the key's choices, or what its help names."""
    values = key.choices or (key.example, key.default)
    return [value for value in values if value and value.startswith(begun)]


def _metavar(key: Key) -> str:
    return "|".join(key.choices) if key.choices else key.kind.upper()


def overrides_of(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Takes the keys that were given out of a verb's values, as the core wants them."""
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
        help="Set a key, of one stream if it is named. May be repeated.",
    )(command)


def vary_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--vary STREAM.key=value,value`."""
    return click.option(
        "--vary",
        "variations",
        multiple=True,
        metavar="[STREAM.]KEY=VALUES",
        help="Run the workload with each of these values, separated by commas; 4KiB..1MiB: doubling. May be repeated: "
        "each combination is run.",
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
