"""Options that state a need: its purpose and numbers."""

from __future__ import annotations

import click

from spindle.assess.purpose import PURPOSES, Amount, LatencyLimit, default_text, every_key
from spindle.base.commands import option as option_of
from spindle.cli.options.added import added


def need_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the purpose, and an option for each number of a need."""
    purpose = click.option(
        "--for", "purpose", required=True, type=click.Choice(list(PURPOSES)), help="What the storage is for."
    )
    numbers = [click.option(option_of(key), key, metavar=_metavar(key), help=_help(key)) for key in every_key()]
    return added(command, [purpose, *numbers])


def _entries(key: str) -> dict[str, Amount | LatencyLimit]:
    """Purpose -> its number of this name."""
    return {name: purpose.number(key) for name, purpose in PURPOSES.items() if key in purpose.keys}


def _metavar(key: str) -> str:
    first = next(iter(_entries(key).values()))
    if isinstance(first, LatencyLimit):
        return "TIME"
    return "N" if first.kind == "number" and key != "rate" else "RATE"


def _help(key: str) -> str:
    """`postgres, mysql: transactions a second; default: 100.`"""
    parts: dict[str, list[str]] = {}
    for name, each in _entries(key).items():
        words = f"{each.words}, at most" if isinstance(each, LatencyLimit) else each.words
        parts.setdefault(f"{words}; default: {default_text(each)}", []).append(name)
    return ". ".join(f"{', '.join(names)}: {text}" for text, names in parts.items()) + "."
