"""Compares `spindle run bonnie` with bonnie++.

A loop device with a file system on it is held by the kernel's block throttle to the rates of a slow disk, and both
tools run on it with little memory for the page cache, one after the other in alternating order. Medians of sequential
write, rewrite, sequential read and seeks are compared. Needs root, bonnie++ and control groups of version 1 (blkio and
memory).

    python benches/bonnie.py [--rounds 3] [--size 1280] [--file-system ext4] [--json]
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spindle.host.busy import unmount

MIB = 1 << 20
BYTES_PER_S = 200_000_000
REQUESTS_PER_S = 2000
CACHE_BYTES = 40 * MIB
"""Memory left to the page cache; Spindle's own memory comes on top."""
DIRTY_BYTES = 16 * MIB
"""Limit of dirty pages within `CACHE_BYTES`; with more, a writer at its memory limit is killed."""
OWN_BYTES = {"spindle": 96 * MIB, "bonnie++": 8 * MIB}
BLKIO = Path("/sys/fs/cgroup/blkio")
MEMORY = Path("/sys/fs/cgroup/memory")
FILE_SYSTEMS = ("ext4", "xfs", "btrfs")
PHASES = ("block-write", "rewrite", "block-read", "seeks")
TOLERANCE = 0.10


@contextlib.contextmanager
def throttled_device(size: int) -> Iterator[Path]:
    """Written back by the kernel's own threads, so the limit is that of the root group."""
    with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR", "/var/tmp"), suffix=".img") as backing:
        os.posix_fallocate(backing.fileno(), 0, size)
        command = ["losetup", "--find", "--show", "--direct-io=on", backing.name]
        device = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
        number = device.stat().st_rdev
        name = f"{os.major(number)}:{os.minor(number)}"
        bdi = Path(f"/sys/class/bdi/{name}")
        limits = {
            f"blkio.throttle.{direction}_{kind}_device": limit
            for direction in ("read", "write")
            for kind, limit in (("bps", BYTES_PER_S), ("iops", REQUESTS_PER_S))
        }
        try:
            for key, limit in limits.items():
                (BLKIO / key).write_text(f"{name} {limit}")
            limit_dirty(bdi)
            yield device
        finally:
            for key in limits:
                (BLKIO / key).write_text(f"{name} 0")
            (bdi / "strict_limit").write_text("0")
            (bdi / "max_ratio").write_text("100")
            subprocess.run(["losetup", "--detach", device], check=True)


def limit_dirty(bdi: Path) -> None:
    (bdi / "strict_limit").write_text("1")
    (bdi / "max_bytes").write_text(str(DIRTY_BYTES))


@contextlib.contextmanager
def mounted(device: Path, file_system: str) -> Iterator[Path]:
    force = "-F" if file_system == "ext4" else "-f"
    subprocess.run([f"mkfs.{file_system}", "-q", force, device], check=True, capture_output=True)
    with tempfile.TemporaryDirectory() as point:
        subprocess.run(["mount", device, point], check=True)
        try:
            for own in Path("/sys/fs/btrfs").glob(f"*/devices/{device.name}"):
                limit_dirty(own.parent.parent / "bdi")  # goes with the mount
            yield Path(point)
        finally:
            unmount(point, str(device))


@contextlib.contextmanager
def little_memory(tool: str) -> Iterator[Path]:
    group = MEMORY / f"spindle-bonnie-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(CACHE_BYTES + OWN_BYTES[tool]))
        yield group
    finally:
        for _ in range(200):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.05)


def run(tool: str, command: list[str], folder: Path) -> str:
    with little_memory(tool) as group:
        done = subprocess.run(
            command,
            preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    # Exit status 1 of Spindle says that a verdict is `invalid`; the figures are there.
    if done.returncode not in ((0, 1) if tool == "spindle" else (0,)):
        sys.exit(f"bonnie: `{' '.join(command)}` failed ({done.returncode}): {done.stderr.strip()[-400:]}")
    return done.stdout


def of_spindle(folder: Path, mib: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "spindle.cli",
        "run",
        "bonnie",
        ".",
        "--filesize",
        f"{mib}MiB",
        "--json",
        "--quiet",
    ]
    record = json.loads(run("spindle", command, folder))
    for verdict in [*record["verdicts"], *(verdict for each in record["runs"] for verdict in each["verdicts"])]:
        if verdict["check"] == "interrupted":
            sys.exit(f"bonnie: {verdict['evidence']}")
    found = {}
    for each in record["runs"]:
        name, stream = each["workload"]["name"], each["figures"]["streams"][0]
        if name not in PHASES:
            continue
        op = stream["read"] or stream["write"]
        seconds = stream["measured_ns"] / 1e9
        found[name] = op["requests"] / seconds if name == "seeks" else op["bytes"] / 1024 / seconds
    return found


def of_bonnie(folder: Path, mib: int) -> dict[str, float]:
    command = ["bonnie++", "-d", ".", "-s", f"{mib}", "-n", "0", "-r", "0", "-f", "-q", "-u", "root"]
    fields = run("bonnie++", command, folder).strip().splitlines()[-1].split(",")
    # Format 1.98 of bon_csv2txt: after seeks and seekers, pairs of rate and CPU share of each phase.
    rates = [float(fields[9 + 2 * at]) for at in (1, 2, 4, 5)]
    return dict(zip(PHASES, rates, strict=True))


def measure(file_system: str, mib: int, rounds: int) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, float]]] = {"spindle": [], "bonnie++": []}
    tools = [("spindle", of_spindle), ("bonnie++", of_bonnie)]
    with throttled_device((mib + 512) * MIB) as device:
        for number in range(rounds):
            for tool, figures in tools if number % 2 == 0 else reversed(tools):
                with mounted(device, file_system) as folder:
                    found[tool].append(figures(folder, mib))
    results: list[dict[str, Any]] = []
    for phase in PHASES:
        ours, theirs = (statistics.median(each[phase] for each in found[tool]) for tool in ("spindle", "bonnie++"))
        results.append(
            {
                "file_system": file_system,
                "phase": phase,
                "spindle": ours,
                "bonnie++": theirs,
                "ratio": ours / theirs,
                "unit": "/s" if phase == "seeks" else "KiB/s",
                "all": {tool: [each[phase] for each in runs] for tool, runs in found.items()},
            }
        )
    return results


def row(result: dict[str, Any]) -> str:
    good = abs(result["ratio"] - 1) <= TOLERANCE
    return (
        f"{result['file_system']:<7}{result['phase']:<12}{result['spindle']:>10.0f}{result['bonnie++']:>10.0f}  "
        f"{result['unit']:<6}{result['ratio']:>8.1%}  {'agree' if good else 'DIFFER'}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each tool; medians are compared")
    parser.add_argument("--size", type=int, default=1280, help="size of the file, MiB")
    parser.add_argument("--file-system", choices=FILE_SYSTEMS, action="append", help="only this one; may be repeated")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bonnie: needs root (loop device, block throttle, mount)")
    if shutil.which("bonnie++") is None:
        sys.exit("bonnie: needs bonnie++ (apt install bonnie++)")
    if not (BLKIO / "blkio.throttle.read_bps_device").exists() or not (MEMORY / "memory.limit_in_bytes").exists():
        sys.exit("bonnie: needs control groups of version 1 with blkio and memory")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bonnie: stopped"))
    if not options.json:
        print(f"medians of {options.rounds} alternating runs on a file of {options.size} MiB; device: "
              f"{BYTES_PER_S / 1e6:.0f} MB/s, {REQUESTS_PER_S} IOPS")  # fmt: skip
        print(f"{'':<7}{'phase':<12}{'spindle':>10}{'bonnie++':>10}  {'':<6}{'ratio':>8}")
    results = []
    for file_system in options.file_system or FILE_SYSTEMS:
        for result in measure(file_system, options.size, options.rounds):
            results.append(result)
            if not options.json:
                print(row(result), flush=True)
    if options.json:
        print(json.dumps(results, indent=1))
    return 0 if all(abs(each["ratio"] - 1) <= TOLERANCE for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
