"""Exactness of the lab: rates of drives of fixed latency, and service times against the drive crate alone.

    python benches/lab_exact.py [--requests N]

Rates: random reads of 4 KiB on a drive with a fixed service time, one request at a time and 32. Service times: the
requests of a trace, given to the drive's model without kernel, rings and sockets, must be done at the same nanosecond.
The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import spindle
from spindle import _core
from spindle.lab import session
from spindle.result.record import RunRecord

FIXED = "[[drive]]\nservice = '{latency}'\nqueue_depth = 64\ncapacity = '1GiB'\n"
LATENCIES = {"100us": 1e-4, "1ms": 1e-3, "4ms": 4e-3, "10ms": 1e-2}
GOALS = {1: 0.001, 32: 0.005}
"""Requests at a time -> largest difference from 1 / latency."""

FOUR_DEEP = """[[drive]]
service = '100us'
transfer_rate = '200 MB/s'
flush = '50us'
queue_depth = 4
capacity = '4GiB'
"""
DRIVES = {
    "mechanical, queue 32": "[[drive]]\nmodel = 'HDS725050KLA360'",
    "mechanical, queue 1": "[[drive]]\nmodel = 'WD10EACS'\nqueue_depth = 1",
    "mechanical, no write cache": "[[drive]]\nmodel = 'ST3600057SS'\nwrite_cache = false",
    "flash, SATA": "[[drive]]\nmodel = '860-EVO-1TB'",
    "flash, NVMe": "[[drive]]\nmodel = '970-PRO-1TB'",
    "fixed, queue 4": FOUR_DEEP,
    "drawn": "[[drive]]\nservice = '100us'\nspread = 'exponential'\nqueue_depth = 32\ncapacity = '4GiB'",
}
LOAD = """
mkfs.ext4 -q -F -E nodiscard /dev/vda 3G
mount /dev/vda /mnt
for file in 1 2 3 4; do dd if=/dev/zero of=/mnt/$file bs=64k count={count} conv=fsync 2>/dev/null & done
wait
sync; echo 3 >/proc/sys/vm/drop_caches
for file in 1 2 3 4; do dd if=/mnt/$file of=/dev/null bs=4k count={count} iflag=direct 2>/dev/null & done
wait
rm /mnt/1; fstrim /mnt; umount /mnt
dd if=/dev/vda of=/dev/null bs=4k skip=5000 count={count} iflag=direct &
dd if=/dev/zero of=/dev/vda bs=4k seek=70000 count={count} oflag=direct
wait
"""


def rate(latency: str, depth: int, requests: int, folder: Path) -> float:
    """Requests per second in the lab."""
    machine = folder / "fixed.toml"
    machine.write_text(FIXED.format(latency=latency))
    seconds = round(requests * LATENCIES[latency], 5)
    run = spindle.run(
        "randomio",
        machine,
        kernel=True,
        seconds=seconds,
        ramp=f"{seconds / 10:.6f}s",
        workers=depth,
        write_fraction=0,
        size="4KiB",
    )
    assert isinstance(run.record, RunRecord)
    read = run.record.figures.streams[0].read
    assert read is not None
    return read.iops


def differences(drive: str, requests: int) -> tuple[int, int, int]:
    """Requests of a trace, how many were done at another time than the drive alone says, and the largest difference in
    nanoseconds."""
    machine = _core.Machine.parse(drive, "drive")
    command = ["sh", "-c", LOAD.format(count=requests // 8)]
    outcome = session.execute(machine, command, lambda *_: None, is_traced=True)
    assert outcome.trace is not None
    lines = [line for line in csv.DictReader(io.StringIO(outcome.trace)) if line["finish_ns"]]
    asked = [(int(line["arrive_ns"]), line["operation"], int(line["sector"]), int(line["sectors"])) for line in lines]
    alone = machine.finish_times(0, asked)
    apart = [abs(int(line["finish_ns"]) - other) for line, other in zip(lines, alone, strict=True)]
    return len(lines), sum(gap > 0 for gap in apart), max(apart)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--requests", type=int, default=4800, help="about so many of each drive [4800], four times of each rate"
    )
    count = parser.parse_args().requests
    missed = 0
    print("latency  requests at a time  1/latency        lab  difference   goal")
    with TemporaryDirectory() as folder:
        for latency, seconds in LATENCIES.items():
            for depth, goal in GOALS.items():
                lab = rate(latency, depth, 4 * count, Path(folder))
                apart = lab * seconds - 1
                missed += abs(apart) > goal
                print(
                    f"{latency:7}  {depth:18}  {1 / seconds:9.2f}  {lab:9.3f}  {apart:10.4%}  {goal:5.1%}", flush=True
                )
    print("\ndrive                       requests  at another time  largest difference")
    for name, drive in DRIVES.items():
        requests, others, largest = differences(drive, count)
        missed += others > 0
        print(f"{name:26}  {requests:8}  {others:15}  {largest:15} ns", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
