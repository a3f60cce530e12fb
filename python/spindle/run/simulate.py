"""Modelled machines: their files, and the figures of a run on one."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from spindle import _core
from spindle.result.figures import Figures
from spindle.run.errors import Usage

LARGEST_FILE_BYTES = 1 << 20
"""Machine files are shorter."""


class DriveCounters(Struct, frozen=True, kw_only=True):
    """Counters of one drive over the whole run, ramp included; sums of times in ns."""

    name: str
    model: str
    reads: int
    writes: int
    flushes: int
    read_bytes: int
    write_bytes: int
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
    from_medium: int
    from_buffer: int
    partly_buffer: int
    to_write_cache: int

    @property
    def drive_ns(self) -> int:
        """Time of all commands at the drive."""
        return self.drive_queue_ns + self.overhead_ns + self.seek_ns + self.rotation_ns + self.transfer_ns


class Rebuild(Struct, frozen=True, kw_only=True):
    """A member during its rebuild."""

    member: int
    bytes: int
    done_bytes: int
    finished_ns: int | None


class SimulatedRun(Struct, frozen=True, kw_only=True):
    """The result of a run on a modelled machine."""

    run: Figures
    drives: list[DriveCounters]
    rebuild: Rebuild | None
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
    return msgspec.json.decode(machine.to_json(), type=MachineDescription)


def read_figures(text: str) -> SimulatedRun:
    """Read the core's figures."""
    return msgspec.json.decode(text, type=SimulatedRun)
