"""`--store`: where results are kept, for the verbs that measure (with `--tag`) and for those that ask."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # a verb's options are made without SQLAlchemy
    from spindle.result.record import Record
    from spindle.store import Store

DEFAULT = "default"
"""What `--store` means without a value: $SPINDLE_STORE, or the user's data folder."""


@dataclass(frozen=True)
class Keeping:
    """Where a result is stored, and its tags."""

    where: str
    tags: tuple[str, ...]

    def keep(self, record: Record) -> None:
        """Durable on return. Raises StoreError."""
        with opened(self.where) as store:
            run_id = store.add(record, tags=self.tags)
            print(f"spindle: stored as {run_id} in {store.place}", file=sys.stderr)


@contextmanager
def opened(where: str | None, *, read_only: bool = False, create: bool = True) -> Iterator[Store]:
    """The store that an option names. What it has to say goes to stderr."""
    from spindle.cli.failure import one_line
    from spindle.store import open_store

    def say(line: str) -> None:
        print(f"spindle: {one_line(line)}", file=sys.stderr)

    place = None if where in (None, DEFAULT) else where
    with open_store(place, read_only=read_only, create=create, say=say) as store:
        yield store


def _check(_context: click.Context, _parameter: click.Parameter, where: str | None) -> str | None:
    """Before a minute of work: can results be stored there?"""
    if where is not None:
        if where != DEFAULT and not any(sign in where for sign in "/.:"):
            raise click.BadParameter(
                f"{where!r} may be meant for something else; write --store ./{where} for a file of this name, "
                "or put --store at the end"
            )
        with opened(where):
            pass
    return where


def _check_tags(_context: click.Context, _parameter: click.Parameter, tags: tuple[str, ...]) -> tuple[str, ...]:
    if tags:
        from spindle.store.campaigns import check_name

        for tag in tags:
            check_name(tag)
    return tags


def where_option(what: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--store`, whose value may be left out."""
    return click.option(
        "--store", "store", is_flag=False, flag_value=DEFAULT, metavar="[FILE|URL]", callback=_check,
        help=f"{what}: in a file, a postgresql:// URL, or (no value) $SPINDLE_STORE or your data folder.",
    )  # fmt: skip


def keep_options(command: click.decorators.FC) -> click.decorators.FC:
    """`--store` and `--tag` of a verb that measures."""
    command = click.option(
        "--tag", "tags", multiple=True, metavar="NAME", callback=_check_tags,
        help="Give the stored result this tag. May be repeated.",
    )(command)  # fmt: skip
    return where_option("Store the result")(command)


def keeping_of(values: dict[str, Any]) -> Keeping | None:
    """Takes them out of a verb's values."""
    where, tags = values.pop("store"), values.pop("tags")
    if where is None and tags:
        raise click.UsageError("--tag: tags are of stored results; add --store")
    return Keeping(where, tags) if where is not None else None


def store_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--store` of a verb that reads or changes a store."""
    return click.option(
        "--store", "where", metavar="FILE|URL",
        help="The store: a file or a postgresql:// URL.  [default: $SPINDLE_STORE, or one in your data folder]",
    )(command)  # fmt: skip
