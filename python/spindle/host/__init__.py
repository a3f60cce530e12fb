"""The machine under the target: who owns a device, whether it may be written, what state the machine is in.

Only `guard` opens a device for writing. The engine gets open descriptors and opens nothing itself.

Public signatures (times in seconds or integer nanoseconds as the name says, sizes in bytes)::

    # errors.py: each text is one line (what, where, what to do)
    class TargetError(Exception):      exit_code = 1   # the target cannot be used (busy, full, I/O error)
    class WrongTarget(TargetError):    exit_code = 2   # it is not there, or of a kind that cannot be one
    class Refused(TargetError):        exit_code = 3   # refused for safety

    # guard.py
    @dataclass(frozen=True)
    class StreamAccess:                # what one stream of the workload wants
        write: bool = False            # it writes, trims or zeroes
        direct: bool = True            # O_DIRECT
        dsync: bool = False            # O_DSYNC
        @classmethod
        def of(cls, stream: Mapping[str, Any]) -> StreamAccess      # of one stream in Workload.to_json()

    @dataclass(frozen=True)
    class StreamFile:                  # what the engine gets for one stream
        fd: int; size_bytes: int; block_bytes: int; memory_align: int
        def as_tuple(self) -> tuple[int, int, int, int]

    class OpenTarget:                  # context manager: closes the descriptors, drops the exclusive claim
        path: str                      # as given
        kind: str                      # 'device' | 'file'
        size_bytes: int
        files: tuple[StreamFile, ...]  # one per stream, in order
        device: Device | None          # the block device, or the one under the file (None: tmpfs, NFS ...)
        writes: bool
        def engine_files(self) -> list[tuple[int, int, int, int]]
        def counted_devices(self) -> list[Device]     # the device and everything below it, for diskstats
        def drop_cache(self) -> None                  # this target's pages written out and out of the page cache
        def trouble(self) -> str | None               # one line when the target has disappeared or changed its size
        def to_dict(self) -> dict[str, object]        # what the result record says about the target
        def close(self) -> None

    def open_target(path: str | os.PathLike[str] | TestFile, streams: Sequence[StreamAccess], *,
                    erase: str | None = None, erase_signature: str | None = None, erase_stacked: bool = False,
                    erase_shared: bool = False,
                    erased_before: bool = False, agreed: Identity | None = None,
                    confirm: Callable[[str], bool] | None = None, machine: Machine = Machine()) -> OpenTarget
        # Raises Refused or TargetError. `confirm` gets one line naming the device (size, model, serial) while the
        # device is already claimed; False refuses. None: the user has confirmed already (--yes).
        # erase_stacked: the target may be built of others (md, dm, loop over a device). erase_shared: the target may be
        # a partition while another partition of the same disk is in use. erased_before: signatures that are gone since
        # the device was last written to with this consent are not missed. agreed: the device that was consented to.
        # A TestFile is the only regular file that may be written.

    def describe_for_confirmation(device: Device, ...) -> str

    # testfile.py
    class TestFile:                    # context manager: removes the file
        path: Path; size_bytes: int
        @classmethod
        def create(cls, path, size_bytes, *, on_progress: Callable[[int, int], None] | None = None) -> TestFile
            # path: a file name that must not exist, or a directory (then the name is spindle-test-TOKEN.bin).
            # Raises Refused (exists; last 5 % of the file system; under /dev) or TargetError (full, no right ...).
        def remove(self) -> str | None # idempotent; a line to show when the file was left alone, and why
    def sweep_leftovers() -> list[Sweep]   # call it first thing in every run
        # Sweep: path: str; size_bytes: int; removed: bool; line: str  (one line to show on stderr)

    # signals.py
    class Stopped(KeyboardInterrupt): signum: int
    @contextmanager
    def unwinding(): ...               # SIGINT, SIGTERM, SIGHUP raise Stopped: `with` blocks clean up

    # devices.py
    class Machine: sys: Path; proc: Path; dev: Path                  # roots; tests point them at captured trees
    class Device: name: str; dev: DevNumber; kind: str; size_bytes: int; model: str | None; serial: str | None; ...

    # stack.py
    def device_of(path, machine=...) -> Device | None                # the block device itself or the one under a file
    def below(device, machine=...) -> list[Device]                   # everything underneath, nearest first
    def above(device, machine=...) -> list[Device]                   # everything on top
    def stack_of(path, machine=...) -> list[Layer]                   # file system down to the drives

    # diskstats.py
    def snapshot(devices: Sequence[Device] | None = None, machine=...) -> Snapshot     # .at_ns, .counters[name]
    def delta(before: Snapshot, after: Snapshot) -> dict[str, DiskDelta]
        # DiskDelta: raw differences (reads, read_bytes, ...) and .iostat(): dict of iostat's columns; .to_dict() both

    # conditions/
    def idle_check(devices: Sequence[Device], window_s: float = 1.0, machine=...) -> Idle
        # .to_dict(); .findings: list[Finding(check, level 'ok'|'warn'|'invalid', text, evidence: dict[str, float])]
        # .bad: those that are not ok; .unchecked: what could not be looked at, and why
    class Sampler(devices, under_test): .begin(moved), .look(moved), .end(moved), .samples       # beside a load

    # syncing.py
    def sync_stack(fd, devices, machine=...) -> list[str]            # the mount points that were written out

    # settings.py
    def settings_of(devices: Sequence[Device], machine=...) -> dict[str, str]
        # 'sda.scheduler': 'none', 'vm.dirty_ratio': '20'
    def diff(before, after) -> list[Change]                          # Change(name, before, after)

    # environment.py
    def environment(path: str | None = None, machine=...) -> dict[str, object]  # JSON-ready

    # caches.py
    def known_caches(devices, machine=...) -> Caches
        # ram_bytes, page_cache_bytes, drives {name: bytes | None}, data_set_bytes (2 x the sum)
    def drop_caches(machine=...) -> None                             # all of the page cache
    def drop_file_cache(fd: int) -> None
    def sync_file_system(fd: int) -> None
"""
