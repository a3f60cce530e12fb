"""`--store`: the store of results, for the verbs that measure (with `--tag`) and for those that read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # parsing options must not import SQLAlchemy
    from spindle.library.stores import Store
    from spindle.result.record import Record

DEFAULT = "default"
"""`--store` without a value: $SPINDLE_STORE, or the user's data folder."""


@dataclass(frozen=True)
class StoreOptions:
    """The store of a result, and its tags."""

    where: str
    tags: tuple[str, ...]

    def keep(self, record: Record) -> None:
        """Store the result; it is durable on return. Raises StoreError."""
        with opened(self.where) as store:
            run_id = store.raw.add(record, tags=self.tags)
            print(f"spindle: stored as {run_id} in {store.place}", file=sys.stderr)


@contextmanager
def opened(where: str | None, *, read_only: bool = False, create: bool = True) -> Iterator[Store]:
    """Open the store that an option names. Its messages go to stderr."""
    from spindle.cli.failure import one_line
    from spindle.library.stores import open_store

    def say(line: str) -> None:
        print(f"spindle: {one_line(line)}", file=sys.stderr)

    place = None if where in (None, DEFAULT) else where
    with open_store(place, read_only=read_only, create=create, say=say) as store:
        yield store


def _check(_context: click.Context, _parameter: click.Parameter, where: str | None) -> str | None:
    """Check before the work begins that results can be stored."""
    if where is not None:
        if where != DEFAULT and not any(sign in where for sign in "/.:"):
            raise click.BadParameter(
                f"{where!r} may not be meant as a store; write --store ./{where} for a file of this name, "
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
    """Return the option `--store`, whose value is optional."""
    return click.option(
        "--store", "store", is_flag=False, flag_value=DEFAULT, metavar="[FILE|URL]", callback=_check,
        help=f"{what} in a file, a postgresql:// URL, or (without a value) $SPINDLE_STORE or your data folder.",
    )  # fmt: skip


def store_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add `--store` and `--tag` to a verb that measures."""
    command = click.option(
        "--tag", "tags", multiple=True, metavar="NAME", callback=_check_tags,
        help="Tag the stored result. May be repeated.",
    )(command)  # fmt: skip
    return where_option("Store the result")(command)


def stored_by(values: dict[str, Any]) -> StoreOptions | None:
    """Take the store options out of a verb's values."""
    where, tags = values.pop("store"), values.pop("tags")
    if where is None and tags:
        raise click.UsageError("--tag: only stored results have tags; add --store")
    return StoreOptions(where, tags) if where is not None else None


def store_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add `--store` to a verb that reads or changes a store."""
    return click.option(
        "--store", "where", metavar="FILE|URL",
        help="The store: a file or a postgresql:// URL.  [default: $SPINDLE_STORE, or one in your data folder]",
    )(command)  # fmt: skip
