"""One load in the lab: boot, make the array, run spindle-agent, and bring out its result and the kernel's log."""

from __future__ import annotations

import resource
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spindle import _core

from . import cache, initramfs, kernel
from .assembly import FOLDER, Setup
from .errors import LabError, LabMissing
from .files import place
from .machine import ERRORS, TERMINAL, Boot, running
from .report import BootReport

AGENT = "spindle-agent"
_CHECKOUT = Path(__file__).resolve().parents[3]
"""The folder of the sources, if Spindle runs from them."""
_FOLDER = "lab/load"
"""Folder of the archive with the workload."""
_END = b"\0"
"""Between the result and the kernel's log."""
SETTLE_S = 2
"""Time before the load, in which the machine ends what its setup and the test file have left: md marks the array as
clean some time after the last write (`safe_mode_delay`); bfq takes the load's threads for a part of what started the
array (`bfq_burst_interval`), and write-back is throttled otherwise at first (`wb_recent_wait`)."""


@dataclass(frozen=True)
class Task:
    """A workload on a machine."""

    machine: _core.Machine
    setup: Setup
    name: str
    """Name of the workload."""
    workload: str
    """Its text."""
    overrides: Sequence[tuple[str, str]]
    engine: str = "io_uring"
    timestamps: str = "request"
    interval_ns: int = 1_000_000_000
    tolerate_errors: bool = False
    is_traced: bool = False
    has_log_times: bool = False
    """The kernel's log has the virtual time of each line."""


@dataclass(frozen=True)
class LabRun:
    """A load that has ended."""

    document: bytes
    """The result, as spindle-agent wrote it."""
    kernel_log: list[str]
    """Lines of the kernel since it booted."""
    boot: BootReport
    cpu_s: float
    """CPU time of the kernel and all that ran in it."""
    trace: str | None


def find_agent() -> Path:
    """spindle-agent: of this source tree, of the cache, or of PATH. Raises LabMissing."""
    for path in (_CHECKOUT / "build" / AGENT, cache.folder() / AGENT):
        if path.is_file():
            return path
    found = shutil.which(AGENT)
    if found is None:
        raise LabMissing(f"{AGENT} is missing; {cache.BUILD} builds it from Spindle's sources, `make agent` too")
    return Path(found)


def build_agent() -> Path:
    """Build spindle-agent if Spindle runs from its sources, else find it. Raises LabMissing or LabError."""
    builder = _CHECKOUT / "tools" / "build-agent"
    if not builder.is_file():
        return find_agent()
    said = subprocess.run([builder], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if said.returncode:
        lines = said.stderr.strip().splitlines() or ["no message"]
        raise LabError(f"{AGENT} cannot be built: {lines[-1]}")
    cache.folder().mkdir(parents=True, exist_ok=True)
    place(cache.folder() / AGENT, (_CHECKOUT / "build" / AGENT).read_bytes(), 0o755)
    return find_agent()


def script(task: Task) -> str:
    """The shell's commands in the lab. Standard output is the result and the kernel's log."""
    setup = task.setup
    words = [AGENT, "run", "--workload", f"/{_FOLDER}/{task.name}.toml", "--output", "/run/result"]
    words += ["--engine", task.engine, "--timestamps", task.timestamps, "--interval", f"{task.interval_ns}ns"]
    words += ["--cpu-per-request", f"{setup.cpu_per_request_ns}ns"]
    words += ["--settle", f"{_settle_s(setup)}s"]
    words += ["--tolerate-errors"] if task.tolerate_errors else []
    opening = ""
    if setup.filesystem is not None:
        words += ["--target", FOLDER, "--create", str(setup.filesystem.size)]
    else:
        device = f"/dev/{setup.device}"
        # Who opens an array first has the kernel look for partitions: on other systems that is udev.
        opening = f": <{device}\n"
        words += ["--target", device, "--erase", device, "--erase-content", "--erase-stacked"]
    for key, value in task.overrides:
        words += ["--set", f"{key}={value}"]
    times = "echo 1 >/sys/module/printk/parameters/time\n" if task.has_log_times else ""
    return f"""{times}dmesg -c >/dev/null
{setup.text()}{opening}{shlex.join(words)} >&2
status=$?
[ -s /run/result ] || exit $status
cat /run/result
printf '\\0'
dmesg
exit $status
"""


def _settle_s(setup: Setup) -> int:
    """A rebuild begins with the load."""
    return 0 if setup.array is not None and setup.array.rebuild is not None else SETTLE_S


def carry_out(task: Task, version: str | None = None) -> LabRun:
    """Run a load. Raises LabMissing or LabError."""
    archive = initramfs.for_script(
        script(task), {f"{_FOLDER}/{task.name}.toml": task.workload.encode()}, [str(find_agent())]
    )
    boot = Boot(task.machine, archive, task.setup.memory_mib, version=version, is_traced=task.is_traced)
    before = cpu_of_children_s()
    out: dict[int, bytearray] = {TERMINAL: bytearray(), ERRORS: bytearray()}
    with running(boot) as lab:
        for port, data in lab.output():
            out[port] += data
        report = lab.end()
        trace = lab.lab.trace() if task.is_traced else None
    document, end, log = bytes(out[TERMINAL]).partition(_END)
    if not end:
        said = out[ERRORS].decode(errors="replace").strip().splitlines() or ["no message"]
        raise LabError(f"in the lab: {said[-1]}")
    lines = log.decode(errors="replace").splitlines()
    return LabRun(document, lines, report, cpu_of_children_s() - before, trace)


def cpu_of_children_s() -> float:
    """CPU time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def identity(version: str | None) -> str:
    """The kernel that a load would run on, and its agent, for ids: equal ones give equal results. Raises LabMissing."""
    found = kernel.current(version=version)
    return f"{found.version} {found.hz} {found.digest} {_core.__version__}"
