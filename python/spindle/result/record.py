"""The record of a run: everything needed to read its figures years later, in one JSON document.

The kinds share one schema, told apart by `kind`: a single run; a sweep for the knee, a search under a bound on latency,
an open-loop curve, a quick look and phases, each made of single runs; and what was imported from another tool's file.
Times are ns, sizes bytes unless a name says otherwise.
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
"""When a modelled run starts: zero of the machine's time."""
FORMAT = 1
"""Version of this shape; it grows when a reader of the older one would misread the newer."""


class Verdict(Struct, frozen=True, kw_only=True):
    """One check of a run, with the evidence in numbers and what to do about it."""

    check: str
    """Which check: `cache-share`, `steady`, `settings` ..."""
    level: Level
    evidence: str
    """What was seen, one sentence with its numbers."""
    advice: str = ""
    """What to do; empty when all is well."""
    numbers: dict[str, float] = {}
    """The numbers of the evidence, for programs."""

    @property
    def is_unknown(self) -> bool:
        """Whether it could not be checked, rather than found wrong."""
        return self.evidence.startswith("unknown")


def worst(verdicts: list[Verdict]) -> Level:
    """The worst level among them."""
    return max((verdict.level for verdict in verdicts), key=lambda level: level.rank, default=Level.OK)


class Tool(Struct, frozen=True, kw_only=True):
    """What made the record."""

    version: str
    name: str = "spindle"


class DeviceCounters(Struct, frozen=True, kw_only=True):
    """What one block device did during the load, from /proc/diskstats."""

    name: str
    role: str
    """`target`: the device under test, or the one under the file; `below`: something underneath it."""
    seconds: float
    """Length of the observation: from the first request, ramp included, to the end of the load."""
    delta: dict[str, float]
    """Differences of the counters: requests, bytes, milliseconds."""
    iostat: dict[str, float]
    """The columns of `iostat -x`, named as there."""

    def bytes_of(self, direction: str) -> float | None:
        """Bytes moved: `read` or `write`."""
        return self.delta.get(f"{direction}_bytes")

    def requests_of(self, direction: str) -> float | None:
        """Requests completed: `read` or `write`."""
        return self.delta.get(f"{direction}s")


class SettingChange(Struct, frozen=True, kw_only=True):
    """A setting that was another one after the run."""

    name: str
    before: str | None
    after: str | None


class PassingChange(Struct, frozen=True, kw_only=True):
    """A setting that was another one for a part of the run, and as before again at its end."""

    name: str
    before: str | None
    during: str | None
    from_s: float
    """When it was first seen, from the beginning of the load, ramp included."""
    to_s: float


class Settings(Struct, frozen=True, kw_only=True):
    """Every knob of the block stack and of the VM that was read, and the limits of the control groups."""

    before: dict[str, str]
    after: dict[str, str]
    changed: list[SettingChange]
    passing: list[PassingChange] = []


class Sample(Struct, frozen=True, kw_only=True):
    """One interval of the look at the machine beside the load. CPU times are shares of all CPUs' time; None: not
    known."""

    at_s: float
    """Its end, from the beginning of the load, ramp included."""
    seconds: float
    cpu_others: float | None = None
    cpu_iowait: float | None = None
    cpu_steal: float | None = None
    other_read_bytes_per_s: float | None = None
    """Read by the devices under test beyond what this program had them read."""
    other_write_bytes_per_s: float | None = None
    """The same for writes; None where the load's own writes pass through a cache."""
    swapped_pages: int | None = None
    throttle_events: int | None = None
    temperatures: dict[str, float] = {}
    """Celsius, of each drive and of the CPUs, where the kernel tells."""
    working: dict[str, str] = {}
    """Arrays that are busy with themselves: name -> resync, recover, check ..."""
    devices: dict[str, dict[str, float]] = {}
    """What the devices under test did in the interval: name -> columns of `iostat -mx`."""


class During(Struct, frozen=True, kw_only=True):
    """What the machine did while the load ran. CPU times are shares of all CPUs' time; None: not known."""

    cpu_others: float | None = 0.0
    """Used by other programs in user mode: what the kernel does may be the load's own work."""
    cpu_iowait: float | None = 0.0
    cpu_steal: float | None = 0.0
    """Taken by the hypervisor."""
    throttle_events: int | None = None
    """How often CPUs were slowed down for heat; None where the hardware does not say."""
    swapped_pages: int | None = None
    """Pages that went to swap and came from it."""
    findings: list[dict[str, Any]] = []
    """Arrays that are resyncing or degraded at the end."""
    samples: list[Sample] = []
    """About one a second; a load of less than that has none."""
    cpus: float | None = None
    """CPUs' worth of time that the load might use: those it may run on, or what its control groups allow."""
    cpus_idle: float | None = None
    """Share of the time of the CPUs it may run on that nothing used, waiting for I/O included."""
    group_throttled_s: float | None = None
    """For how long a control group kept the load from the CPUs because its quota was used up."""
    group_memory_full: int | None = None
    """How often memory was asked for beyond a control group's limit."""
    temperature_limits: dict[str, float] = {}
    """Celsius at which a drive slows itself down, where it says so."""
    jobs: list[dict[str, Any]] = []
    """Other processes that moved data on the target's stack meanwhile, the busiest first."""


class Quieted(Struct, frozen=True, kw_only=True):
    """Something of the machine that was changed for the run, to have it quiet."""

    name: str
    """`md0.sync_action`, `cpu0.governor`, `swap:/swapfile.priority`."""
    before: str | None
    during: str | None
    put_back: bool | None = None
    """Whether it was as before again at the end; None: the run was not over yet."""
    why_not: str = ""


class Precondition(Struct, frozen=True, kw_only=True):
    """How flash was brought into the state it has in use: filled, then written at random until steady."""

    skipped: str = ""
    """Why it was left out; empty: it was done."""
    region_bytes: int = 0
    passes: int = 0
    """Times that the region was filled sequentially."""
    fill_bytes: int = 0
    fill_seconds: float = 0.0
    load: str = ""
    """What was run then: `random writes of 4 KiB` or `the workload itself`."""
    load_bytes: int = 0
    """Written by it."""
    load_seconds: float = 0.0
    steady: bool | None = None
    """Whether it became steady before its time was over; None: it was not done."""
    window: Steady | None = None
    """When it was."""
    iops: float | None = None
    """While steady, or of all of it if it was not."""


class Prepared(Struct, frozen=True, kw_only=True):
    """What was done to the machine before the run."""

    sync: str = "machine"
    """What was written out: the `target`'s file systems, or all of the `machine`."""
    synced: list[str] = []
    """Mount points that were written out."""
    dropped_caches: bool = False
    """Whether everything the page cache could let go was dropped (`drop_caches`); the target's own pages are
    dropped in any case, but for `kept_pages`."""
    kept_pages: bool = False
    """A phase that asked for what is cached to stay: the target's own pages were not dropped."""
    waited_s: float = 0.0
    """For the machine to become idle."""
    quieted: list[Quieted] = []
    notes: list[str] = []
    """What could not be made quiet, and why."""
    precondition: Precondition | None = None
    """None: none was asked for."""


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
    """What this program alone had block devices read, read-ahead included (`read_bytes` of proc_pid_io(5)); None: the
    kernel does not count it."""
    settings: Settings
    environment: dict[str, Any]
    idle: dict[str, Any]
    """The check before the run: what else used the device and the machine."""
    during: During
    verdicts: list[Verdict]
    prepared: Prepared = Prepared()
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict."""
        return worst(self.verdicts)

    @property
    def counters(self) -> DeviceCounters | None:
        """Of the device under test; of all together where a file system lies on several. None: there are none."""
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


def _worst_of_all(verdicts: list[Verdict], runs: list[RunRecord]) -> Level:
    """The worst of what is said about the whole and about its runs."""
    return worst([*verdicts, *(verdict for run in runs for verdict in run.verdicts)])


class KneePoint(Struct, frozen=True, kw_only=True):
    """One step of a sweep."""

    outstanding: int
    """Requests kept under way (workers x depth, all streams)."""
    iops: float
    bytes_per_s: float
    mean_latency_ns: float
    p99_latency_ns: int | None
    """Worst of the streams and directions."""
    run: RunId
    bytes_per_s_error: float | None = None
    """Standard error of the throughput, from interval to interval; None: too few intervals to tell."""


class Knee(Struct, frozen=True, kw_only=True):
    """Where more concurrency stops to pay."""

    points: list[KneePoint]
    knee: int | None
    """Least number of outstanding requests that reaches 95 % of the highest throughput; None: nothing was measured."""
    knee_range: tuple[int, int] | None = None
    """Ends of the 95 % interval of the knee, among the steps; None: the steps have too few intervals to tell."""
    levelled_off: bool
    """Whether throughput stopped growing within the sweep; if not, the true knee lies beyond it."""


class KneeRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="knee"):
    """A sweep of concurrency: the same workload at 1, 2, 4 ... outstanding requests."""

    id: RunId
    started: str
    tool: Tool
    sweep: Knee
    runs: list[RunRecord]
    verdicts: list[Verdict]
    """About the sweep as a whole; each run has its own as well."""
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict of the sweep and of its runs."""
        return _worst_of_all(self.verdicts, self.runs)


class Variation(Struct, frozen=True, kw_only=True):
    """A key of the workload that was given several values."""

    key: str
    """As on the command line: `size`, `log.depth`."""
    values: list[str]


class PhaseFigures(Struct, frozen=True, kw_only=True):
    """What one phase came to."""

    name: str
    varied: dict[str, str] = {}
    """What the keys that were varied had in it."""
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
    """Read and written."""

    @property
    def label(self) -> str:
        """Tells it from all others of its record: `read`, `read@size=4KiB+filesize=64MiB`."""
        values = "+".join(f"{key}={value}" for key, value in self.varied.items())
        return f"{self.name}@{values}" if values else self.name


class PhasesRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="phases"):
    """Loads that ran one after another on the same target: the phases of a workload, or a workload with each
    combination of the values of keys that were varied."""

    id: RunId
    started: str
    tool: Tool
    workload: Workload
    """As asked, with all its phases; what was varied is as it is where nobody varies it."""
    varied: list[Variation] = []
    """The last one changes fastest. All phases are carried out for each combination."""
    target: Target
    phases: list[PhaseFigures]
    """Those that were carried out, in their order."""
    runs: list[RunRecord]
    """One for each of them."""
    verdicts: list[Verdict]
    """About the whole; each run has its own as well."""
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict of the whole and of its runs."""
        return _worst_of_all(self.verdicts, self.runs)


class TargetRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="target"):
    """A search for the highest throughput at which bounds on latency hold."""

    id: RunId
    started: str
    tool: Tool
    workload: Workload
    """As asked, before anything was varied."""
    target: Target
    search: TargetSearch
    runs: list[RunRecord]
    verdicts: list[Verdict]
    """About the search as a whole; each run has its own as well."""
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict of the search and of its runs."""
        return _worst_of_all(self.verdicts, self.runs)


class CurveRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="curve"):
    """Latency over throughput in open loop."""

    id: RunId
    started: str
    tool: Tool
    workload: Workload
    """As asked, before anything was varied."""
    target: Target
    curve: Curve
    runs: list[RunRecord]
    verdicts: list[Verdict]
    """About the curve as a whole; each run has its own as well."""
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict of the curve and of its runs."""
        return _worst_of_all(self.verdicts, self.runs)


class Finding(Struct, frozen=True, kw_only=True):
    """One line of an assessment."""

    topic: str
    text: str
    level: Level = Level.OK


class ClassFigure(Struct, frozen=True, kw_only=True):
    """One figure of the device beside what its class delivers."""

    name: str
    measured: float
    low: float
    high: float
    unit: str
    source: str
    text: str


class Assessment(Struct, frozen=True, kw_only=True):
    """A quick look in words."""

    device_class: str | None
    """Key in catalogue/classes.toml; None: no class with sourced figures."""
    limit: str
    """What limits: `device`, `queue`, `cache`, `cpu`, `generator` or `unknown`."""
    findings: list[Finding]
    comparison: list[ClassFigure]


class Step(Struct, frozen=True, kw_only=True):
    """One measurement of a quick look."""

    name: str
    """`sequential-read`, `random-read`, `random-read-rising`, `mix`, `first-part`, `last-part`."""
    about: str
    runs: list[RunId]


class QuickRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="quick"):
    """A quick look at a device."""

    id: RunId
    started: str
    tool: Tool
    target: Target
    idle: dict[str, Any]
    steps: list[Step]
    runs: list[RunRecord]
    sweep: Knee | None
    assessment: Assessment
    verdicts: list[Verdict]
    """About the look as a whole; each run has its own as well."""
    skipped: list[str] = field(default_factory=list)
    """Steps that were left out, each with its reason."""
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict of the look and of its runs."""
        return _worst_of_all(self.verdicts, self.runs)


class ImportedRecord(Struct, frozen=True, kw_only=True, tag_field="kind", tag="imported"):
    """What another tool's file says: one repetition of what it measured. Nothing in it was checked by Spindle."""

    id: RunId
    """Time of the start or else of the report (`00000000T000000Z` if unknown) and six digits of the content's SHA-256:
    the same file has the same identity whenever it is imported."""
    started: str | None
    """UTC, ISO 8601; None: the file does not say."""
    reported: str | None = None
    """When the tool wrote its figures, after the load: UTC, ISO 8601."""
    tool: Tool
    """What read the file."""
    source: Source
    """What wrote it."""
    host: str | None = None
    target: str | None = None
    """File, folder or device, as the file writes it."""
    workload: str | None = None
    """Name of what was run."""
    settings: dict[str, str] = {}
    """What was asked for of all streams, in the tool's own words."""
    streams: list[PartialStream] = []
    devices: list[DeviceSeries] = []
    machine: list[Moment] = []
    """CPU shares, %, as iostat's avg-cpu has them."""
    verdicts: list[Verdict]
    format: int = FORMAT

    @property
    def level(self) -> Level:
        """The worst verdict; never better than `warn`."""
        return worst(self.verdicts)

    @property
    def runs(self) -> list[RunRecord]:
        """None: no run of Spindle's own is in it."""
        return []


Record = RunRecord | KneeRecord | TargetRecord | CurveRecord | QuickRecord | PhasesRecord | ImportedRecord
"""Whatever `--json` prints and `spindle show` reads."""

SearchRecord = KneeRecord | TargetRecord | CurveRecord
"""Many runs of one workload, and what they find together."""


def model_id(*asked: str) -> str:
    """The identity of what a modelled machine did: the same whenever the same is asked, and none that looks like a
    time."""
    return f"model-{hashlib.sha256(chr(0).join(asked).encode()).hexdigest()[:16]}"


def new_id(at: float | None = None) -> str:
    """An identity that sorts by time; `at` in seconds since the epoch."""
    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def utc_now() -> str:
    """Now, UTC, ISO 8601 with seconds."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
