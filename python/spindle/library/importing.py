"""Import of results into the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spindle.formats import read
from spindle.result.document import Unreadable
from spindle.run.errors import Usage
from spindle.store import Store, open_store
from spindle.store.connection import is_database
from spindle.store.place import POSTGRES


def take_in(store: Store, place: str, tags: Sequence[str], form: str | None = None) -> str:
    """Import `place` and return one line about it."""
    if place.startswith(POSTGRES) or is_database(Path(place)):
        return _store(store, place, tags)
    path = Path(place)
    if path.is_dir():
        return _folder(store, path, tags)
    before = store.count()
    ids = store.add_all(read(path, form), tags=tags, source=place)
    return f"{place}: {', '.join(ids)}{'' if store.count() > before else ', already stored'}"


def _store(store: Store, place: str, tags: Sequence[str]) -> str:
    with open_store(place, read_only=True) as other:
        if str(other.place) == str(store.place):
            raise Usage(f"{place}: this is the store itself; name another one")
        came = store.take_in(other, tags=tags)
    parts = [f"{len(came.records)} results ({came.new} new)"]
    parts += [
        f"campaign {name}" if name == there else f"campaign {there} as {name}" for there, name in came.campaigns.items()
    ]
    parts += [f"{came.recordings} recordings"] if came.recordings else []
    return f"{place}: {', '.join(parts)}"


def _folder(store: Store, folder: Path, tags: Sequence[str]) -> str:
    """Import every .json file in the folder and its subfolders. If one is not a result, nothing is stored."""
    files = sorted(path for path in folder.rglob("*.json") if path.is_file())
    if not files:
        raise Usage(f"{folder}: no file in it ends in .json; name files or another folder")
    try:
        records = [record for file in files for record in read(file)]
    except Unreadable as error:
        raise Unreadable(f"{error}; nothing of {folder} was stored") from None
    before = store.count()
    store.add_all(records, tags=tags, source=str(folder))
    return f"{folder}: {len(records)} results ({store.count() - before} new)"
