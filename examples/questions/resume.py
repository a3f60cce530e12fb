"""After serving expired reads, does the elevator resume where it left off?"""

import csv
import tempfile
from pathlib import Path

from experiment import ARGUMENTS, Experiment, drives, run

KERNELS = {
    "2.6.20": "deadline",
    "2.6.24": "deadline",
    "2.6.25": "deadline",
    "6.1": "mq-deadline",
    "6.18": "mq-deadline",
}
EXPIRED_NS = 500_000_000
READERS = 128


def main() -> None:
    """The read after an expired one: the next address behind it, or the place of the sweep before."""
    given = ARGUMENTS.parse_args()
    columns = ("jumps to an expired read", "then on behind it (%)", "then back to the sweep (%)")
    found = Experiment(
        f"HDS725050KLA360 without command queueing, {READERS} readers of 4 KiB, 60 s",
        "kernel", "Share of jumps (%)", columns, shown="{:.0f}".format, drawn=columns[1:], bars=True,
    )  # fmt: skip
    for kernel, scheduler in KERNELS.items():
        text = f'[host]\nkernel = "{kernel}"\n[queue]\nnr_requests = 256\nscheduler = "{scheduler}"\n'
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.csv"
            machine = text + drives("HDS725050KLA360", queue_depth=1)
            run(machine, seconds=60, workers=READERS, direct=True, write_fraction=0, trace=trace)
            with trace.open(newline="") as file:
                reads = [(int(row["lbn"]), int(row["host_queue_ns"])) for row in csv.DictReader(file)]
        found.add(f"{kernel} {scheduler}", *_after_jumps(reads))
    found.finish(given.chart)


def _after_jumps(reads: list[tuple[int, int]]) -> tuple[float, float, float]:
    """Jumps, and the shares of them after which the drive reads on behind the expired read, or returns."""
    jumps = behind = back = 0
    for (before, _), (jump, waited), (after, _) in zip(reads, reads[1:], reads[2:], strict=False):
        if waited < EXPIRED_NS or jump >= before:  # upwards: the sweep itself may have come here
            continue
        jumps += 1
        behind += jump <= after < before
        back += after >= before
    return jumps, 100 * behind / max(1, jumps), 100 * back / max(1, jumps)


if __name__ == "__main__":
    main()
