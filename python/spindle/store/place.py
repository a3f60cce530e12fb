"""The place of a store: from `store=`, $SPINDLE_STORE, or the user's data folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import StoreUsage

VARIABLE = "SPINDLE_STORE"
POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class StorePlace:
    """A file of SQLite, or the URL of a PostgreSQL database."""

    file: Path | None = None
    url: str | None = None

    def __str__(self) -> str:
        return str(self.file) if self.url is None else without_password(self.url)


def default_file() -> Path:
    """The default store (XDG base directory specification)."""
    named = os.environ.get("XDG_DATA_HOME", "")
    folder = Path(named) if os.path.isabs(named) else Path.home() / ".local/share"
    return folder / "spindle" / "store.db"


def place_of(where: str | os.PathLike[str] | None) -> StorePlace:
    """Resolve a place: None is $SPINDLE_STORE, or else the default file."""
    text = os.fspath(where) if where is not None else os.environ.get(VARIABLE, "")
    named = f"${VARIABLE}" if where is None else "the store"
    if not text:
        if where is not None:
            raise StoreUsage("the store has no name; give a file or a postgresql:// URL")
        return StorePlace(file=default_file())
    if text.startswith(POSTGRES):
        return StorePlace(url=text)
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    scheme, found, _ = text.partition("://")
    if found:
        raise StoreUsage(f"{named}: `{scheme}://` is not a store; give a file or postgresql://USER@HOST/DATABASE")
    return StorePlace(file=Path(os.path.expanduser(text)))


def without_password(url: str) -> str:
    """The URL for messages."""
    scheme, _, rest = url.partition("://")
    who, at, host = rest.rpartition("@")
    user, colon, _ = who.partition(":")
    return f"{scheme}://{user}{':***' if colon else ''}{at}{host}"
