"""A modelled machine as a target: loads run on it as on a real one, and give the same record.

A modelled run happens at the machine's own time, which begins at 0: nothing of the host it was computed on is in the
record, so that the same machine, workload and seed give the same bytes, identity included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from spindle import _core
from spindle.host import diskstats
from spindle.host.outputs import Output
from spindle.result.record import MODELLED_START, DeviceCounters, During, RunRecord, Settings, Tool, model_id
from spindle.result.rules import judged
from spindle.result.target import Target
from spindle.result.workload import Place, Workload, WorkloadStream
from spindle.run.bench import WHOLE, Part
from spindle.run.errors import Usage
from spindle.run.load import Counted, carry_out
from spindle.run.resolve import Resolved
from spindle.run.simulate import Described, DriveCounters, Simulated, describe, machine_text, read_figures
from spindle.run.trace import started
from spindle.run.watch import Watch


@dataclass(frozen=True)
class Modelled:
    """What came out of one load."""

    record: RunRecord
    stopped: bool
    """Someone asked it to stop."""
    simulated: Simulated


@dataclass
class ModelledBench:
    """A machine on which loads are run, each from its start: nothing is left of the one before."""

    asked: str
    watch: Watch
    trace: Output | None
    interval_ns: int
    _machine: _core.Machine
    _text: str
    _described: Described

    @property
    def size_bytes(self) -> int:
        """Size of the target."""
        return self._described.capacity

    def target(self, spec: Workload | None = None) -> Target:
        """What the record says about it."""
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
        }
        if spec is not None:
            detail["region_bytes"] = max(_region_bytes(stream, known.capacity) for stream in spec.all_streams)
        return Target(asked=self.asked, kind="model", size_bytes=known.capacity, has_device=False, detail=detail)

    def measure(self, resolved: Resolved, label: str | None = None, part: Part = WHOLE) -> Modelled:
        """Run one load; whichever part of several it is, it begins with nothing cached."""
        spec = resolved.spec
        nothing = Counted(diskstats.Snapshot(0, {}), None)
        finished = carry_out(
            lambda: started(self._machine, resolved.core, self.trace, self.interval_ns),
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
            target=self.target(spec),
            seed=spec.seed,
            figures=figures,
            fetched_bytes=None,
            devices=[_counters(drive, figures.elapsed_ns) for drive in simulated.drives],
            settings=Settings(before={}, after={}, changed=[]),
            environment={},
            idle={},
            during=During(findings=_findings(simulated)),
            verdicts=[],
        )
        return Modelled(judged(record), finished.stopped, simulated)

    def identity(self, resolved: Resolved, search: str = "") -> tuple[str, str]:
        """Of a record, id and start: the same for the same machine, workload and search, another one for any other."""
        return model_id(self._text, resolved.core.to_json(), search), MODELLED_START


@contextmanager
def modelled(
    asked: str, watch: Watch, *, trace: Output | None = None, interval_ns: int, text: str | None = None
) -> Iterator[ModelledBench]:
    """Read a machine; `text`: what it is, where that is no longer what `asked` names. Raises `Usage` or
    `_core.ConfigError`, one line with file and line.
    """
    text = machine_text(asked) if text is None else text
    machine = _core.Machine.parse(text, asked)
    yield ModelledBench(asked, watch, trace, interval_ns, machine, text, describe(machine))


def refuse_what_makes_no_sense(given: dict[str, bool]) -> None:
    """Options that are about real targets: option -> whether it was given."""
    for option, was_given in given.items():
        if was_given:
            raise Usage(f"{option}: a modelled machine has no such thing; leave it out")


def _counters(drive: DriveCounters, elapsed_ns: int) -> DeviceCounters:
    """In the words of /proc/diskstats and iostat."""
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


def _findings(simulated: Simulated) -> list[dict[str, Any]]:
    """What a person should know who reads the figures."""
    rebuild = simulated.rebuild
    if rebuild is None:
        return []
    share = 100 * rebuild.done_bytes / max(1, rebuild.bytes)
    if rebuild.finished_ns is not None:
        text = f"member {rebuild.member} was rebuilt after {rebuild.finished_ns / 1e9:.1f} s"
    else:
        speed = rebuild.done_bytes / max(simulated.run.elapsed_ns, 1) * 1e3
        text = f"member {rebuild.member} is rebuilt to {share:.3f} %, at {speed:.1f} MB/s"
    evidence = {"done_bytes": float(rebuild.done_bytes), "bytes": float(rebuild.bytes)}
    return [{"check": "rebuild", "level": "ok", "text": text, "evidence": evidence}]


def _region_bytes(stream: WorkloadStream, size: int) -> int:
    def at(place: Place) -> float:
        return place.bytes if hasattr(place, "bytes") else place.fraction * size

    return max(0, int(min(at(stream.region.end), size) - at(stream.region.offset)))
