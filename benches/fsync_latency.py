"""Compares the latency of a commit in Spindle and fio: small sequential writes, each made durable.

On ext4, XFS and btrfs on a loop device both tools write 4 KiB after 4 KiB to a file that is laid out anew beforehand,
once with an fdatasync after each write and once through O_DSYNC, one tool after the other in alternating order, until
the rounds show on which side of the bound they are. A bare loop of system calls runs beside them: where the tools
differ, it shows which of them adds something. Needs root, fio and the tools of the file systems.

    python benches/fsync_latency.py [--seconds 2] [--rounds 30] [--only ext4] [--backing /var/tmp] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spindle.host.busy import unmount
from spindle.stats.estimate import Interval, interval

DEVICE_BYTES = 1 << 30
FILE_BYTES = 64 << 20
BOUND = 0.05
LEAST_ROUNDS = 7
MAKERS = {"ext4": ["mkfs.ext4", "-q"], "xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}
WAYS = ("fdatasync", "O_DSYNC")


@dataclass(frozen=True)
class Figures:
    """Latency of what makes a write durable: the fdatasync, or the write itself."""

    mean_ns: float
    median_ns: float


def figures_of_spindle(folder: Path, way: str, seconds: int) -> Figures:
    every = "fdatasync_every = 1" if way == "fdatasync" else "dsync = true"
    workload = f"""
pattern = "sequential"
size = "4KiB"
write_fraction = 1.0
direct = false
{every}
"""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(workload)
        file.flush()
        # Exit status 1 says that a verdict is 'invalid'; the figures are there.
        record = answer_of(
            [sys.executable, "-m", "spindle.cli", "run", file.name, str(folder / "spindle"),
             "--create", str(FILE_BYTES), "--seconds", str(seconds), "--json", "--quiet"],
            allowed=(0, 1),
        )  # fmt: skip
    latency = record["figures"]["streams"][0]["fsync" if way == "fdatasync" else "write"]["latency"]
    return Figures(latency["mean_ns"], dict(latency["percentiles"])[50.0])


def figures_of_fio(folder: Path, way: str, seconds: int) -> Figures:
    job = answer_of(
        ["fio", "--name=load", f"--filename={folder / 'fio'}", f"--size={FILE_BYTES}", "--overwrite=1", "--unlink=1",
         "--rw=write", "--bs=4k", "--ioengine=psync", "--fdatasync=1" if way == "fdatasync" else "--sync=dsync",
         "--time_based", f"--runtime={seconds}", "--lat_percentiles=1", "--output-format=json"],
        allowed=(0,),
    )["jobs"][0]  # fmt: skip
    latency = (job["sync"] if way == "fdatasync" else job["write"])["lat_ns"]
    return Figures(latency["mean"], latency["percentile"]["50.000000"])


def figures_of_bare_loop(folder: Path, way: str, seconds: int) -> Figures:
    """The same system calls in a loop of Python's, which adds a few tenths of a microsecond to each."""
    path = folder / "bare"
    dsync = way == "O_DSYNC"
    found: list[int] = []
    block = memoryview(bytearray(os.urandom(4096)))
    blocks = FILE_BYTES // len(block)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        for number in range(blocks):
            os.pwrite(file, block, number * len(block))
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        if dsync:
            os.close(file)
            file = os.open(path, os.O_RDWR | os.O_DSYNC)
        pwrite, fdatasync, now = os.pwrite, os.fdatasync, time.perf_counter_ns
        number, end = 0, now() + seconds * 10**9
        while (start := now()) < end:
            pwrite(file, block, number % blocks * 4096)
            if not dsync:
                start = now()
                fdatasync(file)
            found.append(now() - start)
            number += 1
    finally:
        os.close(file)
        path.unlink()
    return Figures(statistics.fmean(found), statistics.median(found))


TOOLS = {"spindle": figures_of_spindle, "fio": figures_of_fio, "bare": figures_of_bare_loop}


def answer_of(command: list[str], allowed: tuple[int, ...]) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        sys.exit(f"fsync_latency: `{' '.join(command)}` failed ({done.returncode}): {done.stderr.strip()}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def mounted(kind: str, backing_folder: Path) -> Iterator[Path]:
    """A fresh file system of this kind on a loop device."""
    with contextlib.ExitStack() as undo:
        backing = undo.enter_context(tempfile.NamedTemporaryFile(dir=backing_folder, suffix=".img"))
        os.posix_fallocate(backing.fileno(), 0, DEVICE_BYTES)
        point = Path(undo.enter_context(tempfile.TemporaryDirectory()))
        device = tool("losetup", "--find", "--show", backing.name).strip()
        undo.callback(tool, "losetup", "--detach", device)
        tool(*MAKERS[kind], device)
        tool("mount", "-t", kind, device, str(point))
        undo.callback(unmount, str(point), device)
        yield point


def tool(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure(kind: str, way: str, folder: Path, seconds: int, rounds: int) -> dict[str, Any]:
    found: dict[str, list[Figures]] = {name: [] for name in TOOLS}
    for number in range(rounds):
        for name in TOOLS if number % 2 == 0 else reversed(TOOLS):
            found[name].append(TOOLS[name](folder, way, seconds))
        to_fio = ratio(found["spindle"], found["fio"])
        if number + 1 >= LEAST_ROUNDS and verdict(to_fio) != "undecided":
            break
    to_bare = ratio(found["spindle"], found["bare"])
    medians = {name: [each.median_ns / 1e3 for each in runs] for name, runs in found.items()}
    means = {name: [each.mean_ns / 1e3 for each in runs] for name, runs in found.items()}
    return {
        "file_system": kind,
        "way": way,
        "rounds": len(found["fio"]),
        **{f"{name}_median_us": statistics.median(values) for name, values in medians.items()},
        **{f"{name}_mean_us": statistics.median(values) for name, values in means.items()},
        **of_interval("median_ratio", to_fio),
        **of_interval("bare_ratio", to_bare),
        "spread_of_fio": spread(medians["fio"]),
        "verdict": verdict(to_fio),
    }


def of_interval(name: str, found: Interval) -> dict[str, float]:
    return {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}


def ratio(ours: list[Figures], theirs: list[Figures]) -> Interval:
    """Ratio of the medians of the rounds, at 95 %: the trimmed mean, which one disturbed run does not move."""
    logs = [math.log(one.median_ns / other.median_ns) for one, other in zip(ours, theirs, strict=True)]
    found = interval(logs, method="trimmed")
    return replace(found, **{name: math.exp(getattr(found, name)) for name in ("estimate", "low", "high")})


def spread(values: list[float]) -> float:
    """Largest less smallest, as a share of the median."""
    return (max(values) - min(values)) / statistics.median(values)


def verdict(found: Interval) -> str:
    """The verdict: on which side of the bound the whole interval is."""
    if found.low >= 1 - BOUND and found.high <= 1 + BOUND:
        return "agree"
    if found.high < 1 - BOUND or found.low > 1 + BOUND:
        return "DIFFER"
    return "undecided"


def row(result: dict[str, Any]) -> str:
    cells = [
        *(f"{result[f'{name}_median_us']:>8.1f}" for name in TOOLS),
        *(f"{result[name]:>7.1%} {between(result, name):>12}" for name in ("median_ratio", "bare_ratio")),
        *(f"{result[f'{name}_mean_us']:>8.1f}" for name in TOOLS),
        f"{result['spread_of_fio']:>7.1%} {result['rounds']:>6}  {result['verdict']}",
    ]
    return " ".join([f"{result['file_system']:<6} {result['way']:<10}", *cells])


def between(result: dict[str, Any], name: str) -> str:
    return f"{result[f'{name}_low'] * 100:.1f}-{result[f'{name}_high'] * 100:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=2, help="length of each run")
    parser.add_argument("--rounds", type=int, default=30, help="most runs of each tool and case")
    parser.add_argument("--only", default="", help="only this file system")
    parser.add_argument(
        "--backing", type=Path, default=Path("/dev/shm"),
        help="folder of the file behind the loop device; in memory, no disk's own scatter hides a difference",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("fsync_latency: needs root (loop devices)")
    for name in ["fio", *(maker[0] for maker in MAKERS.values())]:
        if shutil.which(name) is None:
            sys.exit(f"fsync_latency: needs {name} (apt install fio e2fsprogs xfsprogs btrfs-progs)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("fsync_latency: stopped"))
    if not options.json:
        print(f"4 KiB sequential writes, each made durable; medians and means of runs of {options.seconds} s, us; "
              "ratios of the rounds' medians, %, at 95 %")  # fmt: skip
        print(f"{'':<17} {'median':>8} {'median':>8} {'median':>8} {'spindle':>7} {'':>12} {'spindle':>7} {'':>12} "
              f"{'mean':>8} {'mean':>8} {'mean':>8} {'spread':>7}\n{'':<17} {'spindle':>8} {'fio':>8} {'bare':>8} "
              f"{'/ fio':>7} {'between':>12} {'/ bare':>7} {'between':>12} {'spindle':>8} {'fio':>8} {'bare':>8} "
              f"{'of fio':>7} {'rounds':>6}")  # fmt: skip
    results = []
    for kind in MAKERS:
        if options.only not in ("", kind):
            continue
        with mounted(kind, options.backing) as folder:
            for way in WAYS:
                results.append(measure(kind, way, folder, options.seconds, options.rounds))
                if not options.json:
                    print(row(results[-1]), flush=True)
    if options.json:
        print(json.dumps(results, indent=1))
    return 0 if all(result["verdict"] == "agree" for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
