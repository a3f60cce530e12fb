"""Speed of the lab: direct reads of 4 KiB, one after the other, less a boot that does nothing.

    python benches/lab.py [--requests N]

Prints the CPU time of a boot and the requests per second of CPU time, of the kernel's part and of Spindle's.
"""

from __future__ import annotations

import argparse
import resource

from spindle import _core
from spindle.lab import session

MACHINE = """
[[drive]]
service = '100us'
transfer_rate = '200 MB/s'
flush = '100us'
queue_depth = 256
capacity = '512MiB'
"""


def run(command: list[str]) -> tuple[float, float, int]:
    """CPU seconds of the kernel and of Spindle, requests."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    outcome = session.execute(_core.Machine.parse(MACHINE, "bench"), command, lambda *_: None)
    after = resource.getrusage(resource.RUSAGE_SELF)
    spindle = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return outcome.cpu_s, spindle, sum(drive.requests for drive in outcome.boot.drives)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=20_000)
    count = parser.parse_args().requests
    run(["true"])
    kernel_boot, spindle_boot, _ = run(["true"])
    command = ["dd", "if=/dev/vda", "of=/dev/null", "bs=4k", f"count={count}", "iflag=direct"]
    kernel, spindle, requests = run(command)
    kernel, spindle = kernel - kernel_boot, spindle - spindle_boot
    print(f"boot      {kernel_boot:.2f} s of CPU time for the kernel, {spindle_boot:.2f} s for Spindle")
    print(f"requests  {requests / (kernel + spindle):,.0f} per second of CPU time")
    print(
        f"          {1e6 * kernel / requests:.0f} us of the kernel, {1e6 * spindle / requests:.0f} us of Spindle each"
    )


if __name__ == "__main__":
    main()
