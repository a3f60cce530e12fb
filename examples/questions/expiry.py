"""Does the expiry of requests undo the elevator, and would one without it be better?"""

from experiment import ARGUMENTS, Experiment, drives, run

ELEVATORS = {
    "deadline": 'scheduler = "deadline"',
    "deadline, expiry 1 h": 'scheduler = "deadline"\n[queue.iosched]\nread_expire = "3600s"\nwrite_expire = "3600s"',
    "c-look (C-SCAN)": 'scheduler = "c-look"',
    "look (SCAN)": 'scheduler = "look"',
    "sstf": 'scheduler = "sstf"',
    "fcfs": 'scheduler = "fcfs"',
}
READERS = 128


def main() -> None:
    """Random reads of many readers on one drive without a queue of its own."""
    given = ARGUMENTS.parse_args()
    columns = ("IOPS", "mean (ms)", "99th percentile (ms)", "worst (ms)")
    found = Experiment(
        f"HDS725050KLA360 without command queueing, {READERS} readers of 4 KiB",
        "elevator", "Latency (ms)", columns, shown="{:.0f}".format, drawn=columns[1:], bars=True,
    )  # fmt: skip
    for name, queue in ELEVATORS.items():
        text = f'[host]\nkernel = "2.6.25"\n[queue]\nnr_requests = 256\n{queue}\n'
        read = run(text + drives("HDS725050KLA360", queue_depth=1), seconds=120, workers=READERS, direct=True).read
        found.add(name, read.iops, float(read.mean) / 1e6, float(read.p99) / 1e6, float(read.max) / 1e6)
    found.finish(given.chart)


if __name__ == "__main__":
    main()
