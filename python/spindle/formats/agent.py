"""Results of `spindle-agent`, made complete: it measures without Python, and saves what the kernel printed about the
block stack. The files of the kernel are laid out in a temporary folder, where the modules that read this machine read
them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from spindle.base.decoding import decode_json
from spindle.formats.found import UNKNOWN_TIME, utc
from spindle.host import diskstats
from spindle.host import environment as machine_environment
from spindle.host import settings as machine_settings
from spindle.host.devices import Device, DevNumber, Machine, by_number
from spindle.host.mounts import Mount, parse_mountinfo
from spindle.host.stack import Layer, layers_of
from spindle.result.document import Unreadable
from spindle.result.figures import Figures
from spindle.result.phases import all_carried_out, figures_of, partial
from spindle.result.record import (
    DeviceCounters,
    MachineActivity,
    PhasesRecord,
    Preparation,
    RunRecord,
    Settings,
    Tool,
    WorkloadRequest,
    changed,
)
from spindle.result.rules import judged
from spindle.result.target import Target
from spindle.result.workload import Workload

KIND = "agent"
"""Its `kind`, where a record has `run`."""
FORMAT = 1
"""Version of its document that is read here (crates/agent/src/document.rs)."""
UNWATCHED: dict[str, Any] = {
    "findings": [
        {
            "check": "watch",
            "level": "warn",
            "text": "unknown: spindle-agent does not check whether the machine is idle before a run or during it",
        }
    ],
    "unchecked": ["limits of control groups and caches of drives: spindle-agent does not read them"],
}
"""The check of the machine that the agent did not make."""
MOST_FILES = 20_000
_ELSEWHERE = "/loop/backing_file"
"""A path of the machine that was measured; here it may lead to something else."""
_PATH = re.compile(r"(sys|proc)(/(?!\.{1,2}(/|$))[^/\0]{1,255}){1,40}")


class _Host(Struct):
    architecture: str
    name: str | None = None
    cpus: int | None = None


class _Place(Struct):
    asked: str
    kind: str
    size_bytes: int
    created: bool
    writes: bool
    device: str | None
    below: list[str]
    mount: str | None


class _Before(Struct):
    at_ns: int
    files: dict[str, str]
    links: dict[str, str]


class _After(Struct):
    at_ns: int
    files: dict[str, str | None]


class _Load(Struct):
    started_s: int
    workload: Workload
    dropped_cache: bool
    figures: Figures
    before: _Before
    after: _After


class _Document(Struct):
    kind: str
    format: int
    tool: Tool
    host: _Host
    target: _Place
    request: WorkloadRequest
    workload: Workload
    runs: list[_Load]
    left_out: int


def looks(data: bytes) -> bool:
    """True if it looks like a result of the agent."""
    return re.match(rb'\s*\{\s*"kind"\s*:\s*"agent"', data[:200]) is not None


def read(data: bytes, name: str, preflight: Mapping[str, Any] = UNWATCHED) -> RunRecord | PhasesRecord:
    """Return the record, with verdicts. `preflight`: the check of the machine before the load, if the caller made one.
    Raises `Unreadable` naming the file `name`.
    """
    document = _decoded(data, name)
    try:
        runs = [_run(document, load, _id(data, load, place), preflight) for place, load in enumerate(document.runs)]
    except (OSError, ValueError) as error:
        raise Unreadable(f"{name}: the files of the kernel in it cannot be laid out: {error}") from None
    if not document.workload.phases:
        return runs[0]
    spec, done = document.workload, len(runs)
    complete = done - (1 if runs[-1].figures.is_partial else 0)
    evidence = f"ended in phase {runs[-1].workload.name}, {complete} of {len(spec.phases)} phases are complete"
    return PhasesRecord(
        id=_id(data, document.runs[0], done),
        started=runs[0].started,
        tool=runs[0].tool,
        workload=spec,
        request=document.request,
        target=runs[0].target,
        phases=[figures_of(run) for run in runs],
        runs=runs,
        verdicts=[partial(spec, complete, evidence) if complete < len(spec.phases) else all_carried_out(runs)],
    )


def _decoded(data: bytes, name: str) -> _Document:
    try:
        document = decode_json(data, _Document)
    except msgspec.ValidationError as error:
        raise Unreadable(f"{name}: not a result of this version of spindle-agent: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"{name}: not JSON: {error}; give a file written by `spindle-agent run --output`") from None
    if document.kind != KIND or not document.runs:
        raise Unreadable(f"{name}: it has no run of spindle-agent")
    if document.format > FORMAT:
        raise Unreadable(
            f"{name}: format {document.format} is newer than this spindle reads ({FORMAT}); use a newer spindle"
        )
    return document


def _id(data: bytes, load: _Load, place: int) -> str:
    """The same each time that the file is read."""
    started = utc(load.started_s)
    stamp = started.replace("-", "").replace(":", "") if started else UNKNOWN_TIME
    return f"{stamp}-{hashlib.sha256(data + b'%d' % place).hexdigest()[:6]}"


def _run(document: _Document, load: _Load, run_id: str, preflight: Mapping[str, Any]) -> RunRecord:
    with _laid_out(load.before) as machine:
        own = _devices(document.target.device, machine)
        devices = [*own, *(device for number in document.target.below for device in _devices(number, machine))]
        environment = _environment(document, machine)
        target = _target(document.target, own, machine)
        settings = _settings(target, devices, machine)
        counters = diskstats.snapshot(devices, machine).counters
        fetched = diskstats.fetched_bytes(machine)
        _change(machine.proc.parent, load.after.files)
        after = _settings(target, devices, machine)
        deltas = diskstats.delta(
            diskstats.Snapshot(load.before.at_ns, counters),
            diskstats.Snapshot(load.after.at_ns, diskstats.snapshot(devices, machine).counters),
        )
        fetched_after = diskstats.fetched_bytes(machine)
    return judged(
        RunRecord(
            id=run_id,
            started=utc(load.started_s) or "",
            tool=document.tool,
            workload=load.workload,
            request=document.request,
            target=target,
            seed=load.workload.seed,
            figures=load.figures,
            fetched_bytes=None if fetched is None or fetched_after is None else fetched_after - fetched,
            devices=_counters(devices, own, deltas),
            settings=Settings(
                before=settings,
                after=after,
                changed=changed(settings, after),
            ),
            environment=environment,
            preflight=dict(preflight) if target.traits.does_io else {},
            activity=MachineActivity(cpu_others=None, cpu_iowait=None, cpu_steal=None),
            verdicts=[],
            preparation=Preparation(sync="target", kept_pages=not load.dropped_cache),
        )
    )


def _settings(target: Target, devices: list[Device], machine: Machine) -> dict[str, str]:
    """None matters where nothing is stored."""
    return machine_settings.settings_of(devices, machine) if target.traits.does_io else {}


def _devices(number: str | None, machine: Machine) -> list[Device]:
    device = by_number(DevNumber.parse(number), machine) if number is not None else None
    return [] if device is None else [device]


def _counters(
    devices: list[Device], under_test: list[Device], deltas: dict[str, diskstats.DiskDelta]
) -> list[DeviceCounters]:
    return [
        DeviceCounters(
            name=device.name,
            role="target" if device in under_test else "below",
            seconds=delta.seconds,
            delta=delta.numbers(),
            iostat=delta.iostat(),
        )
        for device in devices
        if (delta := deltas.get(device.counted_name)) is not None
    ]


def _target(place: _Place, own: list[Device], machine: Machine) -> Target:
    mount = next(iter(parse_mountinfo(place.mount or "")), None)
    above = [] if mount is None else [_file_system(mount)]
    detail: dict[str, Any] = {
        "path": place.asked,
        "kind": place.kind,
        "size_bytes": place.size_bytes,
        "writes": place.writes,
        "devices": [device.to_dict() for device in own],
        "stack": [layer.to_dict() for layer in (*above, *layers_of(own, machine, len(above)))],
        "file_system": None if mount is None else mount.fs_type,
    }
    target = Target(
        asked=place.asked,
        kind=place.kind,
        size_bytes=place.size_bytes,
        created=place.created,
        has_device=bool(own),
        detail=detail,
    )
    return target if target.traits.does_io else replace(target, detail={})


def _file_system(mount: Mount) -> Layer:
    details: dict[str, object] = {
        "mount_point": mount.point,
        "source": mount.source,
        "options": mount.options,
        "super_options": mount.super_options,
    }
    return Layer(0, "file system", mount.fs_type, details)


def _environment(document: _Document, machine: Machine) -> dict[str, Any]:
    """The measured machine's; nothing of the one that reads the file."""
    found: dict[str, Any] = dict(machine_environment.environment(None, machine))
    found["kernel"] |= {"name": "Linux", "architecture": document.host.architecture}
    found["cpu"] |= {"online": None, "usable": document.host.cpus}
    found["versions"] = {document.tool.name: document.tool.version}
    return found


@contextmanager
def _laid_out(before: _Before) -> Iterator[Machine]:
    """The kernel's files as files of a temporary folder. Names that would lead out of it are refused."""
    if len(before.files) + len(before.links) > MOST_FILES:
        raise ValueError(f"more than {MOST_FILES} files")
    with TemporaryDirectory(prefix="spindle-agent-") as folder:
        root = Path(folder)
        # Files first: no link can lead one of them elsewhere.
        for name, text in before.files.items():
            if not name.endswith(_ELSEWHERE):
                _lay(_inside(root, name), text)
        for name, to in before.links.items():
            link, aim = _inside(root, name), _inside(root, to)
            link.parent.mkdir(parents=True, exist_ok=True)
            os.symlink(aim, link)
        yield Machine(sys=root / "sys", proc=root / "proc", dev=root / "dev")


def _inside(root: Path, name: str) -> Path:
    if _PATH.fullmatch(name) is None:
        raise ValueError(f"{name[:80]!r} is no path of a file of the kernel")
    return root / name


def _lay(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("x", encoding="utf-8") as file:
        file.write(text)


def _change(root: Path, files: Mapping[str, str | None]) -> None:
    """The state after the load. A file that was not there before is left out: a link could lead it elsewhere."""
    for name, text in files.items():
        place = _inside(root, name)
        if place.resolve() != place or not place.is_file():
            continue
        place.unlink()
        if text is not None:
            _lay(place, text)
