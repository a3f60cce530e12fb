"""Files that belong to a record: stored with their content, or by path and SHA-256."""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select

from . import schema
from .errors import StoreError, StoreUsage
from .seal import insert_sealed, update_sealed
from .words import storable

LARGEST_BYTES = 64 << 20
"""Larger files are stored by path: they are too large for a database."""


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A file that belongs to a record."""

    name: str
    media_type: str
    sha256: str
    size_bytes: int
    path: str | None
    """Its path; None: its content is in the store."""


@dataclass(frozen=True)
class Content:
    """A file that is ready to be attached."""

    artefact: Artefact
    body: bytes | None


def content_of(file: Path, *, name: str | None = None, by_path: bool = False) -> Content:
    """Read a file. Raises StoreUsage."""
    try:
        if not file.is_file():
            raise StoreUsage(f"{file}: {'not a file' if file.exists() else 'no such file'}; name one to attach")
        size = file.stat().st_size
        if size > LARGEST_BYTES and not by_path:
            raise StoreUsage(f"{file}: {size} bytes, more than 64 MiB; attach it `by_path=`")
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        body = None if by_path else file.read_bytes()
    except OSError as error:
        raise StoreUsage(f"{file}: cannot be read: {(error.strerror or '').lower()}; check its rights") from None
    return Content(
        Artefact(
            name=storable(name or file.name),
            media_type=mimetypes.guess_type(file.name)[0] or "application/octet-stream",
            sha256=digest,
            size_bytes=size,
            path=storable(str(file.resolve())) if by_path else None,
        ),
        body,
    )


def attach(connection: Connection, record_key: int, content: Content) -> None:
    """Attach it; it replaces a file of the same name."""
    found = content.artefact
    values = {
        "media_type": found.media_type,
        "sha256": found.sha256,
        "size_bytes": found.size_bytes,
        "body": content.body,
        "path": found.path,
    }
    table = schema.artefacts
    same = (table.c.record_key == record_key) & (table.c.name == found.name)
    if update_sealed(connection, table, same, values) == 0:
        insert_sealed(connection, table, {"record_key": record_key, "name": found.name, **values})


def artefacts_of(connection: Connection, record_key: int) -> list[Artefact]:
    """The files of a record, by name."""
    table = schema.artefacts.c
    query = (
        select(table.name, table.media_type, table.sha256, table.size_bytes, table.path)
        .where(table.record_key == record_key)
        .order_by(table.name)
    )
    return [Artefact(**row._mapping) for row in connection.execute(query)]


def body_of(connection: Connection, record_key: int, name: str) -> bytes:
    """The content. A file stored by path is read from there if it has not changed."""
    table = schema.artefacts.c
    query = select(table.body, table.path, table.sha256).where(table.record_key == record_key, table.name == name)
    row = connection.execute(query).first()
    if row is None:
        names = ", ".join(each.name for each in artefacts_of(connection, record_key)) or "none"
        raise StoreUsage(f"{name}: no such file is attached; the record has {names}")
    try:
        body = bytes(row.body) if row.body is not None else Path(row.path).read_bytes()
    except OSError as error:
        raise StoreError(f"{row.path}: attached, but it cannot be read: {(error.strerror or '').lower()}") from None
    if hashlib.sha256(body).hexdigest() != row.sha256:
        raise StoreError(f"{row.path or name}: attached, but it was changed since")
    return body
