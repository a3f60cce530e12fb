"""Prepares cells and checks them before any trial runs: a wrong name in the last cell should not end a night's run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spindle import _core
from spindle.campaign.cells import Cell
from spindle.campaign.hosts import OnHost, check_possible, knobs_of
from spindle.campaign.machine import with_fields
from spindle.campaign.plan import HOST, FileSystem, Load, Plan, Settings
from spindle.host.stack import device_of
from spindle.knobs import asking
from spindle.knobs.places import KnobFolder, of_device
from spindle.knobs.session import Setting
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload, resolve, resolve_text
from spindle.run.targets import MachineTarget, OnKernel, Target, on_kernel, parse, refusal

TARGET = "{target}"
"""Replaced by the target in the arguments of commands."""


@dataclass
class Sources:
    """The files of a plan as they were at its beginning: a resumed campaign must use the same."""

    folder: Path | None = None
    """Folder of the plan file; names in it are searched there first."""
    texts: dict[str, str] = field(default_factory=dict)
    """`workload NAME` or `machine NAME` -> text."""
    _resolved: dict[tuple[str, tuple[tuple[str, str], ...]], ResolvedWorkload] = field(default_factory=dict)

    def workload(self, name: str, overrides: Sequence[tuple[str, str]]) -> ResolvedWorkload:
        """The same as `run.resolve`, once for all cells with the same workload."""
        asked = name, tuple(overrides)
        if asked not in self._resolved:
            key = f"workload {name}"
            if key not in self.texts:
                self.texts[key] = resolve(self._path(name)).text
            is_file = name.endswith(".toml") or "/" in name
            source, stem = (name, Path(name).stem) if is_file else (f"preset {name}", name)
            self._resolved[asked] = resolve_text(self.texts[key], source, stem, overrides)
        return self._resolved[asked]

    def target(self, name: str) -> Target:
        """The same as `run.targets.parse`; a machine is the stored one."""
        key = f"machine {name}"
        if key not in self.texts:
            found = parse(self._path(name))
            if not isinstance(found, MachineTarget):
                return found
            self.texts[key] = found.read()
        return MachineTarget(name, self.texts[key])

    def _path(self, name: str) -> str:
        beside = self.folder / name if self.folder is not None and name.endswith(".toml") else None
        return str(beside) if beside is not None and beside.is_file() else name


@dataclass(frozen=True, kw_only=True)
class ReadyCell:
    """A cell that is ready to run."""

    cell: Cell
    on: Target
    workload: ResolvedWorkload | None = None
    """None: a command is the load."""
    filesystem: FileSystem | None = None
    load: Load | None = None
    create_bytes: int | None = None

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.on.asked

    @property
    def settings(self) -> Settings:
        """The settings of the plan."""
        return self.cell.settings

    @property
    def writes(self) -> bool:
        """True if the target itself is written, not files that are made in it."""
        if self.filesystem is not None:
            return True
        return not self.makes_files and self.workload is not None and self.workload.spec.writes

    @property
    def makes_files(self) -> bool:
        """True if the workload uses files of its own, made for each trial in a folder."""
        return self.on.place is not None and self.workload is not None and self.workload.spec.makes_files

    def knobs(self) -> list[Setting]:
        """Knobs of a real target. Raises KnobUsage."""
        if not self.settings.knobs:
            return []
        return asking.settings(place_of(self.on), [f"{name}={value}" for name, value in self.settings.knobs.items()])

    @property
    def seconds(self) -> float | None:
        """Length of a trial without its preparation; None: it does not end by time."""
        if self.load is not None:
            return (self.load.settle_ns + self.load.interval_ns) / 1e9
        assert self.workload is not None
        loads = self.workload.spec.loads
        if any(load.end.time_ns is None for load in loads):
            return None
        return sum(load.ramp_ns + (load.end.time_ns or 0) for load in loads) / 1e9


def place_of(target: Target) -> KnobFolder | None:
    """The disk whose queue a target uses; None: there is none."""
    if target.place is None:
        return None
    device = device_of(str(target.place if target.place.exists() else target.place.absolute().parent))
    return of_device(device) if device is not None else None


def prepare(plan: Plan, cells: Sequence[Cell], sources: Sources) -> list[ReadyCell]:
    """Prepare all cells. Raises Usage, KnobUsage or `_core.ConfigError`: one line."""
    return [_prepared(plan, cell, sources) for cell in cells]


def _prepared(plan: Plan, cell: Cell, sources: Sources) -> ReadyCell:
    settings, where = cell.settings, f"{plan.source}: {cell}"
    if plan.hosts:
        return _on_host(plan, cell, sources, where)
    if settings.target is None:
        raise Usage(f"{plan.source}: where should it run? give `target=`: a device, a file or a modelled machine")
    target = sources.target(settings.target)
    if settings.kernel:
        version = None if settings.kernel is True else settings.kernel
        target = on_kernel(target, version, f"{where}: kernel")
    refused = refusal(target, _given(settings))
    if refused is not None:
        raise Usage(f"{where}: {refused[0]}: {refused[1]}")
    if isinstance(target, MachineTarget | OnKernel):
        return _modelled(plan, cell, target, sources, where)
    if settings.machine:
        name = next(iter(settings.machine))
        raise Usage(f"{where}: machine.{name}: {settings.target} is no modelled machine; leave it out")
    return _real(plan, cell, target, sources, where)


def _on_host(plan: Plan, cell: Cell, sources: Sources, where: str) -> ReadyCell:
    host = next(one for one in plan.hosts if one.name == cell.levels[HOST])
    check_possible(plan, cell)
    workload = _workload(plan, cell.settings, sources, where)
    if workload.spec.makes_files or workload.spec.works_on_names:
        raise Usage(f"{where}: {workload.spec.name} makes files of its own, which hosts do not; take another workload")
    create = cell.settings.create or host.create
    knobs_of(cell.settings, host.target, where)
    return ReadyCell(
        cell=cell,
        on=OnHost(host.name, host.target),
        workload=workload,
        create_bytes=_size(create, where) if create is not None else None,
    )


def _given(settings: Settings) -> Iterator[str]:
    """Keys that some targets refuse."""
    given = {
        "setup": settings.setup,
        "teardown": settings.teardown,
        "filesystem": settings.filesystem,
        "create": settings.create,
        "load.command": settings.load.get("command"),
    }
    return (name for name, value in given.items() if value)


def _modelled(plan: Plan, cell: Cell, target: MachineTarget | OnKernel, sources: Sources, where: str) -> ReadyCell:
    settings = cell.settings
    machine = target.machine if isinstance(target, OnKernel) else target
    text = with_fields(machine.read(), settings.machine, settings.knobs, where, bool(settings.kernel))
    source = target.asked if text == machine.read() else f"{where}: {target.asked}"
    changed = replace(machine, text=text)
    try:
        parsed = _core.Machine.parse(text, source)
        if isinstance(target, OnKernel):
            target.check(parsed)
    except _core.ConfigError as error:
        # The line number belongs to generated text.
        raise Usage(_without_line(str(error), source) if source != target.asked else str(error)) from None
    workload = _workload(plan, settings, sources, where)
    on = replace(target, machine=changed) if isinstance(target, OnKernel) else changed
    return ReadyCell(cell=cell, on=on, workload=workload)


def _without_line(said: str, source: str) -> str:
    rest = said.removeprefix(source).lstrip(":")
    return f"{source}: {rest.lstrip('0123456789').removeprefix(':').strip()}"


def _real(plan: Plan, cell: Cell, target: Target, sources: Sources, where: str) -> ReadyCell:
    settings = cell.settings
    load = _load(settings)
    if target.several is not None:
        raise Usage(f"{plan.source}: target {target.asked}: names several; a trial runs on one of them")
    if settings.create is None and target.place is not None and not target.place.exists():
        raise Usage(
            f"{plan.source}: target {target.asked}: no such device, file or machine; `create` makes a test file"
        )
    if load is not None and (settings.filesystem or settings.create):
        raise Usage(f"{where}: load.command: the command has its own files; leave filesystem and create out")
    if settings.filesystem and settings.create:
        raise Usage(f"{where}: create: a test file is made in the file system; give filesystem.size instead")
    found = ReadyCell(
        cell=cell,
        on=target,
        workload=_workload(plan, settings, sources, where) if load is None else None,
        filesystem=FileSystem(**{"type": "ext4", **_any(settings.filesystem)}) if settings.filesystem else None,
        load=load,
        create_bytes=_size(settings.create, where) if settings.create is not None else None,
    )
    _check_place(found, settings, where)
    if found.filesystem is not None:
        _check_writes_no_other(found.filesystem, where)
    found.knobs()
    for command in (*settings.setup, *settings.teardown, *((load.command,) if load is not None else ())):
        if TARGET not in command[0] and shutil.which(command[0]) is None:
            raise Usage(f"{where}: {command[0]}: no such command, or it cannot be run")
    return found


def _check_place(found: ReadyCell, settings: Settings, where: str) -> None:
    """Check that there is a folder for files, and nothing else to make them in. Raises Usage."""
    if found.workload is None or found.on.place is None:
        return
    folder = found.on.place.is_dir()
    if found.makes_files:
        name = found.workload.spec.name
        if found.create_bytes is not None:
            raise Usage(f"{where}: create: makes one test file; {name} makes files of its own; leave it out")
        if "size" in settings.filesystem:
            raise Usage(f"{where}: filesystem.size: {name} makes files of its own; set options.filesize")
        if found.filesystem is None and not folder:
            raise Usage(
                f"{where}: {name} makes files of its own; name a folder as target, or a device with `filesystem`"
            )
    elif folder and found.create_bytes is None:
        raise Usage(f"{where}: target {found.target}: is a folder; `create` says how large a test file to make in it")


def _check_writes_no_other(wanted: FileSystem, where: str) -> None:
    """Refuse options by which mkfs and mount write to other devices and files: a journal, a log, further members, an
    undo file. The consent does not cover these. Raises Usage.
    """
    for key, words in (("mkfs", wanted.mkfs), ("mount", wanted.mount.split(","))):
        for word in words:
            if "/" in word or re.search(r"(^|,)\s*(device|logdev|rtdev|name|journal_path|journal_dev|loop)\b", word):
                raise Usage(
                    f"{where}: filesystem.{key}: {word}: names a device or file; only the target may be written"
                )


def _any(values: object) -> dict[str, Any]:
    assert isinstance(values, dict)
    return values


def _load(settings: Settings) -> Load | None:
    return Load(**_any(settings.load)) if settings.load.get("command") else None


def _size(text: str, where: str) -> int:
    try:
        return _core.parse_size(text)
    except _core.ConfigError as error:
        raise Usage(f"{where}: create: {error}; write for example 4GiB") from None


def _workload(plan: Plan, settings: Settings, sources: Sources, where: str) -> ResolvedWorkload:
    if settings.workload is None:
        raise Usage(f'{plan.source}: which workload? write workload = "randomio", or another preset or file')
    try:
        return sources.workload(settings.workload, list(settings.options.items()))
    except _core.ConfigError as error:
        raise Usage(f"{where}: {error}") from None
