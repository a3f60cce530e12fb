"""The Rust core as Python sees it. Times are integer nanoseconds, sizes bytes."""

import os
from collections.abc import Sequence
from typing import final

from spindle.base.errors import ConfigError as ConfigError
from spindle.base.errors import NotModelled as NotModelled
from spindle.base.errors import RunError as RunError

__version__: str

def parse_size(text: str) -> int:
    """'64KiB' -> bytes. Raises ConfigError."""

def parse_duration(text: str) -> int:
    """'2s', '150 us' -> nanoseconds. Raises ConfigError."""

def format_duration(ns: int) -> str:
    """Nanoseconds as `parse_duration` reads them, in the largest unit that divides them."""

def preset_names() -> list[str]: ...
def preset_text(name: str) -> str:
    """TOML of a preset. Raises ConfigError naming the nearest preset."""

def workload_keys() -> str:
    """JSON list of {name, level ('workload' | 'phase' | 'stream' | 'files'), kind, help, default, example, needs,
    range, choices}: every key of a workload file. The command line's options are made from it."""

@final
class Workload:
    """A resolved workload."""

    @staticmethod
    def parse(text: str, source: str, name: str, overrides: Sequence[tuple[str, str]] = ...) -> Workload:
        """Resolve TOML text. An override is ('size', '64KiB') for every stream or ('STREAM.size', '64KiB') for one;
        its value is text as on the command line. Raises ConfigError."""

    @staticmethod
    def from_json(text: str) -> Workload:
        """Read the JSON of `to_json`, of this version or an earlier one. Raises ConfigError."""

    def to_json(self) -> str:
        """The `Workload` of crates/workload/src/spec.rs."""

    def to_toml(self) -> str:
        """The shortest workload file that resolves to this workload."""

    def options(self, text: str, free: Sequence[str] = ...) -> list[tuple[str, str]] | None:
        """The fewest options that make this workload of the workload file `text`; None if options cannot say it. Keys
        in `free` may have any value."""

    def phases(self) -> list[Workload]:
        """The loads that run one after another, each an ordinary workload named as its phase; empty if it is one."""

    def only_names(self, stream: int, operation: str) -> Workload:
        """The load that does one operation (`mkdir`, `create`), once and in order, to every name that a stream works
        on. Raises ConfigError if it works on none."""

    def file_sizes(self, fileset: int, auto_bytes: int) -> list[int]:
        """Size of each file of a set, by its index; `auto_bytes`: what the files of a set of `auto` size come to.
        Raises ConfigError."""

    def check(self, sizes: Sequence[Sequence[int]], block_bytes: int) -> None:
        """Check that every stream can run on a target of this size, or on files of these sizes, one list per stream.
        Raises ConfigError."""

    def requests(
        self, stream: int, worker: int, size_bytes: int, block_bytes: int, count: int
    ) -> list[tuple[str, int, int, bool]]:
        """The first requests of a worker: (op, offset, length, fsync after)."""

@final
class Run:
    """A load in progress on its own threads. It starts when constructed."""

    def __new__(
        cls,
        workload: Workload,
        files: Sequence[Sequence[tuple[int, int, int, int]]],
        *,
        engine: str = "auto",
        sqpoll: bool = False,
        iopoll: bool = False,
        timestamps: str = "request",
        tolerate_errors: bool = False,
        cpus: Sequence[int] | None = None,
        cpus_shared: bool = False,
        interval_ns: int = 1_000_000_000,
        log: int | None = None,
        written: ExpectedContent | None = None,
    ) -> Run:
        """`files`: for each stream its target, or the files of the set it uses in the order of the set, each as (open
        descriptor, size in bytes, offset/length alignment, memory alignment). The descriptors' flags (O_DIRECT,
        O_DSYNC, access mode) are used as they are; they stay the caller's and must stay open until the run is over.
        engine: auto | io_uring | pread. log: a descriptor to which every completion is written as a line of CSV
        (docs/reference/log.md). written: what earlier loads on the same open files wrote, where the workload
        verifies."""

    @staticmethod
    def null(workload: Workload, size_bytes: int, service_ns: int = 0, *, log: int | None = None) -> Run:
        """The same on a target that needs no system call (each request of a worker takes `service_ns`): the
        generator's own cost."""

    def progress(self) -> str:
        """JSON: {phase: 'calibrate'|'ramp'|'measure'|'sync'|'done', elapsed_ns, measured_ns,
        streams: [{name, reads, writes, read_bytes, write_bytes, errors}]} since the start, ramp included."""

    def so_far(self, patience_s: float = 0.2) -> str | None:
        """The same JSON as `figures`, of what was completed so far; None: the load has not begun, or is over. A
        worker that waits for the kernel longer than `patience_s` counts with its last snapshot."""

    def stop(self) -> None:
        """Ask it to end; figures up to then are kept."""

    def wait(self, timeout_s: float) -> bool:
        """True if it is over; returns at once when it is."""

    def figures(self) -> str:
        """JSON of `RunFigures` (crates/measure/src/figures.rs); waits for the end."""

    def written(self) -> ExpectedContent | None:
        """The written blocks, if the workload verifies; only after the end."""

@final
class ExpectedContent:
    """The expected content of the target: for each block the last write of the run."""

    @staticmethod
    def from_state(state: bytes) -> ExpectedContent:
        """From what `to_state` gave. Raises ConfigError."""

    def to_state(self, paths: Sequence[str] = ...) -> bytes:
        """As bytes, to be kept. `paths`: where the files are, if not where the kernel knows them."""

    def is_empty(self) -> bool:
        """True if there is no block whose content is known."""

    @property
    def block_bytes(self) -> int: ...
    @property
    def run(self) -> str:
        """The run's number in each block, as 16 hexadecimal digits."""

    @property
    def files(self) -> list[tuple[str, int]]:
        """Path and size of each, in the order of their numbers."""

    def read_back(self, files: Sequence[tuple[int, int, int, int]] | None = None) -> ReadBack:
        """Start reading it back, from these files (as `Run` takes them, one for each of `files`), or from the run's
        own, which must still be open."""

@final
class ReadBack:
    """A read-back in progress on its own threads. It starts when constructed."""

    def progress(self) -> str:
        """JSON: {done, total, faults}, in blocks."""

    def stop(self) -> None:
        """Ask it to end; what was found up to then is kept."""

    def wait(self, timeout_s: float) -> bool:
        """True if it is over; returns at once when it is."""

    def figures(self) -> str:
        """JSON of `ReadBackFigures` (crates/measure/src/verification.rs); waits for the end."""

def device_classes() -> str:
    """TOML text of catalogue/classes.toml: what each class of device delivers, with sources."""

def campaign_presets() -> list[tuple[str, str]]:
    """Name and TOML text of each plan in catalogue/campaigns."""

def steady(series: Sequence[float]) -> str:
    """JSON of `measure::steady` on equally long windows (SNIA PTS rule) and of the trend test beside it."""

def departures(series: Sequence[float], beside: int) -> str:
    """JSON list of `measure::departure::Departure`: how a series of equally long windows departs from a level, the best
    description first; `beside`: number of other series that are looked at as well."""

def step_ruled_out(series: Sequence[float]) -> float | None:
    """`measure::departure::ruled_out`: the smallest step up or down, as a share of the level before, that a series of
    equally long windows rules out; None if not even one of 100 % is."""

def histogram_percentiles(histograms: Sequence[str], percentiles: Sequence[float]) -> list[int]:
    """Latencies at ascending percentiles, ns, of stored histograms (`HISTF...`) taken together; empty if they hold
    nothing. Raises ValueError if one is damaged."""

def histogram_of(counts: Sequence[tuple[int, int]]) -> str:
    """A stored histogram (`HISTF...`) of (latency in ns, how often)."""

def histogram_counts(histogram: str) -> list[tuple[int, int]]:
    """(latency in ns, how often) of a stored histogram, ascending. Raises ValueError if it is damaged."""

def array_layout(
    level: str,
    drives: Sequence[int],
    *,
    layout: str | None = None,
    chunk: int | None = None,
    groups: int | None = None,
    outer_chunk: int | None = None,
    rows: int | None = None,
) -> str:
    """JSON of `LayoutReport` (crates/array/src/report.rs). Sizes are bytes; what is left out is as mdadm chooses it.
    Raises ConfigError."""

def validate_maps(directory: str) -> str:
    """JSON of `MapsReport` (crates/array/src/validate.rs): address maps against lists of real arrays. Raises
    ConfigError if the directory has none."""

def drive_names() -> list[str]:
    """Drives of the catalogue."""

def drive_line(name: str) -> str:
    """JSON: the few figures of a drive that the catalogue lists. Raises ConfigError naming the nearest drive."""

def drive_sheet(name: str) -> str:
    """TOML of a drive's data sheet (catalogue/drives). Raises ConfigError naming the nearest drive."""

def drive_facts(name: str) -> str:
    """JSON of `Facts` (crates/drive/src/show.rs): capacity, rates, failure rates, power and place of a drive; runs
    nothing. Raises ConfigError naming the nearest drive."""

def example_prices() -> str:
    """The example of a file of prices (catalogue/prices-example.csv)."""

def drive_show(name: str) -> str:
    """JSON: a drive's seek curve, transfer rate over its addresses, IOPS against request size and queue depth. Raises
    ConfigError naming the nearest drive."""

def validate_drives(directory: str) -> str:
    """JSON of `DrivesReport` (crates/drive/src/validate.rs): drive models against measured traces. Raises
    ConfigError."""

def elevator_parameters() -> dict[str, dict[str, tuple[str, str]]]:
    """Elevator -> file in `queue/iosched` -> key in `[queue.iosched]`, unit of the file (ms, ns, KiB, count, flag)."""

@final
class Machine:
    """A modelled machine."""

    @staticmethod
    def parse(text: str, source: str, changes: Sequence[tuple[str, str, str]] = ...) -> Machine:
        """Read a machine file; `source` names it in messages. `changes`: (part, key, value) of numbers that differ
        from those of the part's sheet, part and key as `ranges` has them. Raises ConfigError: place, what, what is
        allowed."""

    def ranges(self) -> list[tuple[str, str, str, str, str]]:
        """The uncertain numbers: (part, key, least, the model's, most), as written in a file. `part`: model of a
        drive or controller, `server` for a plain service time."""

    def assumed(self) -> list[tuple[str, str]]:
        """The numbers that a sheet assumes without a range: (part, key)."""

    def to_json(self) -> str:
        """JSON: {name, about, capacity, kernel, schedulers, drives, level, queue_depth, cache_bytes}."""

    def kernel_setup(self) -> str:
        """JSON: array, queues and file system as a kernel takes them (crates/lab/src/setup.rs). Raises ConfigError."""

    def finish_times(self, slot: int, requests: Sequence[tuple[int, str, int, int]]) -> list[int]:
        """When the drive of a slot, alone and idle at first, is done with each request (ns): (arrival in ns, letter as
        in the lab's trace, first sector, sectors). Raises ConfigError."""

@final
class Simulation:
    """A load on a modelled machine, on a thread of its own. It starts when constructed."""

    def __new__(
        cls,
        machine: Machine,
        workload: Workload,
        *,
        trace: bool = False,
        interval_ns: int = 1_000_000_000,
        places: Sequence[Sequence[int]] = ...,
        one_call_each: bool = False,
        begin: tuple[int, int, bool] = ...,
    ) -> Simulation:
        """`trace`: record every command of every drive as a line of CSV; the caller must drain it. `places`: offsets in
        bytes for the requests of each stream, in order of issue, instead of those that its pattern draws.
        `one_call_each`: each request is submitted by a system call of its own; otherwise all that a worker has go in
        one call. `begin`, with the machine's `clock_reading`: time of the first timer tick, and for how long a thread
        of the load has the processor before its first request, but for the first one; true if the load opens the test
        file of a `[filesystem]` itself."""

    def progress(self) -> str:
        """As `Run.progress`, in the machine's time."""

    def stop(self) -> None:
        """Ask it to end; figures up to then are kept."""

    def wait(self, timeout_s: float) -> bool:
        """True if it is over; returns at once when it is."""

    def trace_piece(self, timeout_s: float) -> bytes | None:
        """The next piece of the trace, empty if there is none yet; None: there is no more. The run waits for who does
        not take it."""

    def figures(self) -> str:
        """JSON of `SimFigures` (crates/sim/src/figures.rs); waits for the end. Raises ConfigError if the workload
        cannot run on the machine."""

def simulate_many(
    runs: Sequence[tuple[Machine, Workload]], *, threads: int | None = None, interval_ns: int = 1_000_000_000
) -> list[str]:
    """Several runs on as many threads (None: one a core); JSON of `SimFigures` of each, the same whatever their
    number."""

def machine_names() -> list[str]:
    """Machines of the catalogue."""

def machine_text(name: str) -> str:
    """TOML of a machine of the catalogue. Raises ConfigError naming the nearest."""

@final
class ModelledDrive:
    """One modelled drive with its settings."""

    @staticmethod
    def parse(keys: str, source: str, sheet: str | None = None, sheet_source: str = "") -> ModelledDrive:
        """Read the keys of a `[[drive]]`, as TOML; `source` names them in messages. `sheet`: the text of the sheet that
        `model` names, if it is not of the catalogue. Raises ConfigError."""

    @staticmethod
    def sheet_name(sheet: str, source: str) -> str:
        """The name in a sheet's text. Raises ConfigError."""

    @property
    def bytes(self) -> int:
        """Bytes of the disk."""

@final
class DriveServer:
    """A modelled drive as a disk in real time (crates/disk), on a thread of its own. It serves when constructed."""

    def __new__(
        cls, drive: ModelledDrive, protocol: str, place: str, *, contents: int | None = None, spin_ns: int = 0
    ) -> DriveServer:
        """`protocol`: vhost-user or nbd-socket (`place` is a new socket), nbd (HOST:PORT), fuse (a folder). `contents`:
        the descriptor of a file as long as the disk. Raises RunError."""

    def stop(self) -> None:
        """Ask it to end."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; true if it has ended."""

    def summary(self) -> str:
        """JSON of `Summary` (crates/disk/src/serve/mod.rs), after the end. Raises RunError."""

@final
class Lab:
    """The calendar and the drives of one boot of the lab's kernel (crates/lab), on a thread of their own."""

    def __new__(
        cls,
        machine: Machine,
        folder: str | os.PathLike[str],
        *,
        interactive: bool = False,
        trace: bool = False,
        cpu: int | None = None,
        faults: list[str] = ...,
        time_limit_ns: int | None = None,
    ) -> Lab:
        """Make the sockets in an empty folder. `interactive`: virtual time passes no faster than real time, and `write`
        types at the terminal. `cpu`: where the thread stays. `faults`: see crates/lab/src/fault.rs. Raises RunError."""

    @property
    def kernel_arguments(self) -> list[str]:
        """Arguments for the kernel, which is started in the folder."""

    def start(self) -> None:
        """Wait for the kernel, and serve it until it ends."""

    def write(self, bytes: bytes) -> None:
        """Type at the terminal."""

    def output(self, timeout_s: float) -> tuple[int, bytes] | None:
        """The next output of the kernel: number of the console, bytes; no bytes: nothing yet. None: it has ended."""

    def report(self) -> str:
        """JSON of `Report` (crates/lab/src/report.rs); waits for the end. Raises RunError."""

    def put(self, slot: int, offset: int, bytes: bytes) -> None:
        """Put bytes on the drive of a slot, before the start."""

    def pages(self, slot: int) -> list[int]:
        """Offsets of the pages of 64 KiB of a drive that were written; after the report."""

    def page(self, slot: int, offset: int) -> bytes:
        """One page of a drive."""

    def trace(self) -> str:
        """Each request at the drives as CSV, drive by drive in the order of arrival; after the report."""

@final
class Durability:
    """Writers of a durability test, on their own threads. They start when it is constructed."""

    def __new__(
        cls,
        header: str,
        targets: Sequence[tuple[int, int, int, int]],
        journal: int,
        *,
        receiver: bool = False,
        seconds: float | None = None,
    ) -> Durability:
        """`header`: JSON of `Header` (crates/engine/src/durable/entry.rs). `targets`: the target opened once for each
        worker, for reading and writing, as for `Run`. `journal`: a descriptor that is written at its end, or
        (`receiver`) a connected socket. All stay the caller's and must stay open until the test is over. Raises
        RunError."""

    def progress(self) -> str:
        """JSON: {phase: 'look'|'write'|'done', elapsed_ns, acknowledged, syncs}."""

    def stop(self) -> None:
        """Ask it to end, after the sync that each worker is in."""

    def wait(self, timeout_s: float) -> bool:
        """True if it is over; returns at once when it is."""

    def figures(self) -> str:
        """JSON of `DurableFigures` (crates/engine/src/durable/writer.rs); waits for the end."""

def durability_journal(journal: int) -> str:
    """JSON of `JournalSummary` (crates/engine/src/durable/journal.rs) of an open journal. Raises ConfigError if it is
    none."""

def durability_check(journal: int, target: tuple[int, int, int, int]) -> str:
    """JSON of `Findings` (crates/engine/src/durable/findings.rs): what is on a target (as for `Run`, only read) held
    against a journal. Raises ConfigError."""
