"""Block devices, files and folders of this machine; also several together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spindle import _core
from spindle.base.suggestions import meant
from spindle.conditions import caches
from spindle.conditions.sizing import rule_of
from spindle.host import environment as machine_environment
from spindle.host import groups, stack
from spindle.host import settings as machine_settings
from spindle.host.devices import Device
from spindle.host.errors import WrongTarget
from spindle.host.extents import backing_extents, extents_of
from spindle.host.guard import OpenTarget, StreamAccess
from spindle.host.several import PathSets, split
from spindle.host.testfiles import TestFiles
from spindle.result.record import Precondition, Preparation
from spindle.result.target import Target
from spindle.result.workload import Workload, WorkloadStream
from spindle.run import classes, precondition, preparation
from spindle.run.engine import LoadPart
from spindle.run.files import ChosenSize
from spindle.run.load import RunningLoad
from spindle.run.log import logged
from spindle.run.preparation import Preflight, QuietMachine
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LocalRunner, region_bytes
from spindle.run.trees import Trees
from spindle.run.watch import Watch

from .target import AS_IT_IS, Opening

SET = "files"
"""Name of the set of files for several paths, unless the workload names one."""
_MODELS_ONLY = {"trace": "only a modelled machine has a trace of its drives; give a machine file as target"}
_ONE_ONLY = {
    "create": "makes one test file, and several targets are named; leave it out",
    "precondition": "several targets are named; precondition each by itself",
}


@dataclass(frozen=True)
class PathTarget:
    """A path, or several."""

    asked: str
    several: PathSets | None = None
    """Existing devices and files, for the sets of files of the workload; `asked` names all."""
    is_modelled = False

    @classmethod
    def parse(cls, name: str) -> PathTarget:
        """Any other name: `/dev/sdb`, `t.bin`, `/mnt/x`, `/dev/sdb:/dev/sdc`."""
        paths = split(name)
        return cls(name, PathSets({SET: tuple(paths)}) if len(paths) > 1 else None)

    @property
    def place(self) -> Path:
        """The path, or the first of several."""
        return Path(self.several.paths[0] if self.several is not None else self.asked)

    @property
    def refusals(self) -> Mapping[str, str]:
        """See `Target`."""
        return _MODELS_ONLY if self.several is None else _MODELS_ONLY | _ONE_ONLY

    @contextmanager
    def open(self, resolved: ResolvedWorkload, watch: Watch, how: Opening = AS_IT_IS) -> Iterator[PathRunner]:
        """See `Target`."""
        if how.file is None:
            _refuse_machine(self.asked)
        also = [] if how.precondition is None else precondition.streams(how.precondition, resolved)
        access = [_access(stream) for stream in (*resolved.spec.all_streams, *also)]
        with how.consent.opened(how.file or self.several or self.asked, access) as target:
            opened = PathRunner(
                self.asked,
                how.engine_options,
                watch,
                target.size_bytes,
                _devices=list(target.counted_devices()),
                _under_test={device.name for device in target.devices},
                opened=target,
                created=how.file is not None,
                calm=how.calm,
                sized=how.sized,
            )
            if how.precondition is not None:
                opened.precondition = precondition.carry_out(opened, how.precondition, resolved)
            if not isinstance(how.file, TestFiles):
                yield opened
                return
            with Trees(how.file.fileno()) as opened.trees:
                yield opened


def _refuse_machine(name: str) -> None:
    """Raises WrongTarget for a name that is nothing here, and nearly that of a machine of the catalogue."""
    if "/" not in name and not os.path.lexists(name) and (near := meant(name, _core.machine_names(), "", 0.8)):
        raise WrongTarget(f"{name}: no file, device or machine has this name; {near}")


def _access(stream: WorkloadStream) -> StreamAccess:
    return StreamAccess(
        write=stream.writes,
        direct=stream.direct,
        dsync=stream.sync.dsync,
        osync=stream.sync.osync,
        files=stream.files.set if stream.files is not None else None,
        names=stream.names is not None,
    )


@dataclass(kw_only=True)
class PathRunner(LocalRunner):
    """An open device, file or set of files."""

    opened: OpenTarget
    created: bool
    """True if made for this run."""
    calm: QuietMachine = field(default_factory=QuietMachine)
    sized: ChosenSize | None = None
    precondition: Precondition | None = None
    """Preconditioning of the target before its first run."""
    _caches: caches.Caches | None = None
    _looked: Preflight | None = None
    _extents: dict[str, object] | None = None
    """The file's extents on its device before the last load."""
    _backing_extents: dict[str, dict[str, object]] = field(default_factory=dict)
    """The same for the files behind loop devices, by device name."""

    @property
    def place(self) -> str:
        """See `LoadRunner`."""
        return self.opened.path

    @property
    def device(self) -> Device | None:
        """See `LoadRunner`."""
        return self.opened.device

    def idle(self) -> dict[str, Any]:
        """See `LoadRunner`; checked once."""
        if self._looked is None:
            self._write_out()  # earlier dirty pages would be written during the check, and during the run
            self._looked = preparation.look(self._devices, self.calm.preflight_options, self.watch)
        return self._looked.idle.to_dict()

    def _write_out(self) -> list[str]:
        self.watch.step("syncing")
        return preparation.write_out(self.opened, self._devices, self.calm.preflight_options)

    def _prepare(self, part: LoadPart) -> Preparation:
        synced = self._write_out()
        if part.drop_caches:
            self.opened.drop_cache()
        if self.calm.preflight_options.drop_caches:
            self.watch.step("dropping caches")
            caches.drop_caches()
        self._look_at_extents()
        return Preparation(
            sync="machine" if self.calm.preflight_options.sync_machine else "target",
            synced=synced,
            dropped_caches=self.calm.preflight_options.drop_caches,
            kept_pages=not part.drop_caches,
            waited_s=self._looked.waited_s if self._looked is not None else 0.0,
            changed_settings=self.calm.changed_settings,
            notes=self.calm.quiet.notes,
            precondition=self.precondition,
        )

    def _look_at_extents(self) -> None:
        """Read extents before a load, which may write into holes."""
        found = extents_of(self.opened.files[0].fd) if self.opened.is_one_file else None
        self._extents = found.to_dict() if found is not None else None
        behind = {device.name: backing_extents(device) for device in self._devices}
        self._backing_extents = {name: one.to_dict() for name, one in behind.items() if one is not None}

    def _settings(self) -> dict[str, str]:
        return machine_settings.settings_of(self._devices)

    def _environment(self) -> dict[str, Any]:
        return machine_environment.environment(self.opened.path)

    def _trouble(self) -> str | None:
        return self.opened.trouble()

    def target(
        self, spec: Workload | None = None, trouble: str | None = None, limits: groups.Limits | None = None
    ) -> Target:
        """See `LoadRunner`."""
        detail = dict(self.opened.to_dict())
        layers = stack.stack_of(self.opened.files[0].fd)
        detail["stack"] = [layer.to_dict() for layer in layers]
        file_system = next((layer.name for layer in layers if layer.kind == "file system"), None)
        detail["file_system"] = file_system
        self._caches = known = self._caches or caches.known_caches(self._devices)
        drives = [held for held in known.drives.values() if held]
        detail["cache_rule_bytes"] = known.data_set_bytes
        detail["drive_cache_bytes"] = sum(drives) if drives else None
        detail["queue_depth"] = classes.queue_depth(self.device) if self.device is not None else None
        detail["class"] = classes.class_of(self.device)
        if spec is not None:
            detail["region_bytes"] = self._region_bytes(spec)
            direct = all(stream.direct for stream in spec.all_streams)
            rule = rule_of(known, self._devices, direct=direct, file_system=file_system)
            detail["size_rule"] = rule.to_dict()
        if self._extents is not None:
            detail["extents"] = self._extents
        if self._backing_extents:
            detail["backing_extents"] = self._backing_extents
        if self.sized is not None:
            detail["sized"] = self.sized.to_dict()
        detail["limits"] = (limits or groups.limits(self._devices)).to_dict()
        if trouble is not None:
            detail["trouble"] = trouble
        return Target(
            asked=self.asked,
            kind=self.opened.kind,
            size_bytes=self.size_bytes,
            created=self.created,
            has_device=self.device is not None,
            detail=detail,
        )

    def _region_bytes(self, spec: Workload) -> int:
        """Bytes that the widest stream uses; several files count together."""

        def sizes(stream: WorkloadStream) -> Sequence[int]:
            return self.opened.set_sizes(stream.files.set) if stream.files else (self.size_bytes,)

        return max(sum(region_bytes(stream, size) for size in sizes(stream)) for stream in spec.all_streams)

    def _start(self, resolved: ResolvedWorkload, part: LoadPart) -> Callable[[], RunningLoad]:
        engine_options = self.engine_options
        files = self.opened.engine_files()[part.first_stream :][: len(resolved.spec.streams)]
        if self.trees is not None:
            for index, stream in enumerate(resolved.spec.streams):
                if stream.names is not None:
                    files[index] = [self.trees.engine_file(stream.names)]

        def start(log: int | None) -> RunningLoad:
            self._run = run = _core.Run(
                resolved.core,
                files,
                engine=engine_options.engine,
                sqpoll=engine_options.sqpoll,
                iopoll=engine_options.iopoll,
                timestamps=engine_options.timestamps,
                tolerate_errors=engine_options.tolerate_errors,
                cpus=list(engine_options.cpus) if engine_options.cpus else None,
                cpus_shared=engine_options.cpus_shared,
                interval_ns=engine_options.interval_ns,
                log=log,
                written=self.written,
            )
            return run

        return lambda: logged(part.file_of(engine_options.log), start)
