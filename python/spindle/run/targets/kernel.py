"""A modelled machine under the real kernel: the lab boots it for each load, with the machine file's array, queues and
file system, and spindle-agent makes the load there.

Virtual time begins at the boot, and nothing of the computing host is in the record. So the same machine, kernel,
workload and seed give the same record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from spindle import _core
from spindle.formats import agent
from spindle.host.outputs import Output
from spindle.lab import load as lab
from spindle.lab.assembly import Setup, setup_of
from spindle.result import target as record
from spindle.result.record import MODELLED_START, MachineActivity, PhasesRecord, RunRecord, Tool, model_id
from spindle.result.rules import judged
from spindle.result.workload import Workload
from spindle.run.engine import WHOLE, EngineOptions, LoadPart
from spindle.run.errors import RunFailed, Usage
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LoadResult, region_bytes
from spindle.run.simulate import MachineDescription, describe
from spindle.run.watch import Watch

from .modelled import FLASH_STATE, MachineTarget
from .target import AS_IT_IS, Opening, Target

DEFAULT = "default"
"""For the version: the first of `spindle.lab.source.SERIES` that is built."""
_REAL_ONLY = (
    *("create", "keep", "erase", "iopoll", "sqpoll", "cpus", "log", "verify_state"),
    *("drop_caches", "sync", "wait_idle", "quiet_machine"),
    *("setup", "teardown", "filesystem", "load.command"),
)
_REFUSALS = {
    **dict.fromkeys(_REAL_ONLY, "a modelled machine does not have this; leave it out, or give a device as target"),
    "status_interval": "a modelled run is computed in its own time; leave it out, the record has each second",
    "precondition": FLASH_STATE,
}


@dataclass(frozen=True)
class OnKernel:
    """A machine of the catalogue, or a machine file, under a real kernel."""

    machine: MachineTarget
    version: str | None = None
    """`6.1`, or `6.1.192` (`spindle.lab.kernel.current`)."""
    is_modelled = True
    place = None
    several = None

    @property
    def asked(self) -> str:
        """See `Target`."""
        return self.machine.asked

    @property
    def refusals(self) -> Mapping[str, str]:
        """See `Target`."""
        return _REFUSALS

    def check(self, machine: _core.Machine) -> None:
        """Raise `_core.ConfigError` if a kernel cannot be set up as the machine, LabMissing if there is none."""
        setup_of(machine)
        lab.identity(self.version)
        lab.find_agent()

    @contextmanager
    def open(self, resolved: ResolvedWorkload, watch: Watch, how: Opening = AS_IT_IS) -> Iterator[KernelRunner]:
        """See `Target`."""
        spec = resolved.spec
        if spec.makes_files or spec.works_on_names:
            raise Usage(f"`kernel=`: {spec.name} makes files of its own, which is not possible there; name a folder")
        text = self.machine.read()
        machine = _core.Machine.parse(text, self.asked)
        self.check(machine)
        yield KernelRunner(
            self.asked,
            watch,
            self.version,
            how.engine_options,
            how.trace,
            resolved,
            machine,
            text,
            describe(machine),
            setup_of(machine),
        )


def on_kernel(target: Target, version: str | None, where: str = "`kernel=`") -> OnKernel:
    """The machine under the kernel of this version (`6.1`; `default`). Raises Usage, which begins with `where`, if the
    target is not a modelled machine.
    """
    if not isinstance(target, MachineTarget):
        raise Usage(f"{where}: {target.asked} is not a modelled machine; give a machine file, or leave it out")
    return OnKernel(target, None if version == DEFAULT else version)


@dataclass
class KernelRunner:
    """A machine that is booted for each load, or once for all phases of a workload."""

    asked: str
    watch: Watch
    version: str | None
    engine_options: EngineOptions
    trace: Output | None
    _whole: ResolvedWorkload
    _machine: _core.Machine
    _text: str
    _described: MachineDescription
    _setup: Setup
    written: _core.ExpectedContent | None = None
    _phases: dict[str | None, RunRecord] = field(default_factory=dict)
    """The runs of the phases, which one boot has made."""
    _target: record.Target | None = None
    """The target of the last load."""

    @property
    def place(self) -> str:
        """See `LoadRunner`."""
        return self.asked

    @property
    def device(self) -> None:
        """See `LoadRunner`: never a device of this machine."""

    def idle(self) -> dict[str, Any]:
        """See `LoadRunner`: nothing else runs there."""
        return {}

    def target(self, spec: Workload | None = None) -> record.Target:
        """See `LoadRunner`."""
        if self._target is not None:
            return self._target
        return record.Target(
            asked=self.asked, kind=record.KERNEL, size_bytes=self._described.capacity, detail=self._detail()
        )

    def identity(self, resolved: ResolvedWorkload, search: str = "") -> tuple[str, str]:
        """Id and start of a record: equal if and only if machine, kernel, workload and search are equal."""
        kernel = lab.identity(self.version)
        return model_id(self._text, kernel, resolved.core.to_json(), search), MODELLED_START

    def measure(self, resolved: ResolvedWorkload, label: str | None = None, part: LoadPart = WHOLE) -> LoadResult:
        """Boot and run one load; the first phase of several runs all of them."""
        if part.name is None:
            found = self._booted(resolved, label or resolved.spec.name)
            assert isinstance(found, RunRecord)
            return LoadResult(found, stopped=False)
        if not self._phases:
            found = self._booted(self._whole, label or resolved.spec.name)
            assert isinstance(found, PhasesRecord)
            self._phases = {run.workload.name: run for run in found.runs}
        if part.name not in self._phases:
            raise RunFailed("an earlier phase ended with an error")
        return LoadResult(self._phases[part.name], stopped=False)

    def _booted(self, resolved: ResolvedWorkload, label: str) -> RunRecord | PhasesRecord:
        self.watch.step(f"{label}: on the real kernel")
        options = self.engine_options
        task = lab.Task(
            self._machine,
            self._setup,
            resolved.name,
            resolved.text,
            resolved.overrides,
            "io_uring" if options.engine == "auto" else options.engine,
            options.timestamps,
            options.interval_ns,
            options.tolerate_errors,
            is_traced=self.trace is not None,
        )
        done = lab.carry_out(task, self.version)
        if self.trace is not None and done.trace is not None:
            self.trace.save(done.trace.encode())
        found = agent.read(done.document, "the lab's result", preflight={})
        if isinstance(found, RunRecord):
            return self._complete(found, resolved, done)
        loads = {load.spec.name: load for load in resolved.phases}
        return replace(found, runs=[self._complete(run, loads[run.workload.name], done) for run in found.runs])

    def _complete(self, run: RunRecord, resolved: ResolvedWorkload, done: lab.LabRun) -> RunRecord:
        """The run as one of this machine; the agent knows only the device."""
        run_id, started = self.identity(resolved)
        kernel = run.environment.get("kernel", {}).get("release")
        seen = {name: value for name, value in run.target.detail.items() if name != "path"}
        seen |= self._detail() | {
            "kernel": kernel,
            "kernel_log": done.kernel_log,
            "virtual_s": done.boot.virtual_ns / 1e9,
            "drive_requests": [drive.requests for drive in done.boot.drives],
            "region_bytes": max(region_bytes(stream, run.target.size_bytes) for stream in run.workload.all_streams),
        }
        self._target = replace(run.target, asked=self.asked, kind=record.KERNEL, detail=seen)
        return judged(
            replace(
                run,
                id=run_id,
                started=started,
                tool=Tool(version=_core.__version__),
                request=resolved.request,
                target=self._target,
                preflight={},
                activity=MachineActivity(),
            )
        )

    def _detail(self) -> dict[str, Any]:
        known = self._described
        return {
            "machine": self._text,
            "name": known.name,
            "about": known.about,
            "schedulers": sorted({drive.scheduler for drive in self._setup.drives}),
            "level": known.level,
            "drives": known.drives,
            "queue_depth": known.queue_depth,
            "drive_cache_bytes": known.cache_bytes or None,
            **known.flash_detail,
        }
