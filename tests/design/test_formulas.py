"""The formulas of the nets against the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from spindle import _core
from spindle.design import nets
from spindle.design.drives import Candidate, candidates
from spindle.design.loads import demands, volumes, workload
from spindle.design.prices import Prices
from spindle.design.reading import requirement_of
from spindle.design.requirement import Requirement, State
from spindle.design.space import Grid, grid
from spindle.design.trial import SHORT, Effort, Simulator, machine_text
from spindle.run.simulate import read_figures

NEED = """
usable = "1TB"
survive = 0
[limits]
bays = 12
[space]
chunks = ["64KiB"]
schedulers = ["none"]
regions = ["100%", "25%"]
spares = [0]
[[load]]
rate = "200 IOPS"
mix = "50/50"
size = "8KiB"
p99 = "60ms"
"""


@pytest.fixture(scope="module")
def need() -> Requirement:
    return requirement_of(NEED, "need")


@pytest.fixture(scope="module")
def drives(need: Requirement) -> list[Candidate]:
    return candidates(Prices({"ST3600057SS": 100.0, "WD10EACS": 50.0}, "", ""), (), need.space.regions, True)


def rows_of(of: Grid, scheme: str, count: int) -> int:
    number = [one.name for one in of.schemes].index(scheme)
    return int(np.flatnonzero((of.scheme == number) & (of.count == count) & (of.region == 0))[0])


@pytest.mark.parametrize(
    ("scheme", "count"),
    [
        ("one drive", 1), ("raid0", 4), ("raid1", 2), ("raid1 x3", 3), ("raid10 n2", 6), ("raid10 f2", 5),
        ("raid10 o2", 4), ("raid10 n3", 6), ("raid5", 6), ("raid6", 8), ("raid50 x2", 12), ("raid60 x2", 12),
    ],
)  # fmt: skip
def test_members_get_the_requests_that_the_simulator_gives_them(
    need: Requirement, drives: list[Candidate], scheme: str, count: int
) -> None:
    of, volume = grid(need, drives), volumes(need, ())[0]
    row = rows_of(of, scheme, count)
    work = nets.member_work(of.take(np.array([row])), demands(volume.loads))
    design = of.design(row)
    core = workload(volume.loads, 20, 1)
    machine = _core.Machine.parse(machine_text(design, State.WHOLE, ""), "x")
    run = read_figures(_core.simulate_many([(machine, core)])[0])
    seconds = run.run.measured_s + 4
    reads, writes = (
        sum(getattr(drive, name) for drive in run.drives) / count / seconds for name in ("reads", "writes")
    )
    # md's rows of 4 KiB that overlap, and the end of the run, make a few per cent.
    assert work.reads[0] == pytest.approx(reads, rel=0.08)
    assert work.writes[0] == pytest.approx(writes, rel=0.08)


def test_usable_bytes_are_those_of_the_simulated_array(need: Requirement, drives: list[Candidate]) -> None:
    of = grid(need, drives)
    for row in np.random.default_rng(1).permutation(len(of))[:60]:
        text = machine_text(of.design(int(row)), State.WHOLE, "")
        capacity = int(_core.Machine.parse(text, "x").to_json().split('"capacity":')[1].split(",")[0])
        assert of.usable[row] == pytest.approx(capacity, rel=1e-3)


def test_the_closed_formulas_throw_out_nothing_that_meets_the_bounds(drives: list[Candidate]) -> None:
    need = requirement_of(NEED.replace("200 IOPS", "700 IOPS"), "need")
    of, volume = grid(need, drives), volumes(need, ())[0]
    rate = next(one for one in nets.closed_needs(of, volume, need, 1.0) if one.name == "rate of the loads")
    thrown = np.flatnonzero(~rate.met)
    some = np.random.default_rng(2).permutation(thrown)[:40]
    assert len(some) == 40
    # The nearest misses are the ones that might do it.
    nearest = thrown[np.argsort(rate.excess[thrown])[:20]]
    designs = [of.design(int(row)) for row in (*some, *nearest)]
    assert not any(outcome.meets for outcome in Simulator().evaluate(designs, volume, SHORT, 1.0))


def test_the_approximation_of_reads_is_near_the_simulation(need: Requirement, drives: list[Candidate]) -> None:
    of, volume = grid(need, drives), volumes(need, ())[0]
    rows = np.array([rows_of(of, *one) for one in (("raid10 n2", 8), ("raid5", 10), ("raid6", 12), ("raid0", 6))])
    some = of.take(rows)
    found = nets.estimate(some, nets.member_work(some, demands(volume.loads)))
    outcomes = Simulator().evaluate([some.design(at) for at in range(len(rows))], volume, Effort(8000, 1), 1.0)
    for at, outcome in enumerate(outcomes):
        read = next(figure for figure in outcome.figures if figure.operation == "read")
        assert found.read_mean[at] == pytest.approx(read.latency_ns["mean"], rel=0.3)


def test_a_slower_drive_is_another_unit_of_time(need: Requirement, drives: list[Candidate]) -> None:
    of, volume = grid(need, drives), volumes(need, ())[0]
    design = of.design(rows_of(of, "raid5", 8))
    plain = Simulator().evaluate([design], volume, SHORT, 1.0)[0]
    slower = Simulator(slower=1.25).evaluate([design], volume, SHORT, 1.0)[0]
    pairs = list(zip(plain.figures, slower.figures, strict=True))
    assert all(new.iops == pytest.approx(old.iops, rel=0.06) for old, new in pairs)
    assert all(new.latency_ns["mean"] > 1.2 * old.latency_ns["mean"] for old, new in pairs)
