"""The record of a run: one JSON document with everything needed to read its figures years later.

All kinds share one schema and differ by `kind`: a single run; a knee sweep, a latency search, an open-loop curve, a
quick look and phases, each made of single runs; and an import from another tool's file. Times are ns, sizes bytes
unless a name says otherwise.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from spindle.result.figures import Figures, Steady
from spindle.result.imported import DeviceSeries, Moment, PartialStream, Source
from spindle.result.level import Level as Level
from spindle.result.search import Curve, RunId, TargetSearch
from spindle.result.target import Target
from spindle.result.workload import Workload

MODELLED_START = "1970-01-01T00:00:00Z"
"""Start time of a modelled run: zero of the machine's time."""
FORMAT = 2
"""Version of this format; it grows when an older reader would misread a newer record."""


class Verdict(Struct, frozen=True, kw_only=True):
    """One check of a run, with the evidence in numbers and what to do about it."""

    check: str
    """Name of the check: `cache-share`, `steady`, `settings` ..."""
    level: Level
    evidence: str
    """The observation, one sentence with its numbers."""
    advice: str = ""
    """The remedy; empty if there is no problem."""
    numbers: dict[str, float] = {}
    """The numbers of the evidence, for programs."""

    @property
    def is_unknown(self) -> bool:
        """True if the check could not be made."""
        return self.evidence.startswith("unknown")


def worst(verdicts: list[Verdict]) -> Level:
    """The worst level among them."""
    return max((verdict.level for verdict in verdicts), key=lambda level: level.rank, default=Level.OK)


class Tool(Struct, frozen=True, kw_only=True):
    """The program that made the record."""

    version: str
    name: str = "spindle"


class DeviceCounters(Struct, frozen=True, kw_only=True):
    """Activity of one block device during the load, from /proc/diskstats."""

    name: str
    role: str
    """`target`: the device under test, or the one under the file; `below`: a device underneath it."""
    seconds: float
    """Length of the observation: from the first request, ramp included, to the end of the load."""
    delta: dict[str, float]
    """Differences of the counters: requests, bytes, milliseconds."""
    iostat: dict[str, float]
    """The columns of `iostat -x`, with its names."""

    def bytes_of(self, direction: str) -> float | None:
        """Bytes moved: `read` or `write`."""
        return self.delta.get(f"{direction}_bytes")

    def requests_of(self, direction: str) -> float | None:
        """Requests completed: `read` or `write`."""
        return self.delta.get(f"{direction}s")


class SettingChange(Struct, frozen=True, kw_only=True):
    """A setting that differed after the run."""

    name: str
    before: str | None
    after: str | None


def changed(before: dict[str, str], after: dict[str, str]) -> list[SettingChange]:
    """The settings that differ."""
    names = sorted(before.keys() | after.keys())
    return [
        SettingChange(name=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


class TemporaryChange(Struct, frozen=True, kw_only=True):
    """A setting that differed for a part of the run and was restored before its end."""

    name: str
    before: str | None
    during: str | None
    from_s: float
    """When it was first seen, from the start of the load, ramp included."""
    to_s: float


class Settings(Struct, frozen=True, kw_only=True):
    """Every setting of the block stack and of the VM that was read, and the limits of the control groups."""

    before: dict[str, str]
    after: dict[str, str]
    changed: list[SettingChange]
    temporary: list[TemporaryChange] = []


class Sample(Struct, frozen=True, kw_only=True):
    """One interval of the machine's monitor during the load. CPU times are shares of all CPUs' time; None: unknown."""

    at_s: float
    """Its end, from the start of the load, ramp included."""
    seconds: float
    cpu_others: float | None = None
    cpu_iowait: float | None = None
    cpu_steal: float | None = None
    other_read_bytes_per_s: float | None = None
    """Reads of the devices under test that this program did not cause."""
    other_write_bytes_per_s: float | None = None
    """The same for writes; None if the load's own writes pass through a cache."""
    swapped_pages: int | None = None
    throttle_events: int | None = None
    temperatures: dict[str, float] = {}
    """Celsius, of each drive and of the CPUs, if the kernel reports it."""
    array_actions: dict[str, str] = {}
    """Arrays that are resyncing or checking: name -> resync, recover, check ..."""
    devices: dict[str, dict[str, float]] = {}
    """Activity of the devices under test in the interval: name -> columns of `iostat -mx`."""


class MachineActivity(Struct, frozen=True, kw_only=True):
    """The machine's activity during the load. CPU times are shares of all CPUs' time; None: unknown."""

    cpu_others: float | None = 0.0
    """Used by other programs in user mode; kernel time may be the load's own work."""
    cpu_iowait: float | None = 0.0
    cpu_steal: float | None = 0.0
    """Taken by the hypervisor."""
    throttle_events: int | None = None
    """How often CPUs were slowed down for heat; None if the hardware does not report it."""
    swapped_pages: int | None = None
    """Pages swapped out and in."""
    findings: list[dict[str, Any]] = []
    """Arrays that were resyncing or degraded at the end."""
    samples: list[Sample] = []
    """About one a second; a load of less than a second has none."""
    cpus: float | None = None
    """CPUs that the load may use: its affinity, or the quota of its control groups."""
    cpus_idle: float | None = None
    """Share of these CPUs' time that was idle, waiting for I/O included."""
    group_throttled_s: float | None = None
    """Time for which a control group kept the load from the CPUs because its quota was used up."""
    group_memory_full: int | None = None
    """How often more memory was requested than a control group's limit."""
    temperature_limits: dict[str, float] = {}
    """Celsius at which a drive slows itself down, if it reports it."""
    jobs: list[dict[str, Any]] = []
    """Other processes that moved data on the target's stack during the load, the busiest first."""


class QuietSetting(Struct, frozen=True, kw_only=True):
    """A setting that was changed for the run to make the machine quiet."""

    name: str
    """`md0.sync_action`, `cpu0.governor`, `swap:/swapfile.priority`."""
    before: str | None
    during: str | None
    restored: bool | None = None
    """True if it was restored at the end; None: the run was not over yet."""
    reason: str = ""
    """Why it was not restored."""


class Precondition(Struct, frozen=True, kw_only=True):
    """How flash was brought to its state in use: filled, then written at random until steady."""

    skipped: str = ""
    """Why it was skipped; empty: it was done."""
    region_bytes: int = 0
    passes: int = 0
    """Number of sequential fills of the region."""
    fill_bytes: int = 0
    fill_seconds: float = 0.0
    load: str = ""
    """The load after the fill: `random writes of 4 KiB` or `the workload itself`."""
    load_bytes: int = 0
    """Bytes that it wrote."""
    load_seconds: float = 0.0
    steady: bool | None = None
    """True if it became steady in time; None: it was not done."""
    window: Steady | None = None
    """The steady window, if it became steady."""
    iops: float | None = None
    """Rate while steady, or over all of it if it did not become steady."""


class Preparation(Struct, frozen=True, kw_only=True):
    """Preparation of the machine before the run."""

    sync: str = "machine"
    """Scope of the sync: the `target`'s file systems, or all of the `machine`."""
    synced: list[str] = []
    """Mount points that were synced."""
    dropped_caches: bool = False
    """True if the whole page cache was dropped (`drop_caches`). The target's own pages are always dropped, except
    with `kept_pages`.
    """
    kept_pages: bool = False
    """True if the phase asked to keep cached pages: the target's own pages were not dropped."""
    waited_s: float = 0.0
    """Wait for the machine to become idle."""
    changed_settings: list[QuietSetting] = []
    notes: list[str] = []
    """Parts of the machine that could not be made quiet, with reasons."""
    precondition: Precondition | None = None
    """None: not requested."""


class WorkloadRequest(Struct, frozen=True, kw_only=True):
    """The workload as it was requested. The record's `workload` is what it resolved to."""

    source: str
    """`preset oltp`, or the path of the workload file or job file."""
    toml: str
    """Text of the preset or workload file at that time; of a job file, the TOML that it was converted to."""
    options: list[tuple[str, str]] = []
    """Workload keys given as options, with their values as given; the last of a key wins."""


class RunRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """One run of one workload on one target."""

    id: RunId
    started: str
    """UTC, ISO 8601."""
    tool: Tool
    workload: Workload
    target: Target
    seed: int
    figures: Figures
    devices: list[DeviceCounters]
    fetched_bytes: int | None = None
    """Bytes that block devices read for this program alone, read-ahead included (`read_bytes` of proc_pid_io(5));
    None: the kernel does not count them.
    """
    settings: Settings
    environment: dict[str, Any]
    preflight: dict[str, Any]
    """The check before the run: other users of the device and the machine."""
    activity: MachineActivity
    verdicts: list[Verdict]
    preparation: Preparation = Preparation()
    request: WorkloadRequest | None = None
    """In a search, it has the values that the search set; in a phase, it is that of all phases. None: it was not
    recorded.
    """
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict."""
        return worst(self.verdicts)

    @property
    def counters(self) -> DeviceCounters | None:
        """Counters of the device under test; the sum if a file system is on several devices. None: there is no
        device.
        """
        under_test = [device for device in self.devices if device.role == "target"]
        if len(under_test) <= 1:
            return under_test[0] if under_test else None
        names = sorted({name for device in under_test for name in device.delta})
        return DeviceCounters(
            name="+".join(device.name for device in under_test),
            role="target",
            seconds=under_test[0].seconds,
            delta={name: sum(device.delta.get(name, 0.0) for device in under_test) for name in names},
            iostat={
                "aqu-sz": sum(device.iostat.get("aqu-sz", 0.0) for device in under_test),
                "%util": max(device.iostat.get("%util", 0.0) for device in under_test),
            },
        )


class SeveralRuns:
    """A record that is made of several runs."""

    __slots__ = ()
    verdicts: list[Verdict]
    runs: list[RunRecord]

    @property
    def level(self) -> Level:
        """The worst verdict on the whole and on its runs."""
        return worst([*self.verdicts, *(verdict for run in self.runs for verdict in run.verdicts)])


class KneePoint(Struct, frozen=True, kw_only=True):
    """One step of a sweep."""

    outstanding: int
    """Requests in flight (workers x depth, all streams)."""
    iops: float
    bytes_per_s: float
    mean_latency_ns: float
    p99_latency_ns: int | None
    """The worst of all streams and directions."""
    run: RunId
    bytes_per_s_error: float | None = None
    """Standard error of the throughput between intervals; None: too few intervals."""


class Knee(Struct, frozen=True, kw_only=True):
    """The point from which more concurrency does not help."""

    points: list[KneePoint]
    knee: int | None
    """Fewest outstanding requests that reach 95 % of the highest throughput; None: nothing was measured."""
    knee_range: tuple[int, int] | None = None
    """Ends of the 95 % interval of the knee, among the steps; None: the steps have too few intervals."""
    levelled_off: bool
    """True if throughput stopped growing within the sweep; otherwise the knee is beyond it."""


class KneeRecord(SeveralRuns, Struct, frozen=True, kw_only=True, tag_field="kind", tag="knee"):
    """A sweep of concurrency: the same workload at 1, 2, 4 ... outstanding requests."""

    id: RunId
    started: str
    tool: Tool
    sweep: Knee
    runs: list[RunRecord]
    verdicts: list[Verdict]
    """About the sweep as a whole; each run has its own as well."""
    format: int = FORMAT


class Variation(Struct, frozen=True, kw_only=True):
    """A workload key with several values."""

    key: str
    """As on the command line: `size`, `log.depth`."""
    values: list[str]


class PhaseFigures(Struct, frozen=True, kw_only=True):
    """The figures of one phase."""

    name: str
    varied: dict[str, str] = {}
    """The values of the varied keys."""
    run: RunId
    seconds: float
    """From its first request to its last completion, ramp and end sync included."""
    cpu_percent: float
    """User and system time of the load's threads over those seconds, 100 for one CPU."""
    max_latency_ns: int | None
    """The slowest request; None: there was none."""
    requests: int
    iops: float
    bytes_per_s: float
    """Reads and writes together."""

    @property
    def label(self) -> str:
        """Name of the phase with its varied values, unique in its record: `read`, `read@size=4KiB+filesize=64MiB`."""
        values = "+".join(f"{key}={value}" for key, value in self.varied.items())
        return f"{self.name}@{values}" if values else self.name


class PhasesRecord(SeveralRuns, Struct, frozen=True, kw_only=True, tag_field="kind", tag="phases"):
    """Loads that ran one after another on the same target: the phases of a workload, or a workload with each
    combination of its varied values.
    """

    id: RunId
    started: str
    tool: Tool
    workload: Workload
    """As requested, with all its phases; varied keys have their unvaried values."""
    varied: list[Variation] = []
    """The last key changes fastest. Each combination runs all phases."""
    target: Target
    phases: list[PhaseFigures]
    """The phases that ran, in order."""
    runs: list[RunRecord]
    """One run for each phase."""
    verdicts: list[Verdict]
    """Verdicts on the whole; each run has its own as well."""
    request: WorkloadRequest | None = None
    """Without the varied keys. None: it was not recorded."""
    format: int = FORMAT


class TargetRecord(SeveralRuns, Struct, frozen=True, kw_only=True, tag_field="kind", tag="target"):
    """A latency search: the highest throughput within bounds on latency."""

    id: RunId
    started: str
    tool: Tool
    workload: Workload
    """As requested, before anything was varied."""
    target: Target
    search: TargetSearch
    runs: list[RunRecord]
    verdicts: list[Verdict]
    """Verdicts on the search as a whole; each run has its own as well."""
    request: WorkloadRequest | None = None
    """None: it was not recorded."""
    format: int = FORMAT


class CurveRecord(SeveralRuns, Struct, frozen=True, kw_only=True, tag_field="kind", tag="curve"):
    """Latency over throughput in open loop."""

    id: RunId
    started: str
    tool: Tool
    workload: Workload
    """As requested, before anything was varied."""
    target: Target
    curve: Curve
    runs: list[RunRecord]
    verdicts: list[Verdict]
    """Verdicts on the curve as a whole; each run has its own as well."""
    request: WorkloadRequest | None = None
    """None: it was not recorded."""
    format: int = FORMAT


class QuickFinding(Struct, frozen=True, kw_only=True):
    """One line of a quick look in words."""

    topic: str
    text: str
    level: Level = Level.OK


class ClassFigure(Struct, frozen=True, kw_only=True):
    """One figure of the device next to the range of its class."""

    name: str
    measured: float
    low: float
    high: float
    unit: str
    source: str
    text: str


class QuickFindings(Struct, frozen=True, kw_only=True):
    """A quick look in words."""

    device_class: str | None
    """Key in catalogue/classes.toml; None: no class with published figures."""
    limit: str
    """The bottleneck: `device`, `queue`, `cache`, `cpu`, `generator` or `unknown`."""
    findings: list[QuickFinding]
    comparison: list[ClassFigure]


class Step(Struct, frozen=True, kw_only=True):
    """One measurement of a quick look."""

    name: str
    """`sequential-read`, `random-read`, `random-read-rising`, `mix`, `first-part`, `last-part`."""
    about: str
    runs: list[RunId]


class QuickRecord(SeveralRuns, Struct, frozen=True, kw_only=True, tag_field="kind", tag="quick"):
    """A quick look at a device."""

    id: RunId
    started: str
    tool: Tool
    target: Target
    preflight: dict[str, Any]
    steps: list[Step]
    runs: list[RunRecord]
    sweep: Knee | None
    assessment: QuickFindings
    verdicts: list[Verdict]
    """Verdicts on the look as a whole; each run has its own as well."""
    skipped: list[str] = field(default_factory=list)
    """Skipped steps, each with its reason."""
    format: int = FORMAT


class ImportedRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="imported"):
    """One repetition of a measurement, from another tool's file. Spindle did not check it."""

    id: RunId
    """Time of the start or else of the report (`00000000T000000Z` if unknown) and six digits of the content's
    SHA-256: importing the same file again gives the same id.
    """
    started: str | None
    """UTC, ISO 8601; None: not in the file."""
    reported: str | None = None
    """When the tool wrote its figures, after the load: UTC, ISO 8601."""
    tool: Tool
    """The program that read the file."""
    source: Source
    """The file and the tool that wrote it."""
    host: str | None = None
    target: str | None = None
    """File, folder or device, as in the file."""
    workload: str | None = None
    """Name of the workload."""
    settings: dict[str, str] = {}
    """Settings of all streams, in the tool's own words."""
    streams: list[PartialStream] = []
    devices: list[DeviceSeries] = []
    machine: list[Moment] = []
    """CPU shares, %, as in iostat's avg-cpu."""
    verdicts: list[Verdict]
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict; never better than `warn`."""
        return worst(self.verdicts)

    @property
    def runs(self) -> list[RunRecord]:
        """Empty: it contains no run by Spindle."""
        return []


Record = RunRecord | KneeRecord | TargetRecord | CurveRecord | QuickRecord | PhasesRecord | ImportedRecord
"""Every result that verbs print as JSON and `spindle show` reads."""

SearchRecord = KneeRecord | TargetRecord | CurveRecord
"""Many runs of one workload, and the result of the search."""


def model_id(*asked: str) -> str:
    """Id of a modelled result: the same request always has the same id, and it does not look like a time."""
    return f"model-{hashlib.sha256(chr(0).join(asked).encode()).hexdigest()[:16]}"


def new_id(at: float | None = None) -> str:
    """Return an id that sorts by time; `at` in seconds since the epoch."""
    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def utc_now() -> str:
    """Now, UTC, ISO 8601 with seconds."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
