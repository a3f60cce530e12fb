"""An open target on which loads are run, each giving a record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from dataclasses import replace as dataclass_replace
from typing import Any

from msgspec.structs import replace

from spindle import _core
from spindle.host import caches, conditions, diskstats, groups, stack
from spindle.host import environment as machine_environment
from spindle.host import settings as machine_settings
from spindle.host.conditions.during import fetched_bytes
from spindle.host.devices import Device
from spindle.host.extents import backing_extents, extents_of
from spindle.host.guard import OpenTarget, StreamAccess, hold_device, open_target
from spindle.host.held import HeldDevice
from spindle.host.identity import Identity
from spindle.host.outputs import Output
from spindle.host.several import Several
from spindle.host.sizing import rule_of
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles
from spindle.result.figures import Figures, figures_from_json
from spindle.result.record import (
    DeviceCounters,
    PassingChange,
    Precondition,
    Prepared,
    RunRecord,
    SettingChange,
    Settings,
    Tool,
    new_id,
    utc_now,
)
from spindle.result.rules import judged
from spindle.result.target import Target
from spindle.result.workload import Place, Workload, WorkloadStream
from spindle.run import classes, preparation
from spindle.run.errors import Usage
from spindle.run.files import Sized
from spindle.run.load import Counted, RunningLoad, carry_out
from spindle.run.log import logged
from spindle.run.machine_state import MachineState
from spindle.run.preparation import Calm, Looked
from spindle.run.resolve import Resolved
from spindle.run.trees import Trees
from spindle.run.verification import read_back
from spindle.run.watch import Watch

NULL = "null:"
"""`null:SIZE` is a target that completes everything at once: the generator's own cost."""


@dataclass
class Agreement:
    """Which device a consent was given for: the first one that was opened with it. Names may change their meaning."""

    device: Identity | None = None


@dataclass(frozen=True)
class Consent:
    """What a person allowed to be destroyed."""

    erase: str | None = None
    """The device they named, again."""
    erase_signature: str | None = None
    """The signature they saw, again."""
    erase_stacked: bool = False
    """It may be built of other devices."""
    erase_shared: bool = False
    """It may be a partition of a disk whose other partitions are in use."""
    confirm: Callable[[str], bool] | None = None
    """Asks them; None: they said yes beforehand."""
    erased_before: bool = False
    """It was written to with this consent already: signatures that are gone are not missed."""
    agreement: Agreement = field(default_factory=Agreement, compare=False)
    """Shared by all that is derived from this consent."""

    def after_writing(self) -> Consent:
        """For the next run on the same target, which nobody is asked about again."""
        return dataclass_replace(self, erased_before=True, confirm=None)

    @contextmanager
    def opened(
        self, target: str | os.PathLike[str] | TestFile | TestFiles | Several, streams: Sequence[StreamAccess]
    ) -> Iterator[OpenTarget]:
        """The target, open for those streams as far as this allows it. Raises `host.errors.TargetError`."""
        with open_target(target, streams, **self._given()) as opened:
            self.agreement.device = self.agreement.device or opened.identity
            yield opened

    @contextmanager
    def held(self, device: str) -> Iterator[HeldDevice]:
        """A device that tools may write to. Raises `host.errors.TargetError`."""
        with hold_device(device, **self._given()) as held:
            self.agreement.device = self.agreement.device or held.identity
            yield held

    def _given(self) -> dict[str, Any]:
        return {
            "erase": self.erase,
            "erase_signature": self.erase_signature,
            "erase_stacked": self.erase_stacked,
            "erase_shared": self.erase_shared,
            "erased_before": self.erased_before,
            "agreed": self.agreement.device,
            "confirm": self.confirm,
        }


@dataclass(frozen=True)
class Making:
    """How the load is made."""

    engine: str = "auto"
    sqpoll: bool = False
    iopoll: bool = False
    timestamps: str = "request"
    tolerate_errors: bool = False
    cpus: tuple[int, ...] | None = None
    """Workers are pinned to these one after another."""
    cpus_shared: bool = False
    """Each worker may run on all of them instead."""
    interval_ns: int = 1_000_000_000
    """Length of an interval of the series."""
    log: Output | None = None
    """Every completion is written to this file."""


@dataclass(frozen=True)
class Part:
    """Which of the loads that a target was opened for is run."""

    first_stream: int = 0
    """Streams of the loads before it: the target has a file for each stream of all."""
    drop_caches: bool = True
    """The target's own pages are dropped from the page cache before it."""
    name: str | None = None
    """Of a phase."""
    read_back: bool = True
    """What was written is read back after it, where it is verified."""

    def file_of(self, output: Output | None) -> Output | None:
        """A file of this load's own: `log.csv` becomes `log-NAME.csv` where there are several."""
        if output is None or self.name is None:
            return output
        return output.named(f"{output.path.stem}-{self.name}{output.path.suffix}")


WHOLE = Part()
NO_CONSENT = Consent()
AS_USUAL = Making()


@dataclass(frozen=True)
class Measured:
    """What came out of one load."""

    record: RunRecord
    stopped: bool
    """Someone asked it to stop."""


@dataclass
class Bench:
    """An open target. Its loads share the claim on it, so nobody gets in between."""

    asked: str
    making: Making
    watch: Watch
    _target: OpenTarget | None
    """None: the null target."""
    _size_bytes: int
    _created: bool
    _devices: list[Device] = field(default_factory=list)
    calm: Calm = field(default_factory=Calm)
    sized: Sized | None = None
    """How the size of the test file was chosen, where nobody asked for one."""
    trees: Trees | None = None
    """What operations on names work on."""
    written: _core.Written | None = None
    """What the loads so far have written, where they verify."""
    _run: _core.Run | None = None
    """The last load."""
    precondition: Precondition | None = None
    """What was done to the target before its first run."""
    _caches: caches.Caches | None = None
    _looked: Looked | None = None
    _extents: dict[str, object] | None = None
    """What of the file was on its device before the last load."""
    _backing_extents: dict[str, dict[str, object]] = field(default_factory=dict)
    """The same of the files behind loop devices, by their names."""

    @property
    def size_bytes(self) -> int:
        """Size of the target."""
        return self._size_bytes

    @property
    def place(self) -> str:
        """Path of the file or device."""
        return self._target.path if self._target is not None else self.asked

    @property
    def device(self) -> Device | None:
        """The device under test, or the one under the file."""
        return self._target.device if self._target is not None else None

    def idle(self) -> dict[str, Any]:
        """What else uses device and machine; looked at once. Raises `NotQuiet` if it must be quiet and is not."""
        if self._target is None:
            return {}
        if self._looked is None:
            self._write_out(self._target)  # what is dirty from before would be written during the check, and the run
            self._looked = preparation.look(self._devices, self.calm.care, self.watch)
        return self._looked.idle.to_dict()

    def _write_out(self, target: OpenTarget) -> list[str]:
        self.watch.step("syncing")
        return preparation.write_out(target, self._devices, self.calm.care)

    def _prepare(self, part: Part) -> Prepared:
        """Right before a load."""
        if self._target is None:
            return Prepared(sync="none")
        synced = self._write_out(self._target)
        if part.drop_caches:
            self._target.drop_cache()
        if self.calm.care.drop_caches:
            self.watch.step("dropping caches")
            caches.drop_caches()
        return Prepared(
            sync="machine" if self.calm.care.sync_machine else "target",
            synced=synced,
            dropped_caches=self.calm.care.drop_caches,
            kept_pages=not part.drop_caches,
            waited_s=self._looked.waited_s if self._looked is not None else 0.0,
            quieted=self.calm.quieted,
            notes=self.calm.quiet.notes,
            precondition=self.precondition,
        )

    def target(
        self, spec: Workload | None = None, trouble: str | None = None, limits: groups.Limits | None = None
    ) -> Target:
        """What the record says about it."""
        if self._target is None:
            return Target(asked=self.asked, kind="null", size_bytes=self._size_bytes, has_device=False)
        detail = dict(self._target.to_dict())
        layers = stack.stack_of(self._target.files[0].fd)
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
            kind=self._target.kind,
            size_bytes=self._size_bytes,
            created=self._created,
            has_device=self.device is not None,
            detail=detail,
        )

    def _look_at_extents(self) -> None:
        """Before a load, which may write where nothing was."""
        if self._target is None:
            return
        found = extents_of(self._target.files[0].fd) if self._target.is_one_file else None
        self._extents = found.to_dict() if found is not None else None
        behind = {device.name: backing_extents(device) for device in self._devices}
        self._backing_extents = {name: one.to_dict() for name, one in behind.items() if one is not None}

    def _region_bytes(self, spec: Workload) -> int:
        """What the widest stream uses; of several files all together."""
        target = self._target

        def sizes(stream: WorkloadStream) -> Sequence[int]:
            return target.set_sizes(stream.files.set) if target and stream.files else (self._size_bytes,)

        return max(sum(region_bytes(stream, size) for size in sizes(stream)) for stream in spec.all_streams)

    def identity(self, _resolved: Resolved, _search: str = "") -> tuple[str, str]:
        """Of a record that begins now: id, and when it started."""
        return new_id(), utc_now()

    def measure(self, resolved: Resolved, label: str | None = None, part: Part = WHOLE) -> Measured:
        """Run one load, `part` of those the target was opened for. Its streams must want the access of then."""
        spec = resolved.spec
        idle = self.idle()
        if self.trees is not None:
            self.trees.get_ready(resolved.core, spec, self.watch)
        run_id, started = self.identity(resolved)
        prepared = self._prepare(part)
        before = machine_settings.settings_of(self._devices) if self._target is not None else {}
        limits = groups.limits(self._devices)
        self._look_at_extents()
        cpus = self.making.cpus
        with closing(self._sampler(spec)) as sampler:
            machine = MachineState.now(cpus)
            start = self._start(resolved, part)
            finished = carry_out(start, self._snapshot, spec, label or spec.name, self.watch, sampler)
        loaded = figures_from_json(finished.figures_json)
        during = machine.until_now(loaded.cpu.user_ns, self._devices, sampler)
        after = machine_settings.settings_of(self._devices) if self._target is not None else {}
        trouble = self._target.trouble() if self._target is not None else None
        figures = self._verified(loaded, part, finished.stopped)
        if self.trees is not None:
            self.trees.is_done(spec, figures)
        record = RunRecord(
            id=run_id,
            started=started,
            tool=Tool(version=_core.__version__),
            workload=spec,
            target=self.target(spec, trouble, limits),
            seed=spec.seed,
            figures=figures,
            fetched_bytes=_difference(finished.before.fetched_bytes, finished.after.fetched_bytes),
            devices=self._counters(finished.before.disks, finished.after.disks),
            settings=Settings(
                before=before,
                after=after,
                changed=_changes(before, after),
                passing=[PassingChange(**asdict(change)) for change in sampler.passing],
            ),
            environment=machine_environment.environment(None if self._target is None else self._target.path),
            idle=idle,
            during=during,
            verdicts=[],
            prepared=prepared,
        )
        return Measured(judged(record), finished.stopped)

    def _verified(self, figures: Figures, part: Part, stopped: bool) -> Figures:
        """With what a read-back found: after all that is measured, so that none of it is in any figure."""
        seen = figures.verification
        if seen is None or self._run is None:
            return figures
        self.written = self._run.written()
        if self.written is None or self.written.is_empty() or stopped:
            return figures
        if not part.read_back:
            return replace(figures, verification=replace(seen, read_back_later=True))
        return replace(figures, verification=replace(seen, read_back=read_back(self.written, self.watch)))

    def _sampler(self, spec: Workload) -> conditions.Sampler:
        directly = all(stream.direct or not stream.writes for stream in spec.streams)
        under_test = {device.name for device in self._target.devices} if self._target is not None else set()
        return conditions.Sampler(self._devices, under_test, writes_directly=directly)

    def _start(self, resolved: Resolved, part: Part) -> Callable[[], RunningLoad]:
        target = self._target
        making = self.making
        log_file = part.file_of(making.log)
        if target is None:
            return lambda: logged(log_file, lambda log: _core.Run.null(resolved.core, self._size_bytes, log=log))
        files = target.engine_files()[part.first_stream :][: len(resolved.spec.streams)]
        if self.trees is not None:
            for index, stream in enumerate(resolved.spec.streams):
                if stream.names is not None:
                    files[index] = [self.trees.engine_file(stream.names)]

        def start(log: int | None) -> RunningLoad:
            self._run = run = _core.Run(
                resolved.core,
                files,
                engine=making.engine,
                sqpoll=making.sqpoll,
                iopoll=making.iopoll,
                timestamps=making.timestamps,
                tolerate_errors=making.tolerate_errors,
                cpus=list(making.cpus) if making.cpus else None,
                cpus_shared=making.cpus_shared,
                interval_ns=making.interval_ns,
                log=log,
                written=self.written,
            )
            return run

        return lambda: logged(log_file, start)

    def _snapshot(self) -> Counted:
        return Counted(diskstats.snapshot(self._devices), fetched_bytes())

    def _counters(self, before: diskstats.Snapshot, after: diskstats.Snapshot) -> list[DeviceCounters]:
        deltas = diskstats.delta(before, after)
        under_test = {device.name for device in self._target.devices} if self._target is not None else set()
        seconds = (after.at_ns - before.at_ns) / 1e9
        return [
            DeviceCounters(
                name=device.name,
                role="target" if device.name in under_test else "below",
                seconds=seconds,
                delta=_numbers(deltas[_counted_name(device)].to_dict()),
                iostat=deltas[_counted_name(device)].iostat(),
            )
            for device in self._devices
            if _counted_name(device) in deltas
        ]


@contextmanager
def bench(
    asked: str,
    spec: Workload,
    watch: Watch,
    *,
    consent: Consent = NO_CONSENT,
    making: Making = AS_USUAL,
    file: TestFile | TestFiles | Several | None = None,
    calm: Calm | None = None,
    sized: Sized | None = None,
    also: Sequence[WorkloadStream] = (),
) -> Iterator[Bench]:
    """Open a target for the streams of a workload, of all its phases if it has some, and for others that come after
    them; everything is closed at the end.

    `file` is a test file, or the files of the workload's sets, made for this run: the only files that may be written.
    Or it is the devices and files that the sets stand for.
    Raises `host.errors.TargetError`.
    """
    if asked.startswith(NULL):
        yield Bench(asked, making, watch, None, _null_size(asked), False)
        return
    access = [_access(stream) for stream in (*spec.all_streams, *also)]
    with consent.opened(file if file is not None else asked, access) as target:
        opened = Bench(
            asked,
            making,
            watch,
            target,
            target.size_bytes,
            file is not None and not isinstance(file, Several),
            _devices=list(target.counted_devices()),
            calm=calm or Calm(),
            sized=sized,
        )
        if not isinstance(file, TestFiles):
            yield opened
            return
        with Trees(file.fileno()) as opened.trees:
            yield opened


def _difference(before: int | None, after: int | None) -> int | None:
    return after - before if before is not None and after is not None else None


def _counted_name(device: Device) -> str:
    """Its name in /proc/diskstats."""
    return device.name.replace("!", "/")


def _null_size(asked: str) -> int:
    try:
        size = _core.parse_size(asked.removeprefix(NULL))
    except _core.ConfigError as error:
        raise Usage(f"target {asked}: {error}; write for example null:1GiB") from None
    if size <= 0:
        raise Usage(f"target {asked}: its size must be above 0; write for example null:1GiB")
    return size


def _access(stream: WorkloadStream) -> StreamAccess:
    return StreamAccess(
        write=stream.writes,
        direct=stream.direct,
        dsync=stream.sync.dsync,
        osync=stream.sync.osync,
        files=stream.files.set if stream.files is not None else None,
        names=stream.names is not None,
    )


def region_bytes(stream: WorkloadStream, size: int) -> int:
    """How much of a target of this size a stream uses."""

    def at(place: Place) -> float:
        return place.bytes if hasattr(place, "bytes") else place.fraction * size

    return max(0, int(min(at(stream.region.end), size) - at(stream.region.offset)))


def _changes(before: dict[str, str], after: dict[str, str]) -> list[SettingChange]:
    return [
        SettingChange(name=change.name, before=change.before, after=change.after)
        for change in machine_settings.diff(before, after)
    ]


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    """The raw differences alone; derived columns stand beside them."""
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
