"""Compares whole, degraded and rebuilding arrays."""

from typing import Any

from experiment import ARGUMENTS, Experiment, array, drives, run

STATES: dict[str, dict[str, Any]] = {"whole": {}, "one missing": {"missing": [0]}, "rebuilding": {"rebuild": 0}}
LEVELS = {"raid10 near=2": ("raid10", "n2"), "raid5": ("raid5", ""), "raid6": ("raid6", "")}
LOADS: dict[str, dict[str, Any]] = {
    "random reads (IOPS)": {"pattern": "uniform", "size": "4KiB", "workers": 32, "write_fraction": 0},
    "random writes (IOPS)": {"pattern": "uniform", "size": "4KiB", "workers": 32, "write_fraction": 1},
    "streaming read (MB/s)": {"pattern": "sequential", "size": "1MiB", "workers": 1, "write_fraction": 0},
}


def main() -> None:
    """Six drives, whole, with one missing, and with one being rebuilt."""
    given = ARGUMENTS.parse_args()
    found = Experiment(
        "6 x WD3200AAKS, chunk 64 KiB, direct I/O", "array", "IOPS (1/s)", list(LOADS),
        shown="{:.0f}".format, drawn=list(LOADS)[:2], bars=True,
    )  # fmt: skip
    for name, (level, layout) in LEVELS.items():
        for state, keys in STATES.items():
            machine = array(level, layout, "64KiB", **keys) + drives("WD3200AAKS", 6)
            results = {
                load: run(machine, kernel=given.kernel, seconds=30, direct=True, **options)
                for load, options in LOADS.items()
            }
            figures = [of.bytes_per_s / 1e6 if "MB/s" in load else of.iops for load, of in results.items()]
            found.add(f"{name}, {state}", *figures)
    found.finish(given.chart)


if __name__ == "__main__":
    main()
