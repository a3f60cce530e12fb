"""More requests than the queues take, simulated and under the lab's kernel: rows for docs/explanation/simulator.md.

    python benches/deep_queues.py

Needs the lab (`make lab`) and spindle-agent (`make agent`); about a minute.
"""

from __future__ import annotations

from spindle.validation.grid.compare import compare
from spindle.validation.grid.grids import DIRECT
from spindle.validation.grid.outcomes import measured
from spindle.validation.grid.points import Point

LOADS = (
    ("single", "plain", "none", "randread", 4, 128, False),
    ("raid0", "plain", "none", "randread", 4, 256, False),
    ("raid0", "plain", "none", "randread", 256, 64, False),
    ("raid0", "disk", "none", "read", 1024, 32, False),
    ("raid0", "plain", "none", "randread", 1024, 32, True),
    ("raid1", "plain", "none", "randread", 4, 128, False),
    ("raid10n2", "plain", "none", "randread", 4, 256, False),
    ("raid10n2", "plain", "none", "mix", 16, 256, False),
    ("raid10n2", "plain", "none", "read", 1024, 32, False),
    ("raid10n2", "plain", "mq-deadline", "randread", 64, 256, False),
    ("raid10f2", "disk", "none", "randread", 256, 64, False),
    ("raid10o2", "disk", "kyber", "randread", 4, 256, False),
    ("raid5", "flash", "none", "randread", 1024, 32, True),
    ("raid5", "disk", "none", "read", 1024, 32, False),
    ("raid6", "disk", "none", "randread", 256, 32, True),
    ("raid6", "plain", "mq-deadline", "randread", 1024, 32, False),
    ("raid6", "plain", "none", "mix", 1024, 32, False),
    ("raid6", "plain", "kyber", "mix", 1024, 32, True),
)


def main() -> None:
    """Print a row for each load."""
    print("| load | throughput | mean | p99 |\n|---|---|---|---|")
    for level, drive, scheduler, operation, size_kib, outstanding, threads in LOADS:
        point = Point(
            level=level, drive=drive, scheduler=scheduler, operation=operation, size_kib=size_kib,
            outstanding=outstanding, threads=threads,
        )  # fmt: skip
        found = compare(DIRECT, measured(point))
        errors = (found.throughput_error, found.mean_error, found.p99_error)
        print(f"| {point.name} | {' | '.join(f'{100 * error:+.1f} %' for error in errors)} |", flush=True)


if __name__ == "__main__":
    main()
