"""The host and the target of a durability test, as the journal keeps them for the front end."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class TestedTarget(Struct, frozen=True, kw_only=True):
    """The target at the time of writing."""

    path: str
    kind: str
    """`device` or `file`."""
    size_bytes: int
    direct: bool
    device: dict[str, Any] | None = None
    """The device, or the one under the file."""
    write_cache: str | None = None
    """The kernel's view of the cache (queue/write_cache): it does not flush one that is `write through`."""
    file_system: str | None = None
    file_system_id: int | None = None
    """statvfs f_fsid of the file's folder."""


class TestDetails(Struct, frozen=True, kw_only=True):
    """Version, host, boot and target of a test, and when it started."""

    version: str
    started: str
    host: str
    boot: str
    """Boot id of the kernel."""
    target: TestedTarget
