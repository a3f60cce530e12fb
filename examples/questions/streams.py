"""Which read-ahead suits many parallel streams, and how much memory does it take?"""

from typing import Any

from experiment import ARGUMENTS, Experiment, array, drives, run

MACHINE = array("raid10", "n2", "512KiB") + drives("WD3200AAKS", 10)
STREAMS = (1, 4, 16, 64)
SIZES_KIB = (128, 512, 1024, 2048, 4096, 8192)


def main() -> None:
    """Buffered readers of files of their own, by read-ahead."""
    given = ARGUMENTS.parse_args()
    columns = [f"{count} stream{'s' if count > 1 else ''}" for count in STREAMS]
    found = Experiment(
        "RAID10 near=2 of 10 x WD3200AAKS: buffered readers of a file each, all together",
        "read-ahead", "Throughput (MB/s)", [*columns, f"memory of {STREAMS[-1]} (MiB)"],
        shown="{:.0f}".format, drawn=columns,
    )  # fmt: skip
    for size in SIZES_KIB:
        machine = f'[host]\nmemory = "8GiB"\n[queue]\nread_ahead = "{size}KiB"\n{MACHINE}'
        rates = [_rate(machine, count, given.kernel) for count in STREAMS]
        # Two windows of each reader are in memory: the one that it reads, and the one that is being read.
        found.add(f"{size} KiB", *rates, 2 * STREAMS[-1] * size / 1024)
    found.finish(given.chart)


def _rate(machine: str, streams: int, kernel: bool) -> float:
    """MB/s of all readers: each has its part of the array, one after another over its length."""
    keys: dict[str, Any] = {
        "workers": streams,
        "size": "64KiB",
        "direct": False,
        "pattern": "sequential",
        "write_fraction": 0,
    }
    return run(machine, "sdd-read", kernel=kernel, seconds=20, **keys).bytes_per_s / 1e6


if __name__ == "__main__":
    main()
