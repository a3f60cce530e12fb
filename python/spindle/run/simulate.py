"""Modelled machines: their files, and the figures of a run on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from spindle import _core
from spindle.base.decoding import decode_json
from spindle.result.figures import Figures
from spindle.run.errors import Usage

LARGEST_FILE_BYTES = 1 << 20
"""Machine files are shorter."""


class FlashCounters(Struct, frozen=True, kw_only=True):
    """Work of a flash drive over the whole run, ramp included."""

    state: str
    written_bytes: int
    moved_bytes: int
    padded_bytes: int
    slc_bytes: int
    erases: int


class DriveCounters(Struct, frozen=True, kw_only=True):
    """Counters of one drive over the whole run, ramp included; sums of times in ns."""

    name: str
    model: str
    reads: int
    writes: int
    flushes: int
    read_bytes: int
    write_bytes: int
    discards: int
    discard_bytes: int
    back_merges: int
    front_merges: int
    request_merges: int
    request_waits: int
    host_queue_ns: int
    drive_queue_ns: int
    overhead_ns: int
    seek_ns: int
    rotation_ns: int
    transfer_ns: int
    busy_ns: int
    flash: FlashCounters | None
    from_medium: int
    from_buffer: int
    partly_buffer: int
    to_write_cache: int

    @property
    def drive_ns(self) -> int:
        """Time of all commands at the drive."""
        return self.drive_queue_ns + self.overhead_ns + self.seek_ns + self.rotation_ns + self.transfer_ns


class Rebuild(Struct, frozen=True, kw_only=True):
    """A member during its rebuild, or all during a check."""

    member: int | None
    """None: a check."""
    bytes: int
    done_bytes: int
    finished_ns: int | None


class PageCacheBytes(Struct, frozen=True, kw_only=True):
    """Bytes that the page cache read and wrote over the whole run."""

    read_bytes: int
    write_bytes: int


class SimulatedRun(Struct, frozen=True, kw_only=True):
    """The result of a run on a modelled machine."""

    run: Figures
    drives: list[DriveCounters]
    rebuild: Rebuild | None
    page_cache: PageCacheBytes | None
    capacity: int
    events: int


class MachineDescription(Struct, frozen=True, kw_only=True):
    """A short description of a machine."""

    name: str
    about: str
    capacity: int
    kernel: str
    schedulers: list[str]
    drives: list[str]
    level: str | None
    queue_depth: int
    cache_bytes: int
    flash_states: list[str | None]

    @property
    def flash_detail(self) -> dict[str, Any]:
        """The states of the drives, if one of them is a flash drive, for the description of a target."""
        return {"flash_states": self.flash_states} if any(self.flash_states) else {}


def machine_text(target: str) -> str:
    """The text of a machine: of a file, or of the catalogue, whose names have no folder and suffix. Raises `Usage`
    or `_core.ConfigError`.
    """
    path = Path(target)
    if not path.exists() and not target.endswith(".toml") and "/" not in target:
        return _core.machine_text(target)
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "no such file"
            name = path.name.removesuffix(".toml")
            known = _core.machine_names()
            instead = (
                f"the catalogue's is `{name}`" if name in known else f"give a machine file or one of {', '.join(known)}"
            )
            raise Usage(f"machine {target}: {what}; {instead}")
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise Usage(f"machine {target}: larger than 1 MiB; this is not a machine file")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Usage(f"machine {target}: not UTF-8 text at byte {error.start}; save it as UTF-8") from None
    except OSError as error:
        raise Usage(f"machine {target}: cannot be read ({error.strerror}); check its name and rights") from None


def describe(machine: _core.Machine) -> MachineDescription:
    """Describe a machine before it runs."""
    return decode_json(machine.to_json(), MachineDescription)


def read_figures(text: str) -> SimulatedRun:
    """Read the core's figures."""
    return decode_json(text, SimulatedRun)
