"""Equal runs of the lab: each case of arrays, file systems and loads runs several times, two labs at once; traces and
output must be equal.

    python benches/lab_equal.py [--runs N] [--case TEXT] [--busy] [--kernel VERSION]

A line for each case: runs, different results, digest. The exit status is 1 if any differ. `--busy`: every second run
beside as many busy processes as there are CPUs.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from spindle import _core
from spindle.lab import session

MACHINE = """
[[drive]]
count = {drives}
service = '100us'
transfer_rate = '200 MB/s'
flush = '100us'
queue_depth = 32
capacity = '512MiB'
[array]
level = 'raid0'
chunk = '64KiB'
"""
LEVELS = {
    "raid0": "--level=0 --chunk=64",
    "raid1": "--level=1 --assume-clean --bitmap=none",
    "raid10-n2": "--level=10 --layout=n2 --chunk=64 --assume-clean --bitmap=none",
    "raid10-f2": "--level=10 --layout=f2 --chunk=64 --assume-clean --bitmap=none",
    "raid10-o2": "--level=10 --layout=o2 --chunk=64 --assume-clean --bitmap=none",
    "raid4": "--level=4 --chunk=64 --assume-clean --bitmap=none",
    "raid5": "--level=5 --chunk=64 --assume-clean --bitmap=none",
    "raid6": "--level=6 --chunk=64 --assume-clean --bitmap=none",
}
LOADS = {
    "direct-write": "dd if=/dev/zero of=$F bs=256k count=32 oflag=direct",
    "direct-read": "dd if=/dev/zero of=$F bs=1M count=8; sync; dd if=$F of=/dev/null bs=64k count=128 iflag=direct",
    "buffered-write": "dd if=/dev/zero of=$F bs=1M count=16 conv=fsync",
    "buffered-read": "dd if=/dev/zero of=$F bs=1M count=8; sync; echo 3 >/proc/sys/vm/drop_caches; md5sum $F",
}
FILES = {
    "raw": "F=/dev/md0",
    "ext4": "mkfs.ext4 -q /dev/md0; mount /dev/md0 /mnt; F=/mnt/f",
    "xfs": "mkfs.xfs -q -f /dev/md0; mount /dev/md0 /mnt; F=/mnt/f",
}
DRIVES = (3, 4, 6, 14)


def cases() -> Iterator[tuple[str, int, str]]:
    """Name, drives, script."""
    every = itertools.product(LEVELS.items(), LOADS.items(), FILES.items())
    for number, ((level, options), (load, do), (system, make)) in enumerate(every):
        drives = max(DRIVES[number % len(DRIVES)], 4 if level == "raid6" else 3)
        members = f"$(ls /dev/vd* | head -{drives})"
        create = f"mdadm --create /dev/md0 --run {options} --raid-devices={drives} {members} 2>/dev/null"
        yield (
            f"{level} {drives} {system} {load}",
            drives,
            f"{create}; {make}; {do}; sync; umount /mnt 2>/dev/null; true",
        )


def digest(drives: int, script: str, version: str | None) -> str:
    """Digest of trace and output of one run."""
    machine = _core.Machine.parse(MACHINE.format(drives=drives), "equal")
    said = bytearray()
    outcome = session.execute(
        machine,
        ["sh", "-c", script],
        lambda is_error, data: said.extend(b"" if is_error else data),
        is_traced=True,
        time_limit_s=600,
        version=version,
    )
    assert outcome.status == 0
    assert outcome.trace is not None
    return hashlib.sha1(outcome.trace.encode() + said).hexdigest()


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep as many processes busy."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=10, help="of each case [10]")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--busy", action="store_true", help="half of the runs on CPUs that are busy with other work")
    parser.add_argument("--kernel", help="version of the kernel")
    options = parser.parse_args()
    busy_runs = options.runs // 2 if options.busy else 0
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        for name, drives, script in cases():
            if options.case not in name:
                continue
            found = []
            for runs, others in ((options.runs - busy_runs, 0), (busy_runs, os.cpu_count() or 1)):
                with busy(others if runs else 0):
                    found += pool.map(digest, *([one] * runs for one in (drives, script, options.kernel)))
            failed += len(set(found)) > 1
            print(f"{name:40} {len(found)} runs, {len(set(found)) - 1} different, {found[0][:16]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
