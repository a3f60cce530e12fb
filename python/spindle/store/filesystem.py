"""Checks if SQLite's write-ahead log is safe on the store's file system.

The log's index is shared memory: processes on several machines do not see the same, and file systems that are served by
a program or over a network may not share it even on one (https://www.sqlite.org/wal.html, "all processes must be on the
same host"). The older rollback journal is used there; readers and the writer wait for each other.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from spindle.host.mounts import mount_of

UNSAFE = re.compile(
    r"nfs\d?|lustre|gpfs|9p|cifs|smb\w*|ceph|afs|beegfs\w*|glusterfs|ocfs2|gfs2|virtiofs|vboxsf|prl_fs|pvfs2|orangefs"
    r"|coda|ncpfs|fuse(\..*|blk|ctl)?"
)
"""Types as in mountinfo."""


def type_of(path: Path) -> str | None:
    """File system type of a path or of its nearest existing parent folder; None: unknown."""
    for place in (path, *path.parents):
        try:
            mount = mount_of(os.path.realpath(place))
        except OSError:
            continue
        return mount.fs_type if mount is not None else None
    return None


def is_unsafe(fs_type: str | None) -> bool:
    """True if the write-ahead log is unsafe there."""
    return fs_type is not None and UNSAFE.fullmatch(fs_type) is not None
