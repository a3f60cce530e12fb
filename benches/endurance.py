"""Does a long run at full speed need ever more memory?

    make bench-endurance [ARGS='--seconds 600 --target FILE']

Runs buffered random reads and writes of a test file in the page cache (or reads of TARGET, any file or device) as a
process of its own, as a person does: live line on a terminal, default intervals, the look at the machine each second.
Once a second its resident memory is read from /proc/PID/smaps_rollup, which is exact where /proc/PID/status may lag
behind. After the first minute it must stay within 1 MiB.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

GOAL_KIB = 1024
"""Largest minus smallest, after the first minute."""
SETTLED_S = 60.0
MIN_S = 90.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="length of the run, at least 90")
    parser.add_argument("--target", help="a file or device to read; default: a test file of 64 MiB that is removed")
    parser.add_argument("--csv", type=Path, help="write the samples here")
    asked = parser.parse_args()
    if asked.seconds < MIN_S:
        parser.error(f"--seconds: at least {MIN_S:g}, of which the first minute is left out")
    with tempfile.TemporaryDirectory(prefix="spindle-bench-") as folder:
        samples = watched(command(asked, Path(folder)), asked.seconds)
    if asked.csv is not None:
        asked.csv.write_text("seconds,rss_kib\n" + "".join(f"{at:.1f},{rss}\n" for at, rss in samples))
    return judge(samples, asked.seconds)


def command(asked: argparse.Namespace, folder: Path) -> list[str]:
    """The run."""
    # Without fsync the kernel writes the file out now and then, not with each request.
    target = [str(folder / "t.bin"), "--create", "64MiB", "--fsync-fraction", "0"]
    if asked.target:
        target = [asked.target, "--write-fraction", "0", "--fsync-fraction", "0"]
    return [
        *(sys.executable, "-m", "spindle.cli", "run", "randomio", *target, "--buffered"),
        *("--workers", "2", "--depth", "16", "--seconds", f"{asked.seconds:g}"),
        *("--output", str(folder / "record.json")),
    ]


def watched(asked: list[str], seconds: float) -> list[tuple[float, int]]:
    """(seconds since the start, resident KiB) of the process, once a second, as long as its load is surely on."""
    screen, terminal = pty.openpty()
    samples: list[tuple[float, int]] = []
    with subprocess.Popen(asked, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = bytearray()
        reader = threading.Thread(target=drain, args=(screen, shown), daemon=True)
        reader.start()
        start = time.monotonic()
        try:
            while (at := time.monotonic() - start) < seconds and process.poll() is None:
                if (rss := resident_kib(process.pid)) is not None:
                    samples.append((at, rss))
                time.sleep(1.0)
            status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
        reader.join(timeout=10)
    last = shown.decode(errors="replace").strip()
    print(last[-2000:])
    if status == 2 or samples[-1][0] < seconds - 5:
        raise SystemExit(f"the run did not last: status {status}")
    return samples


def drain(screen: int, shown: bytearray) -> None:
    """Takes what a terminal would show; keeps the end of it."""
    try:
        while piece := os.read(screen, 65536):
            shown += piece
            del shown[:-8192]
    except OSError:
        pass  # the other end is closed


def resident_kib(pid: int) -> int | None:
    """Resident memory; None: it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^Rss:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) if found else None


def judge(samples: list[tuple[float, int]], seconds: float) -> int:
    """Prints what was seen."""
    late = [(at, rss) for at, rss in samples if at >= SETTLED_S]
    values = [rss for _, rss in late]
    slope = statistics.linear_regression([at for at, _ in late], values).slope
    spread = max(values) - min(values)
    print(f"run of {seconds:g} s, {len(samples)} samples")
    for at, rss in samples[:: max(1, len(samples) // 20)]:
        print(f"  {at:7.1f} s  {rss:7d} KiB")
    print(f"after the first minute: {min(values)} to {max(values)} KiB, slope {slope * 60:.2f} KiB/min")
    print(f"range {spread} KiB; goal: at most {GOAL_KIB} KiB: {'met' if spread <= GOAL_KIB else 'MISSED'}")
    return 0 if spread <= GOAL_KIB else 1


if __name__ == "__main__":
    sys.exit(main())
