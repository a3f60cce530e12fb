"""A user's command as the load: it runs from trial to trial while the alternatives are switched, and the activity of
the devices is recorded.
"""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from msgspec.structs import replace

from spindle import _core, conditions
from spindle.campaign.commands import ended, filled
from spindle.campaign.leftovers import TOKEN, Note, end_load, noted, processes_of
from spindle.campaign.plan import Load
from spindle.conditions.during import Traffic
from spindle.host import diskstats, groups, stack
from spindle.host import environment as machine_environment
from spindle.host import settings as machine_settings
from spindle.host.devices import Device
from spindle.host.diskstats import DiskDelta
from spindle.result import record as result
from spindle.result.figures import Cpu, EndedByTime, Figures, Generator
from spindle.result.figures_properties import COMMAND
from spindle.result.record import (
    DeviceCounters,
    Level,
    Preparation,
    RunRecord,
    Settings,
    Tool,
    Verdict,
    changed,
    new_id,
    utc_now,
)
from spindle.result.rules import judged
from spindle.result.target import Target
from spindle.result.workload import End, Workload
from spindle.run.errors import RunFailed, Usage
from spindle.run.machine_state import MachineState
from spindle.run.preparation import WINDOW_S, QuietMachine, look
from spindle.run.watch import Watch
from spindle.store import Recording, Sample

LEAST_WINDOW_S = 0.2
"""Shortest check of the machine before an interval."""
NOTHING_MOVED = Traffic(0, 0)
PATIENCE_S = 10.0
"""Time for a load to end after it is asked to."""
_TAIL_BYTES = 4096


class RunningLoad:
    """The command, started when needed and again after it ended."""

    def __init__(self, campaign: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._campaign, self._command, self._environment = campaign, list(command), environment
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._token = secrets.token_hex(16)
        self._open = ExitStack()
        self.starts = 0

    def own(self) -> conditions.OwnLoad:
        """Its processes, which are not other load."""
        return conditions.OwnLoad(lambda: processes_of(self._token))

    @property
    def words(self) -> str:
        """The command line."""
        return shlex.join(self._command)

    def keep_running(self) -> None:
        """Start it unless it runs. Raises RunFailed if it has failed."""
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                return
            said = self._tail()
            self._close()
            if status != 0:
                raise RunFailed(f"the load `{self.words}` failed: {ended(status, said)}")
        self._start()

    def _start(self) -> None:
        """Write the note first: the process is found by its token, whatever happens."""
        self._open.enter_context(noted(self._campaign, "load", Note(load=self._token)))
        self.starts += 1
        said = tempfile.TemporaryFile()  # noqa: SIM115  (closed when the command has ended)
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment, TOKEN: self._token},
                process_group=0,  # Ctrl-C reaches only Spindle, which ends it regularly
            )
        except OSError as error:
            said.close()
            self._open.close()
            raise RunFailed(
                f"the load `{self.words}` cannot be started: {(error.strerror or str(error)).lower()}"
            ) from None
        self._process, self._said = process, said

    def stop(self) -> None:
        """End it and its children: terminate first, kill after a while."""
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
        if self.starts:
            end_load(self._token)
        if process is not None:
            process.wait()
        self._close()

    def _tail(self) -> str:
        if self._said is None:
            return ""
        end = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, end - _TAIL_BYTES))
        return self._said.read().decode("utf-8", "backslashreplace")

    def _close(self) -> None:
        self._open.close()
        if self._said is not None:
            self._said.close()
        self._process = self._said = None


@dataclass(frozen=True)
class Observation:
    """One interval of one alternative."""

    record: RunRecord
    recording: Recording


def observe(
    running: RunningLoad,
    load: Load,
    target: str,
    label: str,
    seed: int,
    watch: Watch,
    line: str,
    calm: QuietMachine | None = None,
    ends: Callable[[Mapping[str, float]], bool] = lambda values: False,
) -> Observation:
    """Let the load settle, check the machine, then measure; `ends` is given the device's figures so far, and may end
    the interval. Raises RunFailed if the load fails, `NotQuiet` if the
    machine must be quiet and is not.
    """
    calm = calm or QuietMachine()
    device = stack.device_of(target)
    if device is None:
        raise Usage(f"target {target}: no block device is known under it; name the device")
    devices = [device, *stack.below(device)]
    running.keep_running()
    pace = _Pace(load, watch, line)
    window_s = min(max(load.settle_ns / 1e9, LEAST_WINDOW_S), WINDOW_S)
    _wait(load.settle_ns - round(window_s * 1e9), pace.settling)
    looked = look(devices, calm.preflight_options, watch, running.own(), window_s)
    running.keep_running()
    starts, own = running.starts, running.own()
    settings = machine_settings.settings_of(devices)
    limits = groups.limits(devices)
    run_id, started, clock = new_id(), utc_now(), time.monotonic_ns()
    samples: list[Sample] = []
    with closing(conditions.Sampler(devices, [device.name], own=own, interval_s=0.0)) as sampler:
        machine, own_before = MachineState.now(None), own.user_ticks()
        first = last = diskstats.snapshot(devices)
        sampler.begin(NOTHING_MOVED)
        while (left := load.interval_ns - (last.at_ns - first.at_ns)) > 0:
            _wait(min(load.sample_ns, left), lambda done: pace.counting(clock, done))
            fresh = diskstats.snapshot(devices)
            sampler.look(NOTHING_MOVED)
            samples += _samples(first, last, fresh, label)
            last = fresh
            running.keep_running()
            if ends(_device_values(device, first, last)):
                break
        own_ns = max(0, own.user_ticks() - own_before) * 10**9 // os.sysconf("SC_CLK_TCK")
        during = machine.until_now(own_ns, devices, sampler, limits, own.pids())
    after = machine_settings.settings_of(devices)
    deltas = diskstats.delta(first, last)
    record = RunRecord(
        id=run_id,
        started=started,
        tool=Tool(version=_core.__version__),
        workload=_workload(running.words, load, seed),
        target=_target(target, device, limits),
        seed=seed,
        figures=_figures(running.words, last.at_ns - first.at_ns, load),
        devices=[
            _counters(one, deltas, "target" if one is device else "below") for one in devices if one.name in deltas
        ],
        settings=Settings(
            before=settings,
            after=after,
            changed=changed(settings, after),
            temporary=sampler.passing,
        ),
        environment=machine_environment.environment(target),
        preflight=looked.idle.to_dict(),
        activity=replace(during, samples=_whole(during.samples, _series(samples, device.name))),
        preparation=Preparation(
            sync="none", waited_s=looked.waited_s, changed_settings=calm.changed_settings, notes=calm.quiet.notes
        ),
        verdicts=[],
    )
    record = judged(replace(record, verdicts=[_served(running, starts, deltas.get(device.name))]))
    recording = Recording(
        started=started,
        interval_s=load.sample_ns / 1e9,
        about=f"{running.words} on {target}",
        samples=samples,
        host=os.uname().nodename,
    )
    return Observation(record, recording)


def _wait(span_ns: int, progress: Callable[[int], None]) -> None:
    begin = time.monotonic_ns()
    while (done := time.monotonic_ns() - begin) < span_ns:
        progress(done)
        time.sleep(min(0.1, (span_ns - done) / 1e9))


class _Pace:
    """Progress lines."""

    def __init__(self, load: Load, watch: Watch, line: str) -> None:
        self._load, self._watch, self._line = load, watch, line

    def settling(self, _done: int) -> None:
        self._watch.step(f"{self._line}: settling")

    def counting(self, begin: int, _done: int) -> None:
        self._watch.portion(
            f"{self._line}: counting", min(time.monotonic_ns() - begin, self._load.interval_ns), self._load.interval_ns
        )


def _samples(
    first: diskstats.Snapshot, last: diskstats.Snapshot, fresh: diskstats.Snapshot, label: str
) -> Iterator[Sample]:
    for name, delta in diskstats.delta(last, fresh).items():
        yield Sample(
            device=name, start_ns=last.at_ns - first.at_ns, seconds=delta.seconds, iostat=delta.iostat(), label=label
        )


def _series(samples: Sequence[Sample], device: str) -> list[result.Sample]:
    """The samples of the device under test, for the record."""
    return [
        result.Sample(
            at_s=one.start_ns / 1e9 + one.seconds,
            seconds=one.seconds,
            devices={device: {name: value for name, value in one.iostat.items() if value is not None}},
        )
        for one in samples
        if one.device == device
    ]


def _device_values(device: Device, first: diskstats.Snapshot, last: diskstats.Snapshot) -> dict[str, float]:
    """The metrics of the device under test."""
    deltas = diskstats.delta(first, last)
    found = deltas[device.name].iostat() if device.name in deltas else {}
    return {f"device.{name}": float(value) for name, value in found.items() if value is not None}


def _whole(samples: Sequence[result.Sample], series: Sequence[result.Sample]) -> list[result.Sample]:
    """All samples together: the machine's, with the device's columns."""
    if len(samples) != len(series):
        return list(samples)
    return [replace(one, devices=other.devices) for one, other in zip(samples, series, strict=True)]


def _counters(device: Device, deltas: Mapping[str, DiskDelta], role: str) -> DeviceCounters:
    delta = deltas[device.name]
    return DeviceCounters(
        name=device.name, role=role, seconds=delta.seconds, delta=delta.numbers(), iostat=delta.iostat()
    )


def _workload(words: str, load: Load, seed: int) -> Workload:
    end = End(time_ns=load.interval_ns, bytes=None, requests=None, steady=False)
    name = Path(load.command[0]).name
    return Workload(name=name, about=words, table="streams", seed=seed, ramp_ns=load.settle_ns, end=end, streams=[])


def _target(asked: str, device: Device, limits: groups.Limits) -> Target:
    layers: list[Any] = [layer.to_dict() for layer in stack.stack_of(asked)]
    kind = "device" if Path(asked).is_block_device() else "file"
    detail = {"stack": layers, "device": device.name, "limits": limits.to_dict()}
    return Target(asked=asked, kind=kind, size_bytes=device.size_bytes, detail=detail)


def _figures(words: str, elapsed_ns: int, load: Load) -> Figures:
    return Figures(
        measured_ns=elapsed_ns,
        elapsed_ns=elapsed_ns,
        ended_by=EndedByTime(),
        streams=[],
        series=[],
        interval_ns=load.sample_ns,
        cpu=Cpu(user_ns=0, system_ns=0, voluntary_switches=0, involuntary_switches=0),
        generator=Generator(
            engine=COMMAND,
            reason=f"the load is `{words}`",
            features=[],
            timestamps="request",
            ceiling_iops=None,
            calibration=[],
            busiest_worker=0.0,
        ),
    )


def _served(running: RunningLoad, starts: int, delta: DiskDelta | None) -> Verdict:
    if running.starts != starts:
        return Verdict(
            check="load",
            level=Level.INVALID,
            evidence=f"the load ended in the interval and was started again ({running.starts - starts} times)",
            advice="let it run longer, or make load.interval shorter",
            numbers={"starts": float(running.starts - starts)},
        )
    if delta is None or delta.reads + delta.writes == 0:
        return Verdict(
            check="load",
            level=Level.INVALID,
            evidence="the device served no request in the interval",
            advice="check that the load uses this device, and not only caches",
        )
    return Verdict(
        check="load",
        level=Level.OK,
        evidence=f"{delta.reads} reads and {delta.writes} writes of the device in {delta.seconds:.1f} s",
        numbers={"reads": float(delta.reads), "writes": float(delta.writes), "seconds": delta.seconds},
    )


@contextmanager
def loads(campaign: str) -> Iterator[Callable[[Load, str, Mapping[str, str]], RunningLoad]]:
    """Loads that run until the end of the context: equal commands share one load."""
    running: dict[tuple[str, ...], RunningLoad] = {}

    def get(load: Load, target: str, environment: Mapping[str, str]) -> RunningLoad:
        command = filled(load.command, target)
        for other, one in running.items():
            if other != command:
                one.stop()
        if command not in running:
            running[command] = RunningLoad(campaign, command, environment)
        return running[command]

    try:
        yield get
    finally:
        for one in running.values():
            one.stop()
