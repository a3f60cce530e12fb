"""Compares Spindle and fio where the device is the limit.

A loop device is held by the kernel's block throttle (cgroup v1 `blkio.throttle.*`, or v2 `io.max`) to a known rate, and
both tools run the same load on it, one after the other in alternating order. Needs root and fio.

    python benches/agreement.py [--seconds 10] [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEVICE_BYTES = 1 << 30
# The throttle lets requests through in bursts, one for each slice of 100 ms from the first request on (THROTL_SLICE,
# block/blk-throttle.c). A window whose edges are on bursts gains or loses a whole one by chance: 1 % of ten seconds.
# Half a slice more of ramp puts both edges between two bursts, for both tools alike.
RAMP = "1050ms"
HUGE_PAGES = 4
V1 = Path("/sys/fs/cgroup/blkio")
V2 = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Case:
    """One load under one limit."""

    name: str
    write: bool
    sequential: bool
    size_bytes: int
    depth: int
    limit: float  # IOPS, or bytes/s when sequential

    @property
    def limit_key(self) -> str:
        return f"{'write' if self.write else 'read'}_{'bps' if self.sequential else 'iops'}_device"


CASES = [
    Case(f"random read 4 KiB, depth {depth}, {limit} IOPS", False, False, 4096, depth, limit)
    for limit in (500, 2000)
    for depth in (1, 8, 32)
] + [
    Case(f"sequential {name} 1 MiB, depth 1, 50 MB/s", name == "write", True, 1 << 20, 1, 50e6)
    for name in ("read", "write")
]


@dataclass(frozen=True)
class Figures:
    """Throughput in IOPS (random) or bytes/s (sequential); mean latency in ns, issue to completion."""

    throughput: float
    mean_latency_ns: float


def figures_of_spindle(device: Path, case: Case, seconds: int, limited: Limiter) -> Figures:
    direction = "write" if case.write else "read"
    workload = f"""
[[stream]]
name = "load"
pattern = "{"sequential" if case.sequential else "uniform"}"
size = {case.size_bytes}
workers = 1
depth = {case.depth}
write_fraction = {1.0 if case.write else 0.0}
direct = true
"""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(workload)
        file.flush()
        command = [
            sys.executable,
            "-m",
            "spindle.cli",
            "run",
            file.name,
            str(device),
            "--seconds",
            str(seconds),
            "--ramp",
            RAMP,
            "--json",
        ]
        if case.write:
            command += ["--erase", str(device), "--yes"]
        # Exit status 1 says that a verdict is 'invalid' or 'warn'-free figures could not be had; the figures are there.
        record = run_limited(command, device, case, limited, allowed=(0, 1))
    op = record["figures"]["streams"][0][direction]
    return Figures(op["bytes_per_s"] if case.sequential else op["iops"], op["latency"]["mean_ns"])


def figures_of_fio(device: Path, case: Case, seconds: int, limited: Limiter) -> Figures:
    direction = "write" if case.write else "read"
    command = [
        "fio", "--name=load", f"--filename={device}", "--direct=1", "--ioengine=libaio", f"--iodepth={case.depth}",
        f"--rw={'' if case.sequential else 'rand'}{direction}", f"--bs={case.size_bytes}", f"--runtime={seconds}",
        "--time_based", f"--ramp_time={RAMP}", "--randrepeat=0", "--norandommap", "--output-format=json",
    ]  # fmt: skip
    if case.size_bytes >= 1 << 20:
        # With buffers of scattered pages the kernel splits a 1 MiB request, and the throttle charges the pieces twice.
        command.append("--iomem=mmaphuge")
    job = run_limited(command, device, case, limited, allowed=(0,))["jobs"][0][direction]
    return Figures(job["bw_bytes"] if case.sequential else job["iops"], job["lat_ns"]["mean"])


def run_limited(command: list[str], device: Path, case: Case, limited: Limiter, allowed: tuple[int, ...]) -> Any:
    with limited(device, case) as join:
        done = subprocess.run(command, preexec_fn=join, capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        sys.exit(f"agreement: `{' '.join(command)}` failed ({done.returncode}): {done.stderr.strip()}")
    return json.loads(done.stdout)


Limiter = Callable[[Path, Case], contextlib.AbstractContextManager[Callable[[], None]]]


@contextlib.contextmanager
def limited_v1(device: Path, case: Case) -> Iterator[Callable[[], None]]:
    """A fresh group each time, so that no credit is carried over from the run before."""
    group = V1 / f"spindle-agreement-{os.getpid()}"
    group.mkdir()
    try:
        (group / f"blkio.throttle.{case.limit_key}").write_text(f"{dev_number(device)} {int(case.limit)}")
        yield lambda: join(group)
    finally:
        remove(group)


@contextlib.contextmanager
def limited_v2(device: Path, case: Case) -> Iterator[Callable[[], None]]:
    (V2 / "cgroup.subtree_control").write_text("+io")
    group = V2 / f"spindle-agreement-{os.getpid()}"
    group.mkdir()
    try:
        key = f"{'w' if case.write else 'r'}{'bps' if case.sequential else 'iops'}"
        (group / "io.max").write_text(f"{dev_number(device)} {key}={int(case.limit)}")
        yield lambda: join(group)
    finally:
        remove(group)


def remove(group: Path) -> None:
    """A group is busy until the last of its tasks is gone."""
    for _ in range(100):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.05)
    return group.rmdir()


def join(group: Path) -> None:
    """To be called in the child, between fork and exec."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def dev_number(device: Path) -> str:
    number = device.stat().st_rdev
    return f"{os.major(number)}:{os.minor(number)}"


@contextlib.contextmanager
def loop_device() -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR", "/var/tmp"), suffix=".img") as backing:
        os.posix_fallocate(backing.fileno(), 0, DEVICE_BYTES)
        name = subprocess.run(["losetup", "--find", "--show", "--direct-io=off", backing.name],
                              check=True, capture_output=True, text=True).stdout.strip()  # fmt: skip
        try:
            yield Path(name)
        finally:
            subprocess.run(["losetup", "--detach", name], check=True)


@contextlib.contextmanager
def huge_pages() -> Iterator[None]:
    """A few reserved huge pages for fio's buffers, put back afterwards."""
    knob = Path("/proc/sys/vm/nr_hugepages")
    before = knob.read_text()
    knob.write_text(str(int(before) + HUGE_PAGES))
    try:
        yield
    finally:
        knob.write_text(before)


def measure(case: Case, device: Path, seconds: int, rounds: int, limited: Limiter) -> dict[str, Any]:
    spindle, fio = [], []
    for number in range(rounds):
        tools = [(figures_of_spindle, spindle), (figures_of_fio, fio)]
        for figures_of, found in tools if number % 2 == 0 else reversed(tools):
            found.append(figures_of(device, case, seconds, limited))
    throughput = [statistics.median(f.throughput for f in found) for found in (spindle, fio)]
    latency = [statistics.median(f.mean_latency_ns for f in found) for found in (spindle, fio)]
    return {
        "case": case.name,
        "limit": case.limit,
        "spindle": throughput[0],
        "fio": throughput[1],
        "throughput_ratio": throughput[0] / throughput[1],
        "spindle_of_limit": throughput[0] / case.limit,
        "fio_of_limit": throughput[1] / case.limit,
        "spindle_mean_ms": latency[0] / 1e6,
        "fio_mean_ms": latency[1] / 1e6,
        "latency_ratio": latency[0] / latency[1],
        "unit": "MB/s" if case.sequential else "IOPS",
    }


def row(result: dict[str, Any]) -> str:
    scale = 1e6 if result["unit"] == "MB/s" else 1
    good = abs(result["throughput_ratio"] - 1) <= 0.01 and abs(result["latency_ratio"] - 1) <= 0.03
    return (
        f"{result['case']:<42} {result['spindle'] / scale:>8.2f} {result['fio'] / scale:>8.2f} {result['unit']:<5}"
        f"{result['throughput_ratio']:>8.2%} {result['spindle_of_limit']:>8.2%} {result['fio_of_limit']:>8.2%}"
        f" {result['spindle_mean_ms']:>9.3f} {result['fio_mean_ms']:>9.3f} {result['latency_ratio']:>8.2%}"
        f"  {'agree' if good else 'DIFFER'}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="measured time of each run (after a second of ramp)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each tool and case; medians are compared")
    parser.add_argument("--only", default="", help="only the cases whose name contains this")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("agreement: needs root (loop device and block throttle)")
    if shutil.which("fio") is None:
        sys.exit("agreement: needs fio (apt install fio)")
    if V1.is_dir():
        limited: Limiter = limited_v1
    elif (V2 / "cgroup.controllers").exists() and "io" in (V2 / "cgroup.controllers").read_text().split():
        limited = limited_v2
    else:
        sys.exit("agreement: this kernel offers no block throttle in its cgroups")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("agreement: stopped"))
    cases = [case for case in CASES if options.only in case.name]
    if not options.json:
        print(f"medians of {options.rounds} alternating runs of {options.seconds} s; ratios are Spindle / fio")
        print(f"{'case':<42} {'spindle':>8} {'fio':>8} {'':<5}{'ratio':>8} {'of limit':>8} {'of limit':>8}"
              f" {'mean ms':>9} {'mean ms':>9} {'ratio':>8}")  # fmt: skip
    results = []
    with loop_device() as device, huge_pages():
        for case in cases:
            results.append(measure(case, device, options.seconds, options.rounds, limited))
            if not options.json:
                print(row(results[-1]), flush=True)
    if options.json:
        print(json.dumps(results, indent=1))
    differ = [r for r in results if abs(r["throughput_ratio"] - 1) > 0.01 or abs(r["latency_ratio"] - 1) > 0.03]
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
