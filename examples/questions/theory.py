"""Compares what each level and layout should deliver in theory with the simulator."""

from collections.abc import Sequence
from typing import Any

from experiment import ARGUMENTS, Experiment, array, drives, run

import spindle

MODEL = "HD321KJ"
N = 6
RATES = [point.bytes_per_second for point in spindle.drive(MODEL).transfer_rate]
INNER_COPIES = 2 / (1 + RATES[0] / RATES[len(RATES) // 2])
"""Rate of a drive that writes first copies at its start and second ones at its middle, over that of its start."""
LEVELS: dict[str, tuple[str, str, Sequence[float]]] = {
    # Level, layout; theory: streaming read and write, random read and write, as multiples of one drive.
    "raid0": ("raid0", "", (N, N, N, N)),
    "raid10 near=2": ("raid10", "n2", (N / 2, N / 2, N, N / 2)),
    "raid10 far=2": ("raid10", "f2", (N, N / 2 * INNER_COPIES, N, N / 2)),
    "raid10 offset=2": ("raid10", "o2", (N / 2, N / 2, N, N / 2)),
    "raid5": ("raid5", "", (N - 1, N - 1, N, N / 4)),
    "raid6": ("raid6", "", (N - 2, N - 2, N, N / 6)),
}
LOADS: dict[str, dict[str, Any]] = {
    "streaming read": {"pattern": "sequential", "size": "6MiB", "depth": 4, "write_fraction": 0},
    "streaming write": {"pattern": "sequential", "size": "60MiB", "depth": 2, "write_fraction": 1},
    "random read": {"pattern": "uniform", "size": "4KiB", "workers": 64, "write_fraction": 0},
    "random write": {"pattern": "uniform", "size": "4KiB", "workers": 64, "write_fraction": 1},
}
SECONDS = 20


def main() -> None:
    """Direct I/O on six drives of one model, as multiples of one of them."""
    given = ARGUMENTS.parse_args()
    columns = [name for load in LOADS for name in (f"{load}, theory", load)]
    found = Experiment(
        f"{N} x {MODEL}, write caches off, chunk 512 KiB: multiples of one drive",
        "level", "Multiple of one drive (x)", columns, drawn=list(LOADS), bars=True,
    )  # fmt: skip

    def rate(machine: str, load: str, depth_of: int) -> float:
        keys = dict(LOADS[load])
        if "workers" in keys:
            keys["workers"] = 64 * depth_of // N
        return run(machine, kernel=given.kernel, seconds=SECONDS, direct=True, **keys).bytes_per_s

    # One drive gets its share of the requests outstanding: its queue is as deep as that of a member.
    one = {load: rate(drives(MODEL, write_cache=False), load, 1) for load in LOADS}
    for name, (level, layout, theory) in LEVELS.items():
        machine = array(level, layout, "512KiB") + drives(MODEL, N, write_cache=False)
        measured = [rate(machine, load, N) / one[load] for load in LOADS]
        found.add(name, *(figure for pair in zip(theory, measured, strict=True) for figure in pair))
    found.finish(given.chart)


if __name__ == "__main__":
    main()
