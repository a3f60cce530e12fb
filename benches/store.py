"""How fast a store of 10 000 runs answers.

    make bench-store [ARGS='--runs 10000 --store FILE|URL']

Builds the store from one modelled run of a minute (60 intervals, two operations), with another identity and slightly
other figures each time, half of them tagged `a`, half `b`; then measures each question as a process of its own, as a
person asks it: the median of five.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from spindle.report.terminal.progress import watching
from spindle.result.record import RunRecord
from spindle.run.order import Order, carry_out
from spindle.run.targets import parse
from spindle.store import open_store

GOAL_S = 1.0
PIECE = 200
COMPARED = ["iops", "bytes_per_s", "read.p99_ns", "write.p99_ns"]
TWO_TAGS = f"""
import sys
from spindle.store import open_store
with open_store(sys.argv[1], read_only=True) as store:
    for tag in ("tag:a", "tag:b"):
        chosen = store.select(tag)
        found = store.metrics(chosen, {COMPARED!r})
        print(tag, len(chosen), sum(each["iops"] for each in found) / len(found))
"""
"""The data that `compare` needs of two tags."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument(
        "--store",
        help="FILE or postgresql:// URL; one that was built before is used as it is. Default: a file that is removed.",
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spindle-bench-") as folder:
        where = asked.store or str(Path(folder) / "store.db")
        with open_store(where) as store:
            there = store.count()
        if there == 0:
            build(where, asked.runs)
        else:
            print(f"{there} runs are there already")
        return questions(where)


def build(where: str, count: int) -> None:
    """One run after the other as a campaign stores them, then the rest in pieces as `import` does."""
    records = variants(count)
    with open_store(where) as store:
        times = []
        for record in [next(records) for _ in range(min(100, count))]:
            begun = time.perf_counter()
            store.add(record, tags=[tag_of(record)])
            times.append(time.perf_counter() - begun)
        print(f"one run stored, durable:      {statistics.median(times) * 1e3:7.1f} ms (median of {len(times)})")
        begun = time.perf_counter()
        stored = len(times)
        while piece := list(islice(records, PIECE)):
            for tag in ("a", "b"):
                store.add_all([record for record in piece if tag_of(record) == tag], tags=[tag])
            stored += len(piece)
        spent = time.perf_counter() - begun
        print(f"{stored - len(times)} runs in pieces of {PIECE}:  {spent:7.1f} s")
        size = store.info().size_bytes
        print(f"size:                         {size / 1e6:7.0f} MB, {size / stored / 1e3:.1f} kB a run")


def variants(count: int) -> Iterator[RunRecord]:
    """The same run with other figures and another identity."""
    with watching(quiet=True) as watch:
        base = carry_out(Order("randomio", parse("one-sata"), (("seconds", "60"),)), watch)
    assert isinstance(base, RunRecord)
    chance = random.Random(1)
    for number in range(count):
        stream = base.figures.streams[0]
        assert stream.read is not None
        factor = chance.gauss(1, 0.03)
        read = replace(stream.read, iops=stream.read.iops * factor)
        yield replace(
            base,
            id=f"20260101T{number // 3600 % 24:02}{number // 60 % 60:02}{number % 60:02}Z-{number:06x}",
            started=f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
            figures=replace(base.figures, streams=[replace(stream, read=read)]),
        )


def tag_of(record: RunRecord) -> str:
    return "ab"[int(record.id[-6:], 16) % 2]


def cpu_s() -> float:
    """CPU time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def questions(where: str) -> int:
    """Each as a process of its own. 1 when a goal is missed."""
    spindle = [sys.executable, "-m", "spindle.cli"]
    asked = {
        "spindle store ls": [*spindle, "store", "ls", "--store", where],
        "two tags, four metrics": [sys.executable, "-c", TWO_TAGS, where],
        "spindle store ls tag:a": [*spindle, "store", "ls", "tag:a", "--store", where],
        "spindle store show last": [*spindle, "store", "show", "last", "--store", where],
        "averages by tag in SQL": [
            *spindle, "sql", "--store", where,
            "SELECT tag, avg(value) FROM metrics JOIN tags USING (record_key) WHERE name = 'iops' GROUP BY tag",
        ],
    }  # fmt: skip
    missed = 0
    for name, command in asked.items():
        times, cpu = [], []
        for _ in range(5):
            before, begun = cpu_s(), time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - begun)
            cpu.append(cpu_s() - before)
        median = statistics.median(times)
        missed += median > GOAL_S
        figures = f"{median:8.2f} s, {statistics.median(cpu):.2f} s of CPU time"
        print(f"{name + ':':29} {figures} {'' if median <= GOAL_S else f'MORE THAN {GOAL_S:g} s'}")
    begun = time.perf_counter()
    subprocess.run([*spindle, "store", "check", "--store", where], stdout=subprocess.DEVNULL, check=True)
    print(f"{'spindle store check:':29} {time.perf_counter() - begun:8.1f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
