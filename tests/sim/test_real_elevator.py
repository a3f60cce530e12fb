"""The model's mq-deadline against the running kernel's, on the queue of a loop device.

256 threads keep more under way than the loop driver takes, so that requests wait in the elevator, where they are merged
and sorted. The model gets the same queue before a drive that is only a service time, with as many commands at it as the
kernel was seen to keep at the driver (fewer than its tags). What is compared does not depend on how fast the real
device is: the share of requests that are merged, and how reads starve writes.
"""

from __future__ import annotations

import platform
import re
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spindle.result.document import decode
from spindle.result.record import RunRecord
from tests.program import spindle
from tests.workbench import Workbench

THREADS = 256
SIZE = 512 << 20
MIN_QUEUE = 150
"""Below this on average the elevator was hardly used: the machine had no CPU left for the threads."""

pytestmark = [pytest.mark.usefixtures("need_root"), pytest.mark.alone]


def kernel() -> str:
    found = re.match(r"\d+\.\d+", platform.release())
    assert found is not None
    return found[0]


class Loop:
    """A loop device with mq-deadline over a file that is written in full."""

    def __init__(self, bench: Workbench) -> None:
        image = bench.new_path("image")
        with image.open("xb") as file:
            for _ in range(SIZE >> 20):
                file.write(b"\0" * (1 << 20))
        self.device: str = bench.loop(image, "--direct-io=on", size=SIZE)
        self.queue = Path("/sys/block") / Path(self.device).name / "queue"
        if "mq-deadline" not in (self.queue / "scheduler").read_text():
            pytest.skip("this kernel has no mq-deadline")
        (self.queue / "scheduler").write_text("mq-deadline")

    @contextmanager
    def watched(self) -> Iterator[list[int]]:
        """How many requests were at the driver, looked at now and then."""
        seen: list[int] = []
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.05):
                seen.append(sum(map(int, (self.queue.parent / "inflight").read_text().split())))

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield seen
        finally:
            over.set()
            watcher.join()

    def machine(self, folder: Path, service_us: float, depth: int) -> Path:
        """The same queue in front of a service time that takes `depth` commands."""
        path = folder / "machine.toml"
        path.write_text(
            f"[host]\nkernel = '{kernel()}'\n"
            f"[queue]\nscheduler = 'mq-deadline'\nnr_requests = {(self.queue / 'nr_requests').read_text().strip()}\n"
            f"max_request = '{(self.queue / 'max_sectors_kb').read_text().strip()}KiB'\n"
            f"[[drive]]\nservice = '{service_us:.0f}us'\ncapacity = '{SIZE >> 20}MiB'\nqueue_depth = {depth}\n"
        )
        return path


def run(*arguments: str | Path) -> RunRecord:
    done = spindle("run", *arguments, "--json", "--quiet")
    assert done.status == 0, done.err
    record = decode(done.out.encode(), "stdout")
    assert isinstance(record, RunRecord)
    return record


def quartiles(at_driver: list[int]) -> tuple[int, int, int]:
    lower, median, upper = statistics.quantiles([count for count in at_driver if count > 0], n=4)
    return round(lower), round(median), round(upper)


def need_full_queue(record: RunRecord) -> None:
    counters = record.counters
    assert counters is not None
    queue = counters.iostat["aqu-sz"]
    if queue < MIN_QUEUE:
        pytest.skip(f"only {queue:.0f} of {THREADS} requests reached the queue: the machine is too busy")


@pytest.mark.parametrize("size", ["64KiB", "256KiB"])
def test_as_many_requests_are_merged(bench: Workbench, tmp_path: Path, size: str) -> None:
    loop = Loop(bench)
    load = ["randomio", "--size", size, "--write-fraction", "0", "--fsync-fraction", "0", "--seconds", "5"]
    with loop.watched() as at_driver:
        real = run(*load[:1], loop.device, *load[1:], "--workers", str(THREADS), "--engine", "pread")
    need_full_queue(real)
    counters = real.counters
    assert counters is not None
    merged = counters.delta["read_merges"] / real.figures.requests

    def modelled(depth: int) -> float:
        machine = loop.machine(tmp_path, 1e6 / real.figures.iops, depth)
        model = run(*load[:1], machine, *load[1:], "--workers", str(THREADS))
        return sum(drive.delta["merges"] for drive in model.devices) / model.figures.requests

    # The driver's depth varies with the processors that the machine has left: the share is between its quartiles'.
    lower, median, upper = quartiles(at_driver)
    shares = sorted(map(modelled, {lower, median, upper}))
    assert 0.8 * shares[0] <= merged <= 1.2 * shares[-1], f"{merged:.4f} of the requests were merged, not {shares}"


def test_reads_starve_writes_as_much(bench: Workbench, tmp_path: Path) -> None:
    loop = Loop(bench)
    mix = tmp_path / "mix.toml"
    mix.write_text(
        f"seconds = 5\nsize = '256KiB'\npattern = 'uniform'\ndirect = true\nworkers = {THREADS // 2}\n"
        "[[stream]]\nname = 'reads'\n[[stream]]\nname = 'writes'\nwrite_fraction = 1.0\n"
    )
    erase = ("--erase", loop.device, "--erase-stacked", "--yes")
    with loop.watched() as at_driver:
        real = run(mix, loop.device, *erase, "--engine", "pread")
    need_full_queue(real)
    _, depth, _ = quartiles(at_driver)
    model = run(mix, loop.machine(tmp_path, 1e6 / real.figures.iops, depth))

    def starvation(record: RunRecord) -> float:
        reads, writes = (stream.iops for stream in record.figures.streams)
        return reads / writes

    # Two batches of reads for each of writes, less where a batch ends early for want of requests ahead.
    assert starvation(model) == pytest.approx(starvation(real), rel=0.15)
    assert 1.4 < starvation(real) < 2.4
