"""A modelled machine as a target: it runs the same loads as a real one and gives the same record.

A modelled run has the machine's own time, which begins at 0, and its record contains nothing of the computing host. So
the same machine, workload and seed give the same bytes, with the same id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from spindle import _core
from spindle.host import diskstats
from spindle.host.outputs import Output
from spindle.result.record import MODELLED_START, DeviceCounters, MachineActivity, RunRecord, Settings, Tool, model_id
from spindle.result.rules import judged
from spindle.result.target import MODEL, Target
from spindle.result.workload import Workload
from spindle.run.engine import WHOLE, LoadPart
from spindle.run.load import CounterSnapshot, KnownLoad, RunningLoad, carry_out
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LoadResult, region_bytes
from spindle.run.simulate import DriveCounters, MachineDescription, SimulatedRun, describe, machine_text, read_figures
from spindle.run.trace import started
from spindle.run.watch import Watch

from .target import AS_IT_IS, Opening


@dataclass(frozen=True)
class MachineTarget:
    """A machine of the catalogue, or a machine file."""

    asked: str
    text: str | None = None
    """The machine as TOML, if it differs from `asked`."""
    is_modelled = True
    place = None
    several = None

    @property
    def refusals(self) -> Mapping[str, str]:
        """See `Target`."""
        return _REFUSALS

    @classmethod
    def parse(cls, name: str) -> MachineTarget | None:
        """None: the name is of another kind. An existing file has precedence over the catalogue."""
        known = name.endswith(".toml") or (name in _core.machine_names() and not Path(name).exists())
        return cls(name) if known else None

    def read(self) -> str:
        """The machine as TOML. Raises `Usage` or `_core.ConfigError`."""
        return machine_text(self.asked) if self.text is None else self.text

    @contextmanager
    def open(self, resolved: ResolvedWorkload, watch: Watch, how: Opening = AS_IT_IS) -> Iterator[MachineRunner]:
        """See `Target`."""
        text = self.read()
        machine = _core.Machine.parse(text, self.asked)
        yield MachineRunner(
            self.asked, watch, how.trace, how.engine_options.interval_ns, machine, text, describe(machine), how.known
        )


FLASH_STATE = (
    'a modelled run begins in the state that the machine file names (`state = "used"` in `[[drive]]` for a flash drive '
    "in long use), and a disk does not depend on what was written before; leave it out"
)
"""Instead of preconditioning."""
_REAL_ONLY = (
    *("create", "keep", "erase", "iopoll", "sqpoll", "cpus", "engine", "log", "verify", "verify_state"),
    *("drop_caches", "sync", "wait_idle", "quiet_machine"),
    *("setup", "teardown", "filesystem", "load.command"),
)
_REFUSALS = {
    **dict.fromkeys(_REAL_ONLY, "a modelled machine does not have this; leave it out, or give a device as target"),
    "status_interval": "a modelled run is computed in its own time; leave it out, the record has each second",
    "precondition": FLASH_STATE,
}


@dataclass
class MachineRunner:
    """A machine that runs loads, each from its initial state."""

    asked: str
    watch: Watch
    trace: Output | None
    interval_ns: int
    _machine: _core.Machine
    _text: str
    _described: MachineDescription
    _known: Mapping[str, str] | None
    written: _core.ExpectedContent | None = None

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

    def target(self, spec: Workload | None = None) -> Target:
        """See `LoadRunner`."""
        known = self._described
        detail: dict[str, Any] = {
            "machine": self._text,
            "name": known.name,
            "about": known.about,
            "kernel": known.kernel,
            "schedulers": known.schedulers,
            "level": known.level,
            "drives": known.drives,
            "queue_depth": known.queue_depth,
            "drive_cache_bytes": known.cache_bytes or None,
            **known.flash_detail,
        }
        if spec is not None:
            detail["region_bytes"] = max(region_bytes(stream, known.capacity) for stream in spec.all_streams)
        return Target(asked=self.asked, kind=MODEL, size_bytes=known.capacity, has_device=False, detail=detail)

    def measure(self, resolved: ResolvedWorkload, label: str | None = None, part: LoadPart = WHOLE) -> LoadResult:
        """Run one load; it always begins with empty caches."""
        spec = resolved.spec
        nothing = CounterSnapshot(diskstats.Snapshot(0, {}), None)
        finished = carry_out(
            lambda: self._load(resolved.core),
            lambda: nothing,
            spec,
            label or spec.name,
            self.watch,
        )
        simulated = read_figures(finished.figures_json)
        figures = simulated.run
        run_id, started_at = self.identity(resolved)
        record = RunRecord(
            id=run_id,
            started=started_at,
            tool=Tool(version=_core.__version__),
            workload=spec,
            request=resolved.request,
            target=_with_cache(self.target(spec), simulated),
            seed=spec.seed,
            figures=figures,
            fetched_bytes=None,
            devices=[_counters(drive, figures.elapsed_ns) for drive in simulated.drives],
            settings=Settings(before={}, after={}, changed=[]),
            environment={},
            preflight={},
            activity=MachineActivity(findings=_findings(simulated)),
            verdicts=[],
        )
        return LoadResult(judged(record), finished.stopped)

    def _load(self, core: _core.Workload) -> RunningLoad:
        figures = self._known.get(core.to_json()) if self._known else None
        return started(self._machine, core, self.trace, self.interval_ns) if figures is None else KnownLoad(figures)

    def identity(self, resolved: ResolvedWorkload, search: str = "") -> tuple[str, str]:
        """Id and start of a record: equal if and only if machine, workload and search are equal."""
        return model_id(self._text, resolved.core.to_json(), search), MODELLED_START


def _with_cache(target: Target, simulated: SimulatedRun) -> Target:
    """The target, with the bytes that its page cache moved if it has one."""
    moved = simulated.page_cache
    if moved is None:
        return target
    return replace(target, detail={**target.detail, "page_cache": to_builtins(moved)})


def _counters(drive: DriveCounters, elapsed_ns: int) -> DeviceCounters:
    """Counters with the names of /proc/diskstats and iostat."""
    seconds = max(elapsed_ns, 1) / 1e9
    requests = max(1, drive.reads + drive.writes)
    return DeviceCounters(
        name=drive.name,
        role="target",
        seconds=seconds,
        delta={
            "reads": float(drive.reads),
            "writes": float(drive.writes),
            "read_bytes": float(drive.read_bytes),
            "write_bytes": float(drive.write_bytes),
            "flushes": float(drive.flushes),
            "merges": float(drive.back_merges + drive.front_merges + drive.request_merges),
            "request_waits": float(drive.request_waits),
            "host_queue_ms": drive.host_queue_ns / 1e6,
            "drive_queue_ms": drive.drive_queue_ns / 1e6,
            "overhead_ms": drive.overhead_ns / 1e6,
            "seek_ms": drive.seek_ns / 1e6,
            "rotation_ms": drive.rotation_ns / 1e6,
            "transfer_ms": drive.transfer_ns / 1e6,
            **_flash_counters(drive),
        },
        iostat={
            "r/s": drive.reads / seconds,
            "rkB/s": drive.read_bytes / 1024 / seconds,
            "w/s": drive.writes / seconds,
            "wkB/s": drive.write_bytes / 1024 / seconds,
            "await": (drive.host_queue_ns + drive.drive_ns) / 1e6 / requests,
            "aqu-sz": (drive.host_queue_ns + drive.drive_ns) / 1e9 / seconds,
            "%util": 100 * drive.busy_ns / 1e9 / seconds,
        },
    )


def _flash_counters(drive: DriveCounters) -> dict[str, float]:
    """Counters that only flash drives have."""
    flash = drive.flash
    if flash is None:
        return {}
    return {
        "discards": float(drive.discards),
        "discard_bytes": float(drive.discard_bytes),
        "flash_written_bytes": float(flash.written_bytes),
        "flash_moved_bytes": float(flash.moved_bytes),
        "flash_padded_bytes": float(flash.padded_bytes),
        "flash_slc_bytes": float(flash.slc_bytes),
        "flash_erases": float(flash.erases),
    }


def _findings(simulated: SimulatedRun) -> list[dict[str, Any]]:
    """Facts that a reader of the figures must know."""
    rebuild = simulated.rebuild
    if rebuild is None:
        return []
    share = 100 * rebuild.done_bytes / max(1, rebuild.bytes)
    what, done = (f"member {rebuild.member}", "rebuilt") if rebuild.member is not None else ("the array", "checked")
    if rebuild.finished_ns is not None:
        text = f"{what} was {done} after {rebuild.finished_ns / 1e9:.1f} s"
    else:
        speed = rebuild.done_bytes / max(simulated.run.elapsed_ns, 1) * 1e3
        text = f"{what} is {done} to {share:.3f} %, at {speed:.1f} MB/s"
    evidence = {"done_bytes": float(rebuild.done_bytes), "bytes": float(rebuild.bytes)}
    check = "rebuild" if rebuild.member is not None else "check"
    return [{"check": check, "level": "ok", "text": text, "evidence": evidence}]
