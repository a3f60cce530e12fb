"""Signatures of file systems, arrays, partition tables and the like, as util-linux finds them.

`wipefs` lists all signatures with a magic number, `blkid -p` decides on the content; a type that either reports counts.
Both get the open descriptor, so they read the very device that was checked. If they fail, that is an error and never
"no signature".
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass

TIMEOUT_S = 60  # a drive in standby needs half a minute to spin up
TOOL_FOLDERS = "/usr/sbin:/sbin"
"""Folders of util-linux that may be missing in the user's PATH."""
_FOUND, _NOTHING, _AMBIVALENT = 0, 2, 8  # exit status of blkid -p (blkid(8))


class UnknownContent(Exception):
    """The content of the device cannot be determined; the text says why."""


@dataclass(frozen=True)
class Signature:
    """One signature: its type in libblkid's words (ext4, LVM2_member, gpt ...) and label."""

    type: str
    label: str | None = None

    def __str__(self) -> str:
        return f"{self.type} (label {self.label})" if self.label else self.type


def signatures_of(fd: int) -> list[Signature]:
    """All signatures on an open block device. Raises UnknownContent."""
    found = {signature.type: signature for signature in _wipefs(fd)}
    for signature in _blkid(fd):
        found.setdefault(signature.type, signature)
    return list(found.values())


def uuid_of(fd: int) -> str | None:
    """UUID of the file system on an open block device, in lower case; None without one. Raises UnknownContent."""
    result = _tool(["blkid", "--probe", "--match-tag", "UUID", "--output", "value", f"/proc/self/fd/{fd}"], fd)
    if result.returncode not in (_FOUND, _NOTHING, _AMBIVALENT):
        raise UnknownContent(f"blkid: {_first_line(result.stderr)}")
    return result.stdout.strip().lower() or None


def _wipefs(fd: int) -> list[Signature]:
    # Without --all, wipefs only reads.
    result = _tool(["wipefs", "--json", "--output", "TYPE,LABEL", f"/proc/self/fd/{fd}"], fd)
    if result.returncode != 0:
        raise UnknownContent(f"wipefs: {_first_line(result.stderr)}")
    if not result.stdout.strip():
        return []
    try:
        entries = json.loads(result.stdout)["signatures"]
        return [Signature(entry["type"], entry["label"]) for entry in entries]
    except (ValueError, KeyError, TypeError) as error:
        raise UnknownContent("wipefs: answer not understood") from error


def _blkid(fd: int) -> list[Signature]:
    result = _tool(["blkid", "--probe", "--output", "export", f"/proc/self/fd/{fd}"], fd)
    if result.returncode == _AMBIVALENT:
        return [Signature("ambivalent")]
    if result.returncode == _NOTHING and not result.stderr.strip():
        return []
    if result.returncode != _FOUND:
        raise UnknownContent(f"blkid: {_first_line(result.stderr)}")
    tags = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    return [Signature(tags[key], tags.get("LABEL")) for key in ("TYPE", "PTTYPE") if key in tags]


def _tool(command: list[str], fd: int) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "PATH": f"{os.environ.get('PATH', '')}:{TOOL_FOLDERS}"}
    try:
        return subprocess.run(
            command,
            pass_fds=(fd,),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            env=environment,
            check=False,
        )
    except FileNotFoundError as error:
        raise UnknownContent(f"{command[0]} is missing (package util-linux)") from error
    except subprocess.TimeoutExpired as error:
        raise UnknownContent(f"{command[0]} gave no answer in {TIMEOUT_S} s") from error
    except OSError as error:
        raise UnknownContent(f"{command[0]}: {error.strerror}") from error


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["failed without a message"])[0]
