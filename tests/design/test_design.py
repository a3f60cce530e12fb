"""`spindle design`, from the need to the answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import spindle
from spindle.design.drives import candidates
from spindle.design.loads import separable, volumes
from spindle.design.prices import Prices
from spindle.design.reading import requirement_of
from spindle.design.requirement import State
from spindle.design.search import Confirmed, VolumeSearch
from spindle.design.space import grid
from spindle.design.trial import MEDIUM, SHORT, Effort, Simulator
from spindle.run.watch import SilentWatch
from tests.program import spindle as program

PRICES = "model,price,currency\nST3600057SS,100,EUR\nWD3000GLFS,60,EUR\n"
NEED = """
about = "a small database"
usable = "1TB"
survive = 1
[limits]
bays = 8
[space]
chunks = ["64KiB"]
schedulers = ["mq-deadline"]
regions = ["100%"]
spares = [0]
levels = ["raid5", "raid10 n2"]
[[load]]
name = "queries"
rate = "300 IOPS"
mix = "70/30"
size = "8KiB"
p99 = "40ms"
"""


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prices") / "prices.csv"
    path.write_text(PRICES)
    return path


@pytest.fixture(scope="module")
def found(prices: Path) -> spindle.Design:
    return spindle.design(NEED, prices)


def test_the_same_input_gives_the_same_bytes(found: spindle.Design, prices: Path) -> None:
    assert spindle.design(NEED, prices).to_json() == found.to_json()


def test_the_recommendation_meets_the_need_in_fresh_runs(found: spindle.Design, tmp_path: Path) -> None:
    assert found.recommendation is not None
    (array,) = found.recommendation.arrays
    assert array.usable_bytes >= array.needed_bytes == 10**12
    machine = tmp_path / "machine.toml"
    machine.write_text(found.machine())
    run = spindle.run(
        "randomio", machine, rate="300 IOPS", spacing="poisson", write_fraction=0.3, fsync_fraction=0, size="8KiB",
        workers=16, depth=16, seconds=60, seed=77,
    )  # fmt: skip
    assert run.read is not None
    assert run.write is not None
    assert max(run.read.p99, run.write.p99) <= 40e6
    assert max(of.p99_ns for of in found.figures if of.state == "whole") <= 40e6


def test_no_cheaper_design_of_the_space_meets_the_need(found: spindle.Design) -> None:
    """Every design is simulated, whatever the formulas say."""
    need = requirement_of(NEED, "need")
    drives = candidates(Prices({"ST3600057SS": 100.0, "WD3000GLFS": 60.0}, "", ""), (), need.space.regions, True)
    of, volume = grid(need, drives), volumes(need, ())[0]
    rows = np.flatnonzero((of.usable >= volume.needed_bytes) & (of.of_scheme("tolerance") >= 1))
    outcomes = Simulator().evaluate([of.design(int(row)) for row in rows], volume, Effort(8000, 2), 1.0, 1001)
    good = [float(of.cost[row]) for row, outcome in zip(rows, outcomes, strict=True) if outcome.meets]
    assert found.recommendation is not None
    assert found.recommendation.cost == min(good)
    assert any(not outcome.meets for outcome in outcomes), "a need that everything meets tests nothing"


def test_a_level_that_fails_degraded_does_not_keep_others_from_their_turn() -> None:
    """Three copies on seven drives are fastest while whole, and too slow with a missing one; two copies meet both."""
    need = requirement_of(
        'usable = "0.91TB"\n[limits]\nbays = 8\n[space]\nlevels = ["raid10 n2", "raid10 n3"]\nspares = [0]\n'
        'regions = ["50%"]\n[[load]]\nrate = "453 IOPS"\nmix = "65/35"\nsize = "4KiB"\np99 = "54ms"\n'
        'degraded = { p99 = "108ms" }\n',
        "need",
    )
    drives = candidates(Prices({"WD10EACS": 37.0}, "", ""), (), need.space.regions, True)
    final = Effort(15_000, 1, (State.WHOLE, State.DEGRADED))
    simulator, volume = Simulator(), volumes(need, ())[0]
    search = VolumeSearch(need, volume, drives, simulator, SilentWatch(), final=final)
    of = grid(need, drives)
    rows = [row for row in range(len(of)) if of.count[row] == 7]
    short = simulator.evaluate([of.design(row) for row in rows], volume, SHORT, 1.0, 1)
    fastest = of.design(rows[min(range(len(rows)), key=lambda at: short[at].share)])
    assert fastest.scheme.name == "raid10 n3"
    assert not simulator.evaluate([fastest], volume, final, 1.0, 1001)[0].meets
    best = search.cheapest()
    assert best is not None
    assert (best.design.drives, best.design.scheme.name) == (7, "raid10 n2")


HOT = """
usable = "10TB"
[growth]
capacity = "100%"
years = 1
[[load]]
name = "queries"
rate = "1000 IOPS"
pattern = "hot-set"
hot_space = "10%"
hot_access = "80%"
hot = "apart"
p99 = "40ms"
"""


def test_hot_places_get_an_array_with_their_share_of_space_and_requests() -> None:
    need = requirement_of(HOT, "need")
    assert separable(need) == ["queries-hot"]
    (together,) = volumes(need, ())
    assert (together.needed_bytes, together.loads) == (20 * 10**12, need.loads)
    rest, hot = volumes(need, ["queries-hot"])
    assert (rest.name, rest.needed_bytes) == ("data", 18 * 10**12)
    assert (hot.name, hot.needed_bytes) == ("queries-hot", 2 * 10**12)
    assert [load.rate_iops for volume in (rest, hot) for load in volume.loads] == pytest.approx([200, 800])
    assert all(load.bounds == need.loads[0].bounds for volume in (rest, hot) for load in volume.loads)
    assert all(load.parsed()[0]["pattern"] == {"kind": "uniform"} for volume in (rest, hot) for load in volume.loads)


def test_hot_data_on_flash_and_the_rest_on_disks_where_that_is_cheapest() -> None:
    """Disks alone need many drives for the rate, flash alone many for 10 TB."""
    need = requirement_of(
        HOT.replace("[growth]", '[space]\nlevels = ["raid5", "raid1"]\nchunks = ["64KiB"]\nregions = ["100%"]\n'
        'spares = [0]\nschedulers = ["none"]\n[growth]').replace("1000 IOPS", "800 IOPS").replace("80%", "95%"),
        "need",
    )  # fmt: skip
    prices = Prices({"ST18000NM000J": 300.0, "PM893-960GB": 150.0}, "", "")
    drives = candidates(prices, (), need.space.regions, False)
    simulator, final = Simulator(), Effort(4000, 1)

    def cheapest(apart: list[str]) -> list[Confirmed]:
        found = [
            VolumeSearch(need, volume, drives, simulator, SilentWatch(), final).cheapest()
            for volume in volumes(need, apart)
        ]
        return [one for one in found if one is not None]

    together, tiers = cheapest([]), cheapest(["queries-hot"])
    assert [one.design.is_flash for one in tiers] == [False, True]
    assert sum(one.cost for one in tiers) < min(one.cost for one in together)


def test_the_front_has_no_design_that_another_one_beats(found: spindle.Design) -> None:
    points = [(one.cost, one.bound_share or 0.0, one.yearly_loss, one.watts) for one in found.front]
    for point in points:
        beaten = [all(a <= b for a, b in zip(other, point, strict=True)) for other in points if other != point]
        assert not any(beaten)
    assert found.recommendation in found.front


def test_a_harder_need_is_never_cheaper(found: spindle.Design) -> None:
    assert found.recommendation is not None
    cost = found.recommendation.cost
    harder = {"10 % more", "10 % shorter", "one more"}
    assert {need.change for need in found.needs} > harder
    for need in found.needs:
        assert need.cost is None or (need.cost >= cost if need.change in harder else need.cost <= cost)
        assert need.decides == (need.cost != cost)


def test_commands_and_machine_file_are_of_the_recommendation(found: spindle.Design) -> None:
    assert found.recommendation is not None
    (array,) = found.recommendation.arrays
    text = "\n".join(found.commands)
    assert f"--raid-devices={array.drives} /dev/sd[b-" in text
    assert f"--level={array.level.split()[0].removeprefix('raid')} " in text
    assert "mkfs.xfs -d su=64k,sw=" in text
    assert "scheduler=mq-deadline" in text
    assert f'model = "{array.drive}"\ncount = {array.drives}\n' in found.machine()


def test_a_closed_loop_is_not_tried_with_more_load(prices: Path) -> None:
    """It asks for as much as it gets: the answer would always be that it still meets the need."""
    need = 'usable = "100GB"\n[limits]\nbays = 2\n[space]\nlevels = ["raid1"]\nregions = ["100%"]\n'
    need += 'schedulers = ["none"]\nspares = [0]\n[[load]]\nworkers = 4\nsize = "8KiB"\nleast_iops = 100\n'
    found = spindle.design(need, prices)
    assert [broken.condition for broken in found.breaks] == ["drives 10 % slower"]
    assert found.headroom is None


def test_an_impossible_need_says_which_bound_and_by_how_much(prices: Path, tmp_path: Path) -> None:
    need = tmp_path / "need.toml"
    need.write_text(NEED.replace("bays = 8", "bays = 8\nbudget = 200"))
    result = program("design", str(need), "--prices", str(prices), "-q")
    assert result.status == 1
    assert "Nothing meets the need" in result.out
    line = next(line for line in result.out.splitlines() if line.startswith("- budget:"))
    # Four 300 GB drives in a RAID5 have 0.9 TB, three of 600 GB 1.2 TB: the least that has the space costs 300.
    assert "needed 200 EUR, the nearest design has 300 EUR, 50 % off" in line


def test_a_bound_that_no_simulation_meets_is_named(prices: Path) -> None:
    found = spindle.design(NEED.replace('p99 = "40ms"', 'p99 = "4ms"'), prices)
    assert found.recommendation is None
    missed = found.missed[0]
    assert missed.need.startswith("p99 of queries")
    assert missed.asked == "4.00 ms"
    assert missed.excess is not None
    assert missed.excess > 0.5


def test_a_log_gets_an_array_of_its_own_where_that_is_cheaper(prices: Path) -> None:
    log = '[[load]]\nname = "log"\napart = "50GB"\nsize = "8KiB"\npattern = "sequential"\nwrite_fraction = 1\n'
    log += 'rate = "150 IOPS"\np99 = "40ms"\n'
    space = NEED.replace('levels = ["raid5", "raid10 n2"]', 'levels = ["raid5", "raid1"]')
    found = spindle.design(space + log, prices)
    assert found.recommendation is not None
    names = [array.name for array in found.recommendation.arrays]
    assert names in (["data"], ["data", "log"])
    assert set(found.machines) == set(names)
    if len(names) == 2:
        assert found.recommendation.cost > 0
        assert any("/dev/md10" in line for line in found.commands)


def test_a_rebuild_that_is_too_slow_gets_a_least_speed() -> None:
    need = requirement_of(NEED.replace("bays = 8", 'bays = 8\nrebuild = "6h"'), "need")
    drives = candidates(Prices({"ST3600057SS": 100.0}, "", ""), (), need.space.regions, True)
    search = VolumeSearch(need, volumes(need, ())[0], drives, Simulator(), SilentWatch(), final=MEDIUM)
    best = search.cheapest()
    assert best is not None
    assert best.design.sync_speed_min is not None
    assert best.outcome.rebuild_hours is not None
    assert best.outcome.rebuild_hours <= 6


def test_the_verb_writes_machine_and_chart_and_prints_json(prices: Path, tmp_path: Path) -> None:
    machine, chart = tmp_path / "m.toml", tmp_path / "front.svg"
    options = ["--usable", "500GB", "--iops", "60", "--mix", "100/0", "--p99", "60ms", "--bays", "4", "--survive", "1"]
    outputs = ["--machine", str(machine), "--chart", str(chart), "--json"]
    result = program("design", *options, "--prices", str(prices), "-q", *outputs)
    assert result.status == 0, result.err
    answer = json.loads(result.out)
    assert answer["recommendation"]["cost"] <= 200
    assert machine.read_text().startswith("# made by `spindle design`\n")
    assert "Cost of all drives (EUR)" in chart.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--usable", "1TB"], "--prices"),
        (["need.toml", "--usable", "1TB", "--prices", "p.csv"], "--usable: the requirement file says it"),
        (["missing.toml", "--prices", "p.csv"], "no such file"),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(arguments: list[str], says: str) -> None:
    result = program("design", *arguments)
    assert result.status == 2
    assert says in result.err
    assert "Traceback" not in result.err


CLOSED = """
usable = "500GB"
[[load]]
name = "jobs"
pattern = "uniform"
size = "8KiB"
mix = "70/30"
workers = 16
p99 = "20ms"
"""


def test_closed_loops_on_flash_end_by_requests_and_have_the_figures_of_long_runs() -> None:
    requirement = requirement_of(CLOSED, "need")
    (volume,) = volumes(requirement, ())
    drives = candidates(Prices({"PM893-960GB": 150}, "", "p"), (), (1.0,), True)
    every = grid(requirement, drives)
    rows = [
        row
        for row in range(len(every))
        if (one := every.design(row)).scheme.name == "raid10 n2"
        and (one.drives, one.spares, one.chunk) == (4, 0, 65536)
    ]
    design = every.design(rows[0])
    simulator = Simulator()
    (short,) = simulator.evaluate([design], volume, Effort(15_000, 3), 1.0)
    (long,) = simulator.evaluate([design], volume, Effort(150_000, 1), 1.0, seed=9)
    counted = {figure.operation: figure.requests for figure in short.figures}
    assert 14_000 < sum(counted.values()) < 15_100
    assert short.spread < 0.05
    for figure, other in zip(short.figures, long.figures, strict=True):
        assert figure.iops == pytest.approx(other.iops, rel=0.03)
        assert figure.latency_ns["p99"] == pytest.approx(other.latency_ns["p99"], rel=0.05)


def test_the_chart_is_a_page_too_and_the_wrong_name_is_refused_before_the_search(
    found: spindle.Design, tmp_path: Path
) -> None:
    found.plot().save(tmp_path / "front.html")
    text = (tmp_path / "front.html").read_text()
    assert text.startswith("<!doctype html>")
    assert "width=device-width" in text
    assert found.recommendation is not None
    assert found.recommendation.words in text
    found.plot().save(tmp_path / "front.html")  # its own page may be replaced
    done = program("design", "--usable", "1TB", "--prices", "none.csv", "--chart", "x.gif", cwd=tmp_path)
    assert (done.status, "let it end in .png, .svg or .html" in done.err) == (2, True)
