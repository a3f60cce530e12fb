"""A section's options as typed values. Values that cannot be read or converted become findings."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from spindle.formats.fio_log import FILES, HISTOGRAM, LogOrder

from . import values
from .criterion import Criterion, criterion
from .distribution import UNIFORM, Distribution, distribution
from .finding import JobFinding, Level, SourceLine
from .numbers import NOTHING, Amount, InvalidValue, Scale, amount, microseconds, natural, span, whole
from .options import Treatment, option_of, unknown
from .source import Section, Setting

T = TypeVar("T")

DIRECTIONS = ("read", "write", "trim")
MIXED = {"rw": "readwrite", "randrw": "readwrite", "readwrite": "readwrite"}
TRIM_FIRST = ("trimwrite", "randtrimwrite")
CHECKSUMS = (
    *("md5", "crc64", "crc32", "crc32c", "crc32c-intel", "crc16", "crc7", "sha1", "sha256", "sha512"),
    *("sha3-224", "sha3-256", "sha3-384", "sha3-512", "xxhash", "meta"),
)
VERIFIES = ("0", *CHECKSUMS, "pattern", "null")
MOST_COARSE = 6
OPERATIONS = {"filecreate": "create", "filestat": "stat", "filedelete": "unlink"}
"""fio's engines with metadata operations -> the operation."""
KINDS = ("read", "write", "trim", "randread", "randwrite", "randtrim", *MIXED, *TRIM_FIRST)

Weighted = tuple[tuple[int, int], ...]
"""(bytes, weight)."""


@dataclass(frozen=True)
class Sizes:
    """Request sizes of one direction: fixed (low = high), a range, or a list with weights."""

    low: int = 4096
    high: int = 4096
    split: Weighted = ()

    @property
    def smallest(self) -> int:
        return min((size for size, _ in self.split), default=self.low)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One section, typed. Sizes in bytes, times in microseconds."""

    name: str
    place: SourceLine
    about: str = ""
    filenames: tuple[str, ...] = ()
    """Empty: the job has its own files."""
    directory: str = ""
    directories: int = 0
    """Number of directories; `directory` is the first."""
    nrfiles: int = 1
    service: tuple[str, int] = ("roundrobin", 1)
    """Choice of the next file, and the number of requests before it."""
    opens: int = 0
    """Files open at a time; 0: all."""
    stat_type: str = ""
    """Option of the engine filestat; empty: not given."""
    fallocates: bool = True
    kind: str = "read"
    """One of `KINDS`."""
    skip_bytes: int = 0
    """From the end of each sequential request to the start of the next; negative: backwards."""
    run_length: int = 1
    """Random requests: only each N-th goes to a new place."""
    identical: bool = False
    """The others go to the same place, not one after the other."""
    percent_random: tuple[int, int, int] = (100, 100, 100)
    """Share of random reads, writes, trims: the others follow the request before."""
    sizes: tuple[Sizes, Sizes, Sizes] = (Sizes(), Sizes(), Sizes())
    """Sizes of reads, writes, trims."""
    aligns: tuple[int, int, int] = (0, 0, 0)
    """Alignment of reads, writes, trims; 0: the smallest size."""
    size: Amount = NOTHING
    """Zero bytes: not given."""
    io_size: Amount = NOTHING
    filesizes: tuple[int, int] = (0, 0)
    """Least and most bytes of a file; 0: by the size."""
    offset: Amount = NOTHING
    offset_increment: Amount = NOTHING
    number_ios: int = 0
    fill_device: bool = False
    append: bool = False
    """It begins at the end of its file."""
    zone_mode: str = "none"
    zone_bytes: int = 0
    """Bytes moved in a zone before the next one."""
    zone_range: int = 0
    """Length of a zone; 0: as `zone_bytes`."""
    zone_skip: int = 0
    """Gap between two zones."""
    loops: int = 1
    numjobs: int = 1
    offloads: bool = False
    """Requests are handed to threads that issue them: io_submit_mode=offload."""
    runtime_us: int = 0
    time_based: bool = False
    ramp_us: int = 0
    delays_us: tuple[int, int] = (0, 0)
    """Least and most delay of the start."""
    depth: int = 1
    engine: str = "psync"
    direct: bool = False
    invalidate: bool = True
    overwrite: bool = False
    sync: str = "none"
    """none, sync or dsync."""
    fsync: int = 0
    fdatasync: int = 0
    end_fsync: bool = False
    close_fsync: bool = False
    create_serialize: bool = True
    write_percent: int = 50
    """Share of writes in mixed kinds."""
    distribution: Distribution = UNIFORM
    random_map: bool = True
    rates: tuple[int, int, int] = (0, 0, 0)
    """Bytes per second of reads, writes, trims; 0: no bound."""
    rates_iops: tuple[int, int, int] = (0, 0, 0)
    poisson: bool = False
    think_us: int = 0
    think_spin_us: int = 0
    think_blocks: int = 1
    """Requests between two pauses."""
    think_issued: bool = False
    """They count when they are issued, not when they are done."""
    think_work_us: int = 0
    """Time between two pauses, instead of requests."""
    prio: int | None = None
    prioclass: int = 0
    seed: int | None = None
    zeroes: bool = False
    compress_percent: int = 0
    dedupe_percent: int = 0
    dedupe_set_percent: int = 0
    """Size of the set of repeated blocks, as a share of the size; 0: the content of the write before."""
    dedupe_global: bool = False
    stonewall: bool = False
    wait_for: str | None = None
    exitall: bool = False
    exit_what: str = "group"
    """Jobs that end with a clone: group, stonewall (all that run) or all (also later ones)."""
    trim_percent: int = 0
    trim_backlog: int = 0
    grouped: bool = False
    """group_reporting: all jobs of a group are reported as one."""
    new_group: bool = False
    unified: str = "none"
    """fio's JSON has all directions as one: none, mixed (instead of each) or both."""
    percentiles: tuple[float, ...] = ()
    """Percentiles in fio's JSON; empty: the usual ones."""
    cpus: tuple[int, ...] = ()
    cpus_split: bool = False
    """Each clone has one of them to itself, in turn; otherwise they share all."""
    iopoll: bool = False
    sqpoll: bool = False
    logs: tuple[LogOrder, ...] = ()
    verify: str = "0"
    """Kind of check; 0: none."""
    verify_fatal: bool = False
    reads_back: bool = True
    latency_target_us: int = 0
    latency_window_us: int = 0
    latency_percent: float = 100.0
    steady: Criterion | None = None
    steady_us: int = 0
    steady_ramp_us: int = 0

    @property
    def operation(self) -> str:
        """Metadata operation on each file; empty: data are moved."""
        return OPERATIONS.get(self.engine, "")

    @property
    def random(self) -> bool:
        return self.kind.startswith("rand")

    @property
    def in_order(self) -> bool:
        """Each request follows the one before."""
        return not self.random or self.percent_random[self.direction] == 0

    @property
    def mixed(self) -> bool:
        return self.kind in MIXED

    @property
    def trims_first(self) -> bool:
        return self.kind in TRIM_FIRST

    @property
    def direction(self) -> int:
        """Index into `DIRECTIONS`; of a mixed job, that of the reads."""
        return _direction(self.kind)

    @property
    def writes(self) -> bool:
        return self.mixed or self.kind.endswith("write")

    @property
    def align(self) -> int:
        return self.aligns[self.direction]

    @property
    def delayed(self) -> bool:
        return self.delays_us != (0, 0)


@dataclass
class TypedJob:
    """A job, the places of its options, and the findings about them."""

    job: Job
    section: Section
    places: dict[str, SourceLine]
    """Place of each given option."""
    findings: list[JobFinding] = field(default_factory=list)

    def say(self, level: Level, option: str, text: str) -> None:
        refused = {finding.option for finding in self.findings if finding.level is Level.ERROR}
        if option in refused or ("rw" in refused and level is not Level.ERROR):
            return  # only a consequence of a value that could not be read
        self.findings.append(JobFinding(level, self.places.get(option, self.job.place), option, text))


def typed(section: Section) -> TypedJob:
    """Return the job of a section with the globals above it."""
    return _Typing(section).result()


class _Typing:
    def __init__(self, section: Section) -> None:
        self.section = section
        self.findings: list[JobFinding] = []
        self.given: dict[str, Setting] = {}
        for setting in section.settings:
            self._take(setting)
        self.scale = Scale()
        self.scale = Scale(int(self.get("kb_base", "1024", values.one_of("1000", "1024"))))

    def _take(self, setting: Setting) -> None:
        option = option_of(setting.name)
        if option is None:
            self._say(Level.ERROR, setting, setting.name[:40], unknown(setting.name))
            return
        value = setting.value
        if value is None and not option.bare:
            self._say(Level.ERROR, setting, option.name, "needs a value")
        elif option.treatment is Treatment.TAKEN:
            # The last one wins, also among options with the same meaning.
            for other in _SAME.get(option.name, ()):
                self.given.pop(other, None)
            self.given.pop(option.name, None)
            self.given[option.name] = setting
        elif (value if value is not None else "1") not in option.neutral:
            self._say(Level(option.treatment.value), setting, option.name, option.text)

    def _say(self, level: Level, setting: Setting, option: str, text: str) -> None:
        self.findings.append(JobFinding(level, setting.place, option, text))

    def get(self, name: str, default: T, read: Callable[[str], T]) -> T:
        setting = self.given.get(name)
        if setting is None:
            return default
        try:
            return read(setting.value if setting.value is not None else "1")
        except InvalidValue as error:
            self._say(Level.ERROR, setting, name, str(error))
            return default

    def result(self) -> TypedJob:
        kind, skip, run_length = self.get("rw", ("read", 0, 1), self._kind)
        name = self.get("name", self.section.name, str)
        none: tuple[str, ...] = ()
        directories = self.get("directory", none, values.names)
        job = Job(
            name=name or self.section.name,
            place=self.section.place,
            about=self.get("description", "", str),
            filenames=self._filenames(),
            directory=next(iter(directories), ""),
            directories=len(directories),
            nrfiles=self.get("nrfiles", 1, values.within(1, 1 << 20)),
            service=self.get("file_service_type", ("roundrobin", 1), values.service),
            opens=self.get("openfiles", 0, values.within(0, 1 << 31)),
            stat_type=self.get("stat_type", "", values.one_of("stat", "lstat", "statx")),
            fallocates=self.get("fallocate", "native", values.fallocate) != "none",
            kind=kind,
            skip_bytes=skip,
            run_length=run_length,
            identical=self.get("rw_sequencer", "sequential", values.one_of("sequential", "identical")) == "identical",
            percent_random=self.get("percentage_random", (100, 100, 100), self._percents),
            sizes=self._sizes(),
            aligns=self.get("ba", (0, 0, 0), self._three),
            size=self.get("size", NOTHING, self._amount),
            io_size=self.get("io_size", NOTHING, self._amount),
            filesizes=self.get("filesize", (0, 0), self._sizes_of_files),
            offset=self.get("offset", NOTHING, self._amount),
            offset_increment=self.get("offset_increment", NOTHING, self._amount),
            number_ios=self.get("number_ios", 0, self._size),
            fill_device=self.get("fill_device", False, values.truth),
            append=self.get("file_append", False, values.truth),
            zone_mode=self.get("zonemode", "none", values.one_of("none", "strided", "zbd")),
            zone_bytes=self.get("zonesize", 0, self._size),
            zone_range=self.get("zonerange", 0, self._size),
            zone_skip=self.get("zoneskip", 0, self._zone_skip),
            loops=self.get("loops", 1, values.within(1, 1 << 31)),
            numjobs=self.get("numjobs", 1, values.within(1, 65536)),
            offloads=self.get("io_submit_mode", "inline", values.one_of("inline", "offload")) == "offload",
            runtime_us=self.get("runtime", 0, values.time),
            time_based=self.get("time_based", False, values.truth),
            ramp_us=self.get("ramp_time", 0, values.time),
            delays_us=self.get("startdelay", (0, 0), values.times),
            depth=self.get("iodepth", 1, values.within(1, 65536)),
            engine=self.get("ioengine", "psync", str),
            direct=self._direct(),
            overwrite=self.get("overwrite", False, values.truth),
            invalidate=self.get("invalidate", True, values.truth),
            sync=self.get("sync", "none", values.sync),
            fsync=self.get("fsync", 0, values.within(0, 1 << 31)),
            fdatasync=self.get("fdatasync", 0, values.within(0, 1 << 31)),
            end_fsync=self.get("end_fsync", False, values.truth),
            close_fsync=self.get("fsync_on_close", False, values.truth),
            create_serialize=self.get("create_serialize", True, values.truth),
            write_percent=self._write_percent(),
            distribution=self.get("random_distribution", UNIFORM, lambda text: distribution(text, self.scale)),
            random_map=not self.get("norandommap", False, values.truth),
            rates=self.get("rate", (0, 0, 0), self._three),
            rates_iops=self.get("rate_iops", (0, 0, 0), self._three),
            poisson=self.get("rate_process", "linear", values.one_of("linear", "poisson")) == "poisson",
            think_us=self.get("thinktime", 0, values.pause),
            think_spin_us=self.get("thinktime_spin", 0, values.pause),
            think_blocks=self.get("thinktime_blocks", 1, values.within(1, 1 << 31)),
            think_issued=self.get("thinktime_blocks_type", "complete", values.one_of("complete", "issue")) == "issue",
            think_work_us=self.get("thinktime_iotime", 0, values.time),
            prio=self.get("prio", None, values.within(0, 7)),
            prioclass=self.get("prioclass", 0, values.within(0, 3)),
            seed=self.get("randseed", None, values.seed),
            zeroes=self.get("zero_buffers", False, values.truth),
            compress_percent=self.get("buffer_compress_percentage", 0, values.within(0, 100)),
            dedupe_percent=self.get("dedupe_percentage", 0, values.within(0, 100)),
            dedupe_set_percent=self._dedupe_set(),
            dedupe_global=self.get("dedupe_global", False, values.truth),
            trim_percent=self.get("trim_percentage", 0, values.within(0, 100)),
            trim_backlog=self.get("trim_backlog", 0, values.within(0, 1 << 31)),
            stonewall=self.get("stonewall", False, values.truth),
            wait_for=self.get("wait_for", None, str),
            exitall=self.get("exitall", False, values.truth),
            exit_what=self.get("exit_what", "group", values.one_of("group", "stonewall", "all")),
            grouped=self.get("group_reporting", False, values.truth),
            new_group=self.get("new_group", False, values.truth),
            unified=self.get("unified_rw_reporting", "none", values.unified),
            percentiles=self.get("percentile_list", (), values.percentiles),
            cpus=self.get("cpus_allowed", (), values.cpus) or self.get("cpumask", (), values.mask),
            cpus_split=self.get("cpus_allowed_policy", "shared", values.one_of("shared", "split")) == "split",
            iopoll=self.get("hipri", False, values.truth),
            sqpoll=self.get("sqthread_poll", False, values.truth),
            logs=self._logs(name or self.section.name),
            verify=self.get("verify", "0", lambda text: "0" if text == "none" else values.one_of(*VERIFIES)(text)),
            verify_fatal=self.get("verify_fatal", False, values.truth),
            reads_back=self.get("do_verify", True, values.truth),
            latency_target_us=self.get("latency_target", 0, values.pause),
            latency_window_us=self.get("latency_window", 0, values.pause),
            latency_percent=self.get("latency_percentile", 100.0, values.percent),
            steady=self.get("steadystate", None, criterion),
            steady_us=self.get("steadystate_duration", 0, values.time),
            steady_ramp_us=self.get("steadystate_ramp_time", 0, values.time),
        )
        self._check_engine_options(job.engine)
        places = {option: setting.place for option, setting in self.given.items()}
        return TypedJob(job, self.section, places, self.findings)

    def _check_engine_options(self, engine: str) -> None:
        """Check that an engine's own options are only given with that engine."""
        for setting in self.section.settings:
            option = option_of(setting.name)
            owners = option.engines if option is not None else ()
            if option is None or not owners or engine in owners:
                continue
            known = [finding for finding in self.findings if finding.option == option.name]
            for finding in known:
                self.findings.remove(finding)
            text = f"belongs to ioengine={' or '.join(owners[:4])}, and this job's is {engine[:40]}; fio refuses it too"
            self._say(Level.ERROR, setting, option.name, text)

    def _filenames(self) -> tuple[str, ...]:
        """Return the file names; only the first `nrfiles`, if that is given."""
        none: tuple[str, ...] = ()
        names = self.get("filename", none, values.names)
        return names[: self.get("nrfiles", 1, values.within(1, 1 << 20))] if "nrfiles" in self.given else names

    def _logs(self, job: str) -> tuple[LogOrder, ...]:
        windows = {**dict.fromkeys(FILES, self._window_ms("log_avg_msec")), HISTOGRAM: self._window_ms("log_hist_msec")}
        coarseness = self.get("log_hist_coarseness", 0, values.within(0, MOST_COARSE))
        largest = self.get("log_max_value", False, values.truth)
        offsets = self.get("log_offset", False, values.truth)
        each = self.get("per_job_logs", True, values.truth)
        now = time.time_ns() // 10**6 if self.get("log_unix_epoch", False, values.truth) else 0
        orders = []
        for kind in FILES:
            setting = self.given.get(f"write_{kind}_log")
            if setting is not None:
                # Without a value fio keeps a name that was given before.
                named = [each.value for each in self.section.settings if each.name == setting.name and each.value]
                name = named[-1] if named else job
                name = name.replace("/", "_")
                orders.append(LogOrder(kind, name, windows[kind], largest, offsets, each, now, coarseness))
        return tuple(orders)

    def _window_ms(self, option: str) -> int:
        return self.get(option, 0, lambda text: microseconds(text, 1000) // 1000)

    def _direct(self) -> bool:
        return self.get("direct", False, values.truth) or not self.get("buffered", True, values.truth)

    def _sizes_of_files(self, text: str) -> tuple[int, int]:
        if re.search("[0-9a-zA-Z][-:]", text):
            return span(text, self.scale)
        size = natural(text, self.scale)
        return size, size

    def _kind(self, text: str) -> tuple[str, int, int]:
        """Return the kind, the distance to the next request, and the length of runs."""
        kind, colon, behind = text.strip().partition(":")
        if kind not in KINDS:
            raise InvalidValue(f"`{kind[:40]}` is none of {', '.join(KINDS)}")
        if not colon:
            return kind, 0, 1
        if kind.startswith("rand"):
            return kind, 0, max(values.within(0, 10**9)(behind), 1)
        return kind, whole(behind, self.scale), 1

    def _percents(self, text: str) -> tuple[int, int, int]:
        read, write, trim = (100 if each is None else each for each in self._each(text, values.within(0, 100)))
        return read, write, trim

    def _zone_skip(self, text: str) -> int:
        """Parse bytes, or `2z` for 2 times `zonesize`."""
        zones = re.fullmatch(r"([0-9]{1,9})z", text.strip())
        return int(zones[1]) * self.get("zonesize", 0, self._size) if zones else self._size(text)

    def _dedupe_set(self) -> int:
        """0: none."""
        mode = self.get("dedupe_mode", "repeat", values.one_of("repeat", "working_set"))
        share = self.get("dedupe_working_set_percentage", 5, values.within(0, 100))
        return share if mode == "working_set" else 0

    def _size(self, text: str) -> int:
        return natural(text, self.scale)

    def _amount(self, text: str) -> Amount:
        return amount(text, self.scale)

    def _each(self, text: str, read: Callable[[str], T]) -> list[T | None]:
        """Parse `8k,32k,` for reads, writes and trims; None: the default. Without a final comma the last repeats."""
        parts = text.split(",")
        if len(parts) > 3:
            raise InvalidValue(f"`{text[:40]}`: more than three values; they are for reads, writes and trims")
        found = [read(part) if part.strip() else None for part in parts]
        return found + [found[-1]] * (3 - len(found))

    def _three(self, text: str) -> tuple[int, int, int]:
        read, write, trim = (value or 0 for value in self._each(text, self._size))
        return read, write, trim

    def _sizes(self) -> tuple[Sizes, Sizes, Sizes]:
        """Combine sizes as fio's get_next_buflen: bsrange and bssplit override bs in any order. The later of these two
        defines the smallest and the largest size; if both are equal, that is the size, else a split is used if there
        is one.
        """
        none: list[Sizes | None] = [None, None, None]
        plain = self.get("bs", none, lambda text: self._each(text, self._block))
        ranges = self.get("bsrange", none, lambda text: self._each(text, self._range))
        splits = self.get("bssplit", none, lambda text: self._each(text, self._split))
        order = [name for name in self.given if name in ("bsrange", "bssplit")]
        bounds = splits if order[-1:] == ["bssplit"] else ranges
        found = []
        for bound, split, span_, size in zip(bounds, splits, ranges, plain, strict=True):
            decides = bound or split or span_
            varies = decides is not None and (bool(decides.split) or decides.low != decides.high)
            if varies and split is not None:
                decides = _cut(split, span_) if bounds is ranges and span_ is not None else split
            found.append(decides or size or Sizes())
        return found[0], found[1], found[2]

    def _block(self, text: str) -> Sizes:
        size = values.request(self._size(text))
        return Sizes(size, size)

    def _range(self, text: str) -> Sizes:
        low, high = span(text, self.scale)
        return Sizes(values.request(low), values.request(high))

    def _split(self, text: str) -> Sizes:
        entries: list[tuple[int, int | None]] = []
        for part in text.split(":"):
            size, _, percent = part.partition("/")
            weight = natural(percent) if percent.strip() else None
            entries.append((values.request(self._size(size)), weight))
        if len(entries) > 64:
            raise InvalidValue("more than 64 sizes")
        total = sum(weight for _, weight in entries if weight is not None)
        blank = sum(weight is None for _, weight in entries)
        if total > 100 or (total < 100 and not blank):
            raise InvalidValue(f"the percentages add up to {total}, not to 100")
        # In units of 1/blank percent, so that the rest is shared evenly and stays whole.
        unit = blank or 1
        split = tuple((size, (100 - total) if weight is None else weight * unit) for size, weight in entries)
        split = tuple((size, weight) for size, weight in split if weight)
        return Sizes(split[0][0], split[0][0]) if len(split) == 1 else Sizes(split=split)

    def _write_percent(self) -> int:
        reads = self.get("rwmixread", 50, values.within(0, 100))
        writes = self.get("rwmixwrite", 50, values.within(0, 100))
        later = [name for name in self.given if name in ("rwmixread", "rwmixwrite")][-1:]
        return writes if later == ["rwmixwrite"] else 100 - reads


def _cut(split: Sizes, bounds: Sizes) -> Sizes:
    """Fit the sizes of a split to a later bsrange as fio does: multiples of its smallest, at most its largest."""
    weights: dict[int, int] = {}
    for size, weight in split.split or ((split.low, 1),):
        fitting = min(max(size - size % bounds.low, bounds.low), bounds.high)
        weights[fitting] = weights.get(fitting, 0) + weight
    if len(weights) == 1:
        return Sizes(next(iter(weights)), next(iter(weights)))
    return Sizes(split=tuple(weights.items()))


def _direction(kind: str) -> int:
    if kind in MIXED:
        return 0
    return 1 if kind in TRIM_FIRST else DIRECTIONS.index(kind.removeprefix("rand"))


_SAME = {"direct": ("buffered",), "buffered": ("direct",)}
