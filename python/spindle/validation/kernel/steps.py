"""A measured case as a machine and commands for the lab."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from spindle.base.errors import NotModelled
from spindle.lab import programs
from spindle.validation.kernel.cases import APPENDED_BYTES, NOMINAL_BYTES, Case, Load

DRIVES = ("vda", "vdb", "vdc", "vdd")
MARKER = "vde"
"""A small drive behind the four: reads of its sectors 0 and 1 are the begin and the end of the measurement."""
_FIGURES, _ERRORS = "/run/figures", "/run/errors"
"""Files in the lab with the output of the measured command; one more for each load of several."""
_NEEDED = ("busybox", "mdadm", "mkfs.xfs", "mke2fs")
"""Programs of the lab that cases run."""
_ID = "11111111-2222-3333-4444-555555555555"
_ARRAY_ID = "11111111:22222222:33333333:44444444"
_MD = "/sys/block/md0/md"
REBUILT = "vdb"
STRIPES = 256
"""md's own `stripe_cache_size`."""
_FILE = "/mnt/f"
_FILE_MIB = 64
_DD = "/usr/local/bin/dd"
_LINKER = "/lib64/ld-linux-x86-64.so.2"
_LEVELS = ("x86-64-v4", "x86-64-v3")
"""Levels whose folders were searched where the cases were measured, besides x86-64-v2."""
_OF_SOME_CPUS = {"haswell", "xeon_phi", "avx512_1"}
"""Folders that were not."""
_HIDDEN = ("LZCNT", "AVX512CD")
_SHELL = "/bin/sh"
"""A name that is searched for in vain in the first folders of the PATH takes time."""
_PRIORITIES = {"realtime:0": "ionice -c 1 -n 0 ", "idle": "ionice -c 3 ", None: ""}
_IDLE_S = 40
"""After mkfs and mount."""
_PRINTED = (
    *(f"queue/{name}_kb" for name in ("read_ahead", "max_sectors", "max_hw_sectors")),
    *("queue/max_segments", "queue/minimum_io_size", "queue/optimal_io_size", "queue/chunk_sectors", "size"),
    *(f"md/{name}" for name in ("rd0/offset", "stripe_cache_size", "preread_bypass_threshold", "rmw_level")),
    *(f"md/{name}" for name in ("group_thread_cnt", "safe_mode_delay", "skip_copy")),
    "bdi/max_ratio",
)
"""Attributes that were printed before each measurement, each by a process: they move its begin."""
MIXES = ("mix", "mixw")
_DEFAULT_LIMIT_KIB = 200_000
CHECK = "check"
_IDLE = {"sync_action": "idle", "sync_completed": "none", "degraded": "0"}
"""Files of md and their values when a check is over. md's thread waits for each program that reads one: with three the
requests of a check are as measured, which is fitted.
"""
_REBUILDS_KIB = {"rebuild": _DEFAULT_LIMIT_KIB, "rebuild-limit20000": 20_000}
SYNCS = {**_REBUILDS_KIB, CHECK: _DEFAULT_LIMIT_KIB}
"""Operation of md -> its highest speed, KiB/s."""
CLOCK_READING_NS = 256
"""A reading of the clock took so long: User Mode Linux was unchanged."""
_READINGS = {1: {"raid1": 15, "": 16}, 2: {"single": 43, "": 42}}
"""Readings of the clock before the measurement, by the number of loads and the level. Its place in a timer tick decides
which request a tick delays, and between threads that race. The numbers are fitted: with them digests of measured traces
are met.
"""


def machine_text(case: Case) -> str:
    """Return the machine of a case: four drives in any case, and the marker. The array is made by `script`; what the
    text says of one only lets there be several drives.
    """
    capacity = case.drive_mib * 2**20
    return f"""[array]
level = 'linear'
[[drive]]
count = {len(DRIVES)}
queue_depth = {case.queue_depth}
capacity = {capacity}
service = '100us'
transfer_rate = '200 MB/s'
flush = '100us'
[[drive]]
queue_depth = {case.queue_depth}
capacity = 1048576
service = '1us'
"""


def memory_mib(case: Case) -> int:
    """Return the memory of a case, and as much as programs of the lab take that the measured one did not have: how much
    is free decides when a writer is throttled.
    """
    number, unit = int(case.memory[:-1]), case.memory[-1]
    return number * {"M": 1, "G": 1024}[unit] + _others_mib()


@cache
def _others_mib() -> int:
    needed = programs.sizes(_NEEDED)
    others = {path: size for path, size in programs.sizes(programs.IN_THE_LAB).items() if path not in needed}
    return round(sum(others.values()) / 2**20)


def script(case: Case) -> str:
    """Return the commands of a case for the shell. Raises NotModelled."""
    printed = " ".join(f"$(cat /sys/block/{_device(case)}/{name} 2>/dev/null)" for name in _PRINTED)
    timed = f"load timed /dev/{MARKER} {_readings(case)} {_command(case)} >{_FIGURES} 2>{_ERRORS}"
    steps = [*_hiding(), *_queues(case), *_array(case), *_file_system(case), f": {printed}"]
    steps += [f"sleep {_pause_s(case)}", timed]
    return "\n".join([*steps, f"status=$?; cat {_FIGURES}*; cat {_ERRORS} >&2; exit $status", ""])


def _linked(command: str, *, is_found: bool = False) -> str:
    """A command whose program looks for its libraries where it did on the CPU on which the cases were measured.

    `hash` looks for the program as the shell would, unless the shell has found it before (`is_found`).
    """
    levels = _linker().added
    if not levels:
        return command
    linked = f"{_LINKER} --glibc-hwcaps-prepend {':'.join(levels)} "
    if command.startswith("/"):
        return linked + command
    linked += f"/usr/sbin/{command}"
    return linked if is_found else f"{{ hash {command.split()[0]}; {linked}; }}"


class Linker(Struct, frozen=True):
    """Settings with which the dynamic linker of any CPU searches the folders that it searched where the cases were
    measured.

    A folder that is not there costs a program 8 readings of the clock.
    """

    hidden: tuple[str, ...] = ()
    """Features of the CPU that it must not see: glibc 2.36 searches further folders on some CPUs of Intel
    (sysdeps/x86/cpu-features.c: dl_platform, dl_hwcap).
    """
    added: tuple[str, ...] = ()
    """Levels of CPUs that it leaves out of itself."""


def linker_of(said: str) -> Linker:
    """Return what the dynamic linker needs, by its `--help`; nothing if that is empty."""
    searched = set(re.findall(r"^ +(\S+) \((?:AT_PLATFORM; )?supported, searched\)$", said, re.M))
    if searched & _OF_SOME_CPUS:
        return Linker(_HIDDEN, _LEVELS)  # without the hidden features the levels are not its own
    return Linker(added=tuple(level for level in _LEVELS if level not in searched) if said else ())


@cache
def _linker() -> Linker:
    try:
        said = subprocess.run([_LINKER, "--help"], capture_output=True, text=True, check=False).stdout
    except OSError:
        said = ""
    return linker_of(said)


def _hiding() -> Iterator[str]:
    if hidden := _linker().hidden:
        yield "export GLIBC_TUNABLES=glibc.cpu.hwcaps=" + ",".join(f"-{feature}" for feature in hidden)


def _readings(case: Case) -> int:
    of_loads = _READINGS[max(len(case.loads), 1)]
    return of_loads.get(case.level, of_loads[""])


def _pause_s(case: Case) -> float:
    """Before the measurement. Long sleeps of md end with each eighth tick (kernel/time/timer.c: LVL_GRAN): with a tick
    more the rebuilds with a limit take as long as measured, which is fitted.
    """
    return 1.004 if case.operation in _REBUILDS_KIB else 1


def _device(case: Case) -> str:
    return "vda" if case.level == "single" else "md0"


def _queues(case: Case) -> Iterator[str]:
    for drive in DRIVES:
        queue = f"/sys/block/{drive}/queue"
        yield f"echo {int(case.rotational)} >{queue}/rotational"
        yield f"echo {case.scheduler} >{queue}/scheduler"
        yield f"echo {case.max_request_kib} >{queue}/max_sectors_kb"


def _array(case: Case) -> Iterator[str]:
    if case.level != "single":
        yield _linked(f"{_creation(case)} 2>&1") + " | grep -v started"
        if case.stripe_cache != STRIPES:
            # Here: md writes its superblocks after it.
            yield f"echo {case.stripe_cache} >{_MD}/stripe_cache_size"
        # The first open reads the partition table again and leaves page 0 in the cache.
        yield "sleep 1; " + _linked(f"{_DD} if=/dev/md0 of=/dev/null bs=4096 count=1") + " 2>/dev/null"
        gone = ["vdb"] if case.level == "raid1" else ["vdc", "vdd"]
        for drive in gone[: case.degraded]:
            yield _removal(drive)
    if case.operation in _REBUILDS_KIB:
        yield _removal(REBUILT)
        yield _linked(f"{_DD} if=/dev/zero of=/dev/{REBUILT} bs=1M count=1 conv=fdatasync") + " 2>/dev/null"
        limit_kib = _REBUILDS_KIB[case.operation]
        if limit_kib != _DEFAULT_LIMIT_KIB:
            yield f"echo {limit_kib} >/proc/sys/dev/raid/speed_limit_max"
    if case.read_ahead_kib not in ("", "default"):
        yield f"echo {case.read_ahead_kib} >/sys/block/{_device(case)}/queue/read_ahead_kb"


def _removal(drive: str) -> str:
    fail, remove = (
        _linked(f"mdadm -q /dev/md0 {how}", is_found=True) for how in (f"-f /dev/{drive}", "--remove faulty")
    )
    return f"{fail}; sleep 1; {remove}"


def _creation(case: Case) -> str:
    level, _, layout = case.level.partition("raid10")
    words = ["mdadm", "--create", "/dev/md0", "--metadata=1.2", "--run", "--homehost=none", "--name=t"]
    words += [f"--uuid={_ARRAY_ID}", f"--level={level or 'raid10'}", f"--raid-devices={case.members}"]
    words += [f"--layout={layout}"] if layout else []
    words += [f"--chunk={case.chunk_kib}"] if case.chunk_kib else []
    if case.level != "raid0":
        words += ["--assume-clean", f"--bitmap={'internal' if case.bitmap else 'none'}"]
    return shlex.join([*words, *(f"/dev/{drive}" for drive in DRIVES[: case.members])])


def _file_system(case: Case) -> Iterator[str]:
    device = f"/dev/{_device(case)}"
    match case.file_system:
        case "":
            return
        case "ext4":
            extended = f"hash_seed={_ID},lazy_itable_init=0,lazy_journal_init=0"
            yield _linked(f"mkfs.ext4 -q -U {_ID} -E {extended} {device}")
            # Else a thread reads bitmaps after a random time.
            yield f"mount -o no_prefetch_block_bitmaps {device} /mnt"
        case "xfs":
            yield _linked(f"mkfs.xfs -q -m uuid={_ID} {device}") + f"; mount {device} /mnt"
        case other:
            raise NotModelled(f"file system {other}")
    if case.operation == "bufread":
        yield _linked(f"{_DD} if=/dev/zero of={_FILE} bs=1M count={_FILE_MIB} conv=fdatasync") + " 2>/dev/null"
    yield f"sync; sleep {_IDLE_S}"


def _command(case: Case) -> str:
    """The measured command."""
    file = _FILE if case.file_system else f"/dev/{_device(case)}"
    amount = f"bs={case.size_kib}K count={case.count}"
    match case.operation:
        case "bufread":
            return _linked(f"{_DD} if={file} of=/dev/null {amount}")
        case "bufwrite" | "throttled-160m":
            return _linked(f"{_DD} if=/dev/zero of={file} {amount} conv=fdatasync")
        case "bufrandwrite-fsync":
            return f"load requests {file} fsync {case.size_kib * 1024} 1 {case.count} 7 {NOMINAL_BYTES}"
        case "append-fsync":
            return f"load append {_FILE} {APPENDED_BYTES} {case.count}"
        case "check":
            return _until(f"echo check >{_MD}/sync_action", _IDLE)
        case operation if operation in _REBUILDS_KIB:
            return _until(_linked(f"mdadm -q /dev/md0 -a /dev/{REBUILT}"), {"degraded": "0"})
    if not case.loads:
        raise NotModelled(f"operation {case.operation}")
    loads = [f"{_PRIORITIES[load.priority]}{_requests(file, load)}" for load in case.loads]
    if len(loads) == 1:
        return loads[0]
    # Loads race, so they are started as the measured ones were. None is the shell's last command: the shell would
    # become that load.
    after_first, after_second = " & ", "; wait"
    if case.one_after_another:
        after_first, after_second = "; ", "; true"
    elif case.operation not in MIXES:
        after_second = " & wait"
    first, second = (f"{load} >{_FIGURES}.{at}" for at, load in enumerate(loads))
    return f"{_SHELL} -c {shlex.quote(first + after_first + second + after_second)}"


def _until(command: str, state: Mapping[str, str]) -> str:
    """A command, and a wait until files of md have these values."""
    found = "".join(f"$(cat {_MD}/{file})" for file in state)
    return f"{_SHELL} -c " + shlex.quote(
        f'{command}; until [ "{found}" = {"".join(state.values())} ]; do sleep 0.01; done'
    )


def _requests(file: str, load: Load) -> str:
    mode = ("rand" if load.random else "") + ("write" if load.write else "read")
    return f"load requests {file} {mode} {load.size_bytes} {load.depth} {load.count} {load.seed} {NOMINAL_BYTES}"
