"""Runs on modelled machines from Python: `spindle.simulate("six-sata-f2", "randomio", size="64KiB")`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from spindle import _core
from spindle.host.outputs import Output
from spindle.result.figures import Figures
from spindle.run.errors import Usage
from spindle.run.resolve import Resolved, resolve
from spindle.run.trace import KIND, started

LARGEST_FILE_BYTES = 1 << 20
"""No machine file is that long."""


class DriveCounters(Struct, frozen=True, kw_only=True):
    """What one drive did over the whole run, ramp included; sums of times in ns."""

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
    """A member being rebuilt."""

    member: int
    bytes: int
    done_bytes: int
    finished_ns: int | None


class Simulated(Struct, frozen=True, kw_only=True):
    """What came out of a run on a modelled machine."""

    run: Figures
    drives: list[DriveCounters]
    rebuild: Rebuild | None
    capacity: int
    events: int


class Described(Struct, frozen=True, kw_only=True):
    """A machine in a few words."""

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
    """The text of a machine: a file's, or that of the catalogue, whose names are those without folder and ending.
    Raises `Usage` or `_core.ConfigError`."""
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


def describe(machine: _core.Machine) -> Described:
    """What is known of it before it runs."""
    return msgspec.json.decode(machine.to_json(), type=Described)


def read_figures(text: str) -> Simulated:
    """The core's figures."""
    return msgspec.json.decode(text, type=Simulated)


def simulate(
    machine: _core.Machine | str | Path,
    workload: _core.Workload | Resolved | str,
    options: Mapping[str, object] | None = None,
    *,
    trace: str | Path | None = None,
    interval_ns: int = 1_000_000_000,
    **more: object,
) -> Simulated:
    """Run a workload on a modelled machine.

    `machine`: one that was parsed, a file, or a name of the catalogue; `workload`: one that was parsed, a preset or a
    file, with workload keys as options (`size="64KiB", workers=48`). `trace`: a file for every command of every drive.
    Raises `_core.ConfigError`, one line.
    """
    if not isinstance(machine, _core.Machine):
        machine = _core.Machine.parse(machine_text(str(machine)), str(machine))
    if isinstance(workload, str):
        given = {**(options or {}), **more}
        workload = resolve(workload, [(key, _option(value)) for key, value in given.items()])
    elif options or more:
        raise Usage("options go with a workload that is given by name; this one is resolved already")
    core = workload.core if isinstance(workload, Resolved) else workload
    load = started(machine, core, Output(Path(trace), KIND, "trace") if trace is not None else None, interval_ns)
    try:
        while not load.wait(0.2):
            pass
    finally:
        load.stop()
    return read_figures(load.figures())


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
