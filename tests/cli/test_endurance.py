"""A run allocates all memory for its history at the start: a longer run needs no more."""

from __future__ import annotations

import gc
import re
import tracemalloc
from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle.conditions.intervals import Intervals
from spindle.conditions.sample import COLUMNS
from spindle.report.terminal.progress import clipped
from spindle.result.record import Sample
from spindle.run.engine import EngineOptions
from spindle.run.resolve import resolve
from spindle.run.targets import Opening, parse
from spindle.run.watch import Moment, SilentWatch

MIB = 1 << 20
SETTLED = 1 / 3
"""Share of the run after which nothing may grow."""


def resident_bytes() -> int:
    found = re.search(r"^Rss:\s+(\d+) kB$", Path("/proc/self/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


class Weighing(SilentWatch):
    """Measures the memory of this process at each progress report of the load."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int]] = []

    def moment(self, moment: Moment) -> None:
        if moment.phase == "measure" and moment.done_fraction is not None:
            gc.collect()
            self.seen.append((moment.done_fraction, resident_bytes()))


def test_thousands_of_intervals_do_not_grow_the_process(here: Path) -> None:
    # Four seconds have as many intervals of a millisecond as an hour has seconds, and more.
    (here / "t.bin").write_bytes(bytes(4 * MIB))
    load = resolve(
        "randomio", [("write_fraction", "0"), ("direct", "false"), ("seconds", "4"), ("workers", "2"), ("depth", "4")]
    )
    watch = Weighing()
    with parse(str(here / "t.bin")).open(
        load, watch, Opening(engine_options=EngineOptions(interval_ns=1_000_000))
    ) as opened:
        record = opened.measure(load).record
    assert len(record.figures.series) > 1000
    late = [resident for done, resident in watch.seen if done >= SETTLED]
    assert late
    assert max(late) - min(late) < MIB, watch.seen


def a_sample(number: int) -> Sample:
    return Sample(
        at_s=float(number),
        seconds=1.0,
        cpu_others=0.1 + number,
        cpu_iowait=None,
        cpu_steal=0.0,
        other_read_bytes_per_s=1e6 + number,
        other_write_bytes_per_s=None,
        swapped_pages=number,
        throttle_events=None,
        temperatures={"sda": 40.0 + number % 7},
        array_actions={"md0": "check"} if number == 3 else {},
        devices={"sda": dict.fromkeys(COLUMNS, number + 0.5)},
    )


def test_samples_come_back_as_they_were_put_in() -> None:
    kept = Intervals(["sda"], ["sda"], most=10)
    samples = [a_sample(number) for number in range(10)]
    assert not any(kept.add(sample) for sample in samples)
    assert kept.samples() == samples


def test_neighbours_are_joined_when_there_is_no_room() -> None:
    kept = Intervals(["sda"], ["sda"], most=10)
    joined = [kept.add(a_sample(number)) for number in range(11)]
    assert joined == [False] * 10 + [True]
    found = kept.samples()
    assert len(found) == 6
    assert sum(sample.seconds for sample in found) == 11
    assert sum(sample.swapped_pages or 0 for sample in found) == sum(range(11))
    assert [sample.array_actions for sample in found][1] == {"md0": "check"}
    assert found[0].cpu_others == pytest.approx(0.6)
    assert found[-1] == replace(a_sample(10), array_actions={})


def test_a_sample_takes_no_memory_of_its_own() -> None:
    kept = Intervals(["sda"], ["sda"], most=2000)
    kept.add(a_sample(0))
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1, 1500):
            kept.add(a_sample(number))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000, after - before


def test_the_live_line_keeps_no_history() -> None:
    clipped("warm-up", 80)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(5000):
            clipped(f"randomio: {number} IOPS, {number / 7} MB/s", 80)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000, after - before
