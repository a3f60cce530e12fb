"""An open target that runs loads and makes a record of each."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec.structs import replace

from spindle import _core, conditions
from spindle.host import diskstats, groups
from spindle.host import environment as machine_environment
from spindle.host.devices import Device
from spindle.result.figures import Figures, figures_from_json
from spindle.result.record import (
    DeviceCounters,
    MachineActivity,
    Preparation,
    RunRecord,
    Settings,
    Tool,
    changed,
    new_id,
    utc_now,
)
from spindle.result.rules import judged
from spindle.result.target import Target
from spindle.result.workload import Place, Workload, WorkloadStream
from spindle.run.engine import WHOLE, EngineOptions, LoadPart
from spindle.run.load import CounterSnapshot, RunningLoad, carry_out
from spindle.run.machine_state import MachineState
from spindle.run.resolve import ResolvedWorkload
from spindle.run.trees import Trees
from spindle.run.verification import read_back
from spindle.run.watch import Watch


@dataclass(frozen=True)
class LoadResult:
    """The result of one load."""

    record: RunRecord
    stopped: bool
    """True if a person stopped it."""


class Measurer(Protocol):
    """Something that runs one load after another."""

    def measure(self, resolved: ResolvedWorkload, label: str | None = None) -> LoadResult:
        """Run one load."""


class LoadRunner(Measurer, Protocol):
    """An open target. Its loads share one claim, so no other process can use it in between."""

    watch: Watch
    written: _core.ExpectedContent | None
    """Blocks written by the loads so far, if they verify."""

    @property
    def place(self) -> str:
        """Path of the file or device, or another name."""

    @property
    def device(self) -> Device | None:
        """The device under test, or the one under the file; None: there is none, or it is unknown."""

    def target(self, spec: Workload | None = None) -> Target:
        """The target for the record."""

    def idle(self) -> dict[str, Any]:
        """The check of device and machine before the first load. Raises `NotQuiet` if they must be quiet."""

    def identity(self, resolved: ResolvedWorkload, search: str = "") -> tuple[str, str]:
        """Id and start time of a record that begins now."""

    def measure(self, resolved: ResolvedWorkload, label: str | None = None, part: LoadPart = WHOLE) -> LoadResult:
        """Run one load, `part` of those that the target was opened for. Its streams must not need more access than
        these.
        """


@dataclass
class LocalRunner(ABC):
    """A target on this machine, with loads from its CPUs. By default without devices and preparation."""

    asked: str
    engine_options: EngineOptions
    watch: Watch
    size_bytes: int
    written: _core.ExpectedContent | None = None
    trees: Trees | None = None
    """The trees for metadata operations."""
    _devices: list[Device] = field(default_factory=list)
    """Devices whose counters are read: under test, and below."""
    _under_test: set[str] = field(default_factory=set)
    """Names of the devices under test."""
    _run: _core.Run | None = None
    """The last load."""
    _is_on_storage = True
    """False: no other process can use what the load works on."""

    @property
    def place(self) -> str:
        """See `LoadRunner`."""
        return self.asked

    @property
    def device(self) -> Device | None:
        """See `LoadRunner`."""
        return None

    @abstractmethod
    def target(
        self, spec: Workload | None = None, trouble: str | None = None, limits: groups.Limits | None = None
    ) -> Target:
        """The target for the record; `trouble`: problems with it during the run; `limits`: from before the run."""

    @abstractmethod
    def _start(self, resolved: ResolvedWorkload, part: LoadPart) -> Callable[[], RunningLoad]: ...

    def idle(self) -> dict[str, Any]:
        """See `LoadRunner`."""
        return {}

    def _prepare(self, part: LoadPart) -> Preparation:
        """Prepare the target right before a load."""
        return Preparation(sync="none")

    def _settings(self) -> dict[str, str]:
        return {}

    def _environment(self) -> dict[str, Any]:
        return machine_environment.environment(None)

    def _trouble(self) -> str | None:
        """A change of the target since it was opened."""
        return None

    def identity(self, resolved: ResolvedWorkload, search: str = "") -> tuple[str, str]:
        """See `LoadRunner`; different each time."""
        return new_id(), utc_now()

    def measure(self, resolved: ResolvedWorkload, label: str | None = None, part: LoadPart = WHOLE) -> LoadResult:
        """See `LoadRunner`."""
        spec = resolved.spec
        idle = self.idle()
        if self.trees is not None:
            self.trees.get_ready(resolved.core, spec, self.watch)
        run_id, started = self.identity(resolved)
        prepared = self._prepare(part)
        before = self._settings()
        limits = groups.limits(self._devices)
        so_far = functools.partial(
            self._so_far, run_id, started, resolved, Settings(before=before, after=before, changed=[]), idle, prepared
        )
        with closing(self._sampler(spec)) as sampler:
            machine = MachineState.now(self.engine_options.cpus, with_processes=self._is_on_storage)
            start = self._start(resolved, part)
            look = self._reporting(so_far, lambda: self.target(spec, limits=limits))
            finished = carry_out(start, self._snapshot, spec, label or spec.name, self.watch, sampler, look)
        loaded = figures_from_json(finished.figures_json)
        during = machine.until_now(loaded.cpu.user_ns, self._devices, sampler, limits)
        after = self._settings()
        trouble = self._trouble()
        figures = self._verified(loaded, part, finished.stopped)
        if self.trees is not None:
            self.trees.is_done(spec, figures)
        record = replace(
            so_far(self.target(spec, trouble, limits), figures, finished.before, finished.after),
            settings=Settings(
                before=before,
                after=after,
                changed=changed(before, after),
                temporary=sampler.passing,
            ),
            environment=self._environment(),
            activity=during,
        )
        measured = LoadResult(judged(record), finished.stopped)
        if look is not None and self.engine_options.status is not None:
            self.engine_options.status.ended(measured.record)
        return measured

    def _so_far(
        self,
        run_id: str,
        started: str,
        resolved: ResolvedWorkload,
        settings: Settings,
        idle: dict[str, Any],
        prepared: Preparation,
        target: Target,
        figures: Figures,
        begin: CounterSnapshot,
        end: CounterSnapshot,
    ) -> RunRecord:
        """The record without the checks after the load, and without verdicts."""
        return RunRecord(
            id=run_id,
            started=started,
            tool=Tool(version=_core.__version__),
            workload=resolved.spec,
            request=resolved.request,
            target=target,
            seed=resolved.spec.seed,
            figures=figures,
            fetched_bytes=_difference(begin.fetched_bytes, end.fetched_bytes),
            devices=self._counters(begin.disks, end.disks),
            settings=settings,
            environment={},
            preflight=idle,
            activity=MachineActivity(),
            verdicts=[],
            preparation=prepared,
        )

    def _reporting(
        self,
        so_far: Callable[[Target, Figures, CounterSnapshot, CounterSnapshot], RunRecord],
        target_of: Callable[[], Target],
    ) -> Callable[[CounterSnapshot], float] | None:
        """Makes status reports of the load, if requested, from its figures and counters so far."""
        status = self.engine_options.status
        if status is None or not status.is_on:
            return None
        target = functools.cache(target_of)  # once: reports cost the load CPU time

        def look(begin: CounterSnapshot) -> float:
            if status.left_s() == 0 and self._run is not None:
                figures = self._run.so_far()
                if figures is not None:
                    status.report(so_far(target(), figures_from_json(figures), begin, self._snapshot()))
            return status.left_s()

        return look

    def _verified(self, figures: Figures, part: LoadPart, stopped: bool) -> Figures:
        """Add the result of reading back: after everything measured, so that no figure includes it."""
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
        return conditions.Sampler(self._devices, self._under_test, writes_directly=directly)

    def _snapshot(self) -> CounterSnapshot:
        return CounterSnapshot(diskstats.snapshot(self._devices), diskstats.fetched_bytes())

    def _counters(self, before: diskstats.Snapshot, after: diskstats.Snapshot) -> list[DeviceCounters]:
        deltas = diskstats.delta(before, after)
        seconds = (after.at_ns - before.at_ns) / 1e9
        return [
            DeviceCounters(
                name=device.name,
                role="target" if device.name in self._under_test else "below",
                seconds=seconds,
                delta=deltas[device.counted_name].numbers(),
                iostat=deltas[device.counted_name].iostat(),
            )
            for device in self._devices
            if device.counted_name in deltas
        ]


def region_bytes(stream: WorkloadStream, size: int) -> int:
    """How much of a target of this size a stream uses."""

    def at(place: Place) -> float:
        return place.bytes if hasattr(place, "bytes") else place.fraction * size

    return max(0, int(min(at(stream.region.end), size) - at(stream.region.offset)))


def _difference(before: int | None, after: int | None) -> int | None:
    return after - before if before is not None and after is not None else None
