"""Measures the cost of verification: the same load with and without `verify`, one after the other in alternating order.

Reads find what a verified run wrote before, so that every block of them is checked. On a loop device (a file of the
current folder behind it), on zram, and on a file in the page cache, which bounds what it can cost: nothing but the
copy of a block is left to compare with. Needs root; no device but those it makes is touched.

    python benches/verify.py [--seconds 0.5] [--rounds 15] [--bytes 268435456] [--only PLACE] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spindle import _core
from spindle.host.guard import OpenTarget, StreamAccess, open_target
from spindle.host.testfile import TestFile

GOAL = 0.25
"""Largest loss of throughput on the loop device, as the median of the rounds: the best round of many on a disk that
scatters by a factor of two is a matter of luck."""


@dataclass(frozen=True)
class Load:
    """4 KiB requests of one kind."""

    write: bool
    sequential: bool
    depth: int

    @property
    def name(self) -> str:
        order = "sequential" if self.sequential else "random"
        return f"{order} {'write' if self.write else 'read'}, depth {self.depth}"

    def workload(self, seconds: float, direct: bool, verify: bool, seed: int) -> _core.Workload:
        text = f"""
            seconds = {seconds}
            ramp = "100ms"
            seed = {seed}
            size = "4KiB"
            pattern = "{"sequential" if self.sequential else "uniform"}"
            write_fraction = {1 if self.write else 0}
            depth = {self.depth}
            direct = {str(direct).lower()}
            verify = {str(verify).lower()}
        """
        return _core.Workload.parse(text, "bench", "bench")


@dataclass(frozen=True)
class Place:
    """Where it runs."""

    name: str
    target: OpenTarget
    direct: bool
    engine: str


@dataclass(frozen=True)
class Figures:
    """The figures of all rounds of one load."""

    place: str
    load: str
    plain_iops: float
    verified_iops: float
    """Rate of the best round: the one that was disturbed least."""
    cost: float
    """Loss of throughput, best round against best round."""
    median_cost: float
    """The same as the median of the rounds: on a quiet machine there is no difference."""
    plain_cpu_ns: float
    verified_cpu_ns: float
    """CPU time of a request, ns; medians."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="of each run")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--bytes", type=int, default=256 << 20, help="size of each target")
    parser.add_argument("--only", help="only places whose name has this in it")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("bench-verify: needs root, for loop and zram devices", file=sys.stderr)
        return 2
    found = []
    with ExitStack() as opened:
        for place in places(arguments.bytes, opened):
            if arguments.only and arguments.only not in place.name:
                continue
            for load in loads(place):
                figures = compare(place, load, arguments.seconds, arguments.rounds)
                found.append(figures)
                if not arguments.json:
                    show(figures, first=len(found) == 1)
    worst = max((one.median_cost for one in found if one.place == "loop device"), default=0.0)
    if arguments.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        print(f"\nthe most it costs on the loop device, in the median: {worst:.0%} (goal: at most {GOAL:.0%})")
    return 0 if worst <= GOAL else 1


def loads(place: Place) -> Iterator[Load]:
    for depth in (1, 16) if place.direct else (1,):
        for write in (False, True):
            for sequential in (False, True):
                yield Load(write, sequential, depth)


def places(size: int, opened: ExitStack) -> Iterator[Place]:
    folder = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=".")))
    yield Place("loop device", opened.enter_context(device(loop(folder, size, opened))), True, "io_uring")
    zram = zram_device(size, opened)
    if zram is not None:
        yield Place("zram", opened.enter_context(device(zram)), True, "io_uring")
    file = opened.enter_context(TestFile.create(folder / "cached.bin", size))
    cached = opened.enter_context(open_target(file, [StreamAccess(write=True, direct=False)]))
    yield Place("page cache", cached, False, "pread")


@contextmanager
def device(path: str) -> Iterator[OpenTarget]:
    with open_target(path, [StreamAccess(write=True)], erase=path, erase_stacked=True) as target:
        yield target


def loop(folder: Path, size: int, opened: ExitStack) -> str:
    image = folder / "image"
    with image.open("xb") as file:
        # All of it is there: a hole that is filled would cost the plain run more, which comes first.
        os.posix_fallocate(file.fileno(), 0, size)
    path = subprocess.check_output(["losetup", "--find", "--show", str(image)], text=True).strip()
    opened.callback(subprocess.run, ["losetup", "--detach", path], check=False)
    return path


def zram_device(size: int, opened: ExitStack) -> str | None:
    made = subprocess.run(["zramctl", "--find", "--size", str(size)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        print(f"bench-verify: no zram: {made.stderr.strip()}", file=sys.stderr)
        return None
    path = made.stdout.strip()
    opened.callback(subprocess.run, ["zramctl", "--reset", path], check=False)
    return path


def run(
    place: Place, workload: _core.Workload, written: _core.ExpectedContent | None
) -> tuple[Any, _core.ExpectedContent | None]:
    load = _core.Run(workload, place.target.engine_files(), engine=place.engine, written=written)
    figures = json.loads(load.figures())
    return figures, load.written()


def compare(place: Place, load: Load, seconds: float, rounds: int) -> Figures:
    fill = _core.Workload.parse(
        f'verify = true\nwrite_fraction = 1\npattern = "sequential"\nsize = "1MiB"\nbytes = {place.target.size_bytes}\n'
        f"direct = {str(place.direct).lower()}",
        "fill",
        "fill",
    )
    rates: dict[bool, list[float]] = {False: [], True: []}
    cpu: dict[bool, list[float]] = {False: [], True: []}
    # What is read is there before the first round, and no round of reads changes it.
    written = None if load.write else run(place, fill, None)[1]
    for turn in range(rounds):
        for verify in (False, True) if turn % 2 else (True, False):
            workload = load.workload(seconds, place.direct, verify, turn + 1)
            figures, _ = run(place, workload, written if verify else None)
            (stream,) = figures["streams"]
            op = stream["write" if load.write else "read"]
            rates[verify].append(op["iops"])
            used = figures["cpu"]["user_ns"] + figures["cpu"]["system_ns"]
            cpu[verify].append(used / op["requests"])
            if verify and not load.write:
                check(figures["verification"]["during_load"], op["requests"])
    costs = [1 - with_it / plain for plain, with_it in zip(rates[False], rates[True], strict=True)]
    return Figures(
        place=place.name,
        load=load.name,
        plain_iops=max(rates[False]),
        verified_iops=max(rates[True]),
        cost=1 - max(rates[True]) / max(rates[False]),
        median_cost=statistics.median(costs),
        plain_cpu_ns=statistics.median(cpu[False]),
        verified_cpu_ns=statistics.median(cpu[True]),
    )


def check(during: Any, requests: int) -> None:
    """Every block of every read was judged and right, or this bench measures nothing."""
    assert during["blocks"] >= requests, during
    assert not during["faults"], during
    assert not during["unknown"], during


def show(one: Figures, first: bool) -> None:
    if first:
        cpu = "CPU ns a request"
        print(f"{'':12} {'4 KiB requests':28} {'plain':>9} {'verified':>9} {'cost':>6} {'median':>7} {cpu:>17}")
    print(
        f"{one.place:12} {one.load:28} {one.plain_iops:9.0f} {one.verified_iops:9.0f} {one.cost:6.1%} "
        f"{one.median_cost:7.1%} {one.plain_cpu_ns:8.0f} {one.verified_cpu_ns:8.0f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
