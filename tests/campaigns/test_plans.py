"""Plans: combinations, their order, and one line for each mistake."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as some

from spindle import _core
from spindle.campaign.cells import Cell, cells_of
from spindle.campaign.execution import made_ready
from spindle.campaign.order import Schedule
from spindle.campaign.pairwise import covering
from spindle.campaign.plan import Plan
from spindle.campaign.source import open_plan, read_plan
from spindle.host.errors import TargetError
from spindle.run.errors import Usage
from tests.campaigns.small import SIXTY, ready

FACTORS = """
[factors.size]
sets = "options.size"
values = ["4KiB", "64KiB", "1MiB"]
[factors.workers]
sets = "options.workers"
values = [1, 16]
[factors.direct]
sets = "options.direct"
values = [true, false]
"""


def plan(text: str, *assignments: str) -> Plan:
    return read_plan(text, "plan.toml", "plan", assignments)


def keys(text: str, *assignments: str) -> list[str]:
    return [cell.key for cell in cells_of(plan(text, *assignments))]


def complaint(text: str, *assignments: str) -> str:
    with pytest.raises(Usage) as found:
        cells_of(plan(text, *assignments))
    assert "\n" not in str(found.value)
    return str(found.value)


def nothing(cell: Cell, blocks: int) -> list[float]:
    return []


@pytest.mark.promise(26)
def test_a_misspelt_verdict_is_refused_with_the_nearest() -> None:
    text = 'target = "one-sata"\nworkload = "oltp"\n' + FACTORS + '[trials]\ntolerate = ["errors", "cache-shar"]\n'
    assert complaint(text) == "plan.toml:14: trials.tolerate: no verdict `cache-shar`; did you mean `cache-share`?"


# --- combinations ---


def test_all_combinations_are_tried_unless_the_plan_says_otherwise() -> None:
    assert len(keys(FACTORS)) == 3 * 2 * 2
    assert len(set(keys(FACTORS))) == 3 * 2 * 2


def test_a_plan_without_factors_has_one_cell() -> None:
    assert keys("about = 'the same again'") == [""]


def test_one_at_a_time_leaves_the_baseline_at_one_place_at_most() -> None:
    text = FACTORS + '[design]\nkind = "one-at-a-time"\nbaseline = { size = "64KiB" }'
    found = [dict(cell.levels) for cell in cells_of(plan(text))]
    base = {"size": "64KiB", "workers": "1", "direct": "true"}
    assert found[0] == base
    assert len(found) == 1 + 2 + 1 + 1
    assert all(sum(cell[name] != base[name] for name in base) == 1 for cell in found[1:])


def test_listed_cells_take_the_first_level_of_factors_they_do_not_name() -> None:
    text = FACTORS + "[design]\ncells = [{ size = '1MiB' }, { workers = 16, direct = false }]"
    assert keys(text) == ["direct=true,size=1MiB,workers=1", "direct=false,size=4KiB,workers=16"]


def test_an_exclusion_takes_away_what_it_matches_in_every_factor_it_names() -> None:
    text = FACTORS + "[design]\nexclude = [{ size = ['4KiB', '64KiB'], workers = 16 }]"
    found = keys(text)
    assert len(found) == 12 - 2 * 2
    assert not [one for one in found if "workers=16" in one and "size=1MiB" not in one]


def test_excluding_everything_is_an_error() -> None:
    assert "no combination is left" in complaint(FACTORS + "[design]\nexclude = [{ direct = [true, false] }]")


def test_a_level_that_makes_a_factor_meaningless_is_tried_once() -> None:
    text = """
    [factors.array.levels]
    one = { target = "one-sata", ignores = ["chunk"] }
    four = { target = "four-sata-md" }
    [factors.chunk]
    sets = "machine.array.chunk"
    values = ["64KiB", "1MiB"]
    """
    found = cells_of(plan(text))
    assert [cell.key for cell in found] == ["array=one,chunk=-", "array=four,chunk=64KiB", "array=four,chunk=1MiB"]
    assert found[0].settings.machine == {}


def test_braces_stand_for_the_level_of_a_factor_or_a_multiple_of_it() -> None:
    text = """
    setup = ["note", "{chunk}", "{target}"]
    options = { size = "{chunk*3}" }
    [factors.chunk]
    sets = "machine.array.chunk"
    values = ["64KiB"]
    """
    found = cells_of(plan(text))[0].settings
    assert found.options["size"] == str(3 * 65536)
    assert found.setup == (("note", "64KiB", "{target}"),)


levels = some.lists(some.integers(1, 5), min_size=2, max_size=6)


@settings(max_examples=40, deadline=None)
@given(levels, some.integers(0, 9), some.data())
def test_every_two_levels_of_two_factors_meet_in_a_pairwise_design(
    sizes: list[int], seed: int, data: some.DataObject
) -> None:
    factors = [[f"{name}{level}" for level in range(size)] for name, size in enumerate(sizes)]
    everything = list(product(*factors))
    banned = set(data.draw(some.lists(some.sampled_from(everything), max_size=4)))

    def allowed(row: object) -> bool:
        return tuple(row) not in banned  # type: ignore[arg-type]

    rows = covering(factors, allowed, seed)
    possible = {pair for row in everything if allowed(row) for pair in combinations(row, 2)}
    met = {pair for row in rows for pair in combinations(row, 2)}
    assert met == possible
    assert not [row for row in rows if not allowed(row)]
    assert len(rows) <= len(everything)


def test_a_pairwise_design_is_far_smaller_than_a_full_one() -> None:
    factors = [[f"{name}{level}" for level in range(4)] for name in range(8)]
    assert len(covering(factors, lambda row: True, 1)) <= 40 < 4**8


# --- order ---

orders = some.sampled_from(["blocks", "random", "sequential"])


@settings(max_examples=40, deadline=None)
@given(orders, some.integers(1, 6), some.integers(0, 100), some.booleans())
def test_whatever_the_order_every_cell_has_its_trials(order: str, count: int, seed: int, until: bool) -> None:
    within = "\nwithin = '1%'\nat_most = 8" if until and count > 1 else ""
    made = plan(f"seed = {seed}\n{FACTORS}\n[trials]\norder = '{order}'\ncount = {count}{within}")
    cells = cells_of(made)
    trials = [trial for batch in Schedule(made, cells).batches(nothing) for trial in batch]
    blocks = 8 if within else count
    assert Counter((one.cell.key, one.block) for one in trials) == Counter(
        (cell.key, block) for cell in cells for block in range(1, blocks + 1)
    )


@settings(max_examples=40, deadline=None)
@given(some.integers(1, 6), some.integers(0, 1000))
def test_in_blocks_each_cell_comes_once_before_any_comes_again(count: int, seed: int) -> None:
    made = plan(f"seed = {seed}\n{FACTORS}\n[trials]\ncount = {count}")
    cells = cells_of(made)
    (trials,) = Schedule(made, cells).batches(nothing)
    orders = []
    for block in range(count):
        part = trials[block * len(cells) : (block + 1) * len(cells)]
        assert {one.block for one in part} == {block + 1}
        assert sorted(one.cell.number for one in part) == list(range(len(cells)))
        orders.append([one.cell.number for one in part])
    if count > 3:
        assert len({tuple(one) for one in orders}) > 1  # each block has an order of its own


def test_the_order_follows_from_the_seed() -> None:
    def order(seed: int) -> list[str]:
        made = plan(f"seed = {seed}\n{FACTORS}")
        return [one.cell.key for batch in Schedule(made, cells_of(made)).batches(nothing) for one in batch]

    assert order(1) == order(1) != order(2)


def test_a_cell_that_is_known_well_enough_is_left_alone_and_stays_so() -> None:
    made = plan(FACTORS + "[trials]\ncount = 3\nwithin = '5%'\nat_most = 7\nmetric = 'iops'")
    cells = cells_of(made)
    sure = {cell.key: [100.0, 101.0, 99.0, 500.0, 900.0, 1.0, 1.0] for cell in cells[:6]}
    unsure = {cell.key: [100.0, 200.0, 50.0, 100.0, 300.0, 10.0, 1.0] for cell in cells[6:]}
    found = {**sure, **unsure}
    trials = [
        one for batch in Schedule(made, cells).batches(lambda cell, blocks: found[cell.key][:blocks]) for one in batch
    ]
    counts = Counter(one.cell.key for one in trials)
    assert {counts[key] for key in sure} == {3}
    assert {counts[key] for key in unsure} == {7}


# --- --set ---


def test_any_key_can_be_set_and_the_usual_ones_have_short_names() -> None:
    found = plan(FACTORS, "trials=7", "size=4KiB,8KiB", "seconds=3", "design=pairwise", "target=one-sata", "seed=9")
    assert (found.trials.count, found.seed, found.always.target) == (7, 9, "one-sata")
    assert found.factor("size").labels == ["4KiB", "8KiB"]
    assert found.always.options == {"seconds": "3"}
    assert found.design.kind == "pairwise"


def test_a_factor_of_named_levels_can_be_cut_down_to_some() -> None:
    found = open_plan("md-matrix", ["array=raid5,one-drive", "factors.chunk.values=['4KiB']"])
    assert found.factor("array").labels == ["one-drive", "raid5"]
    assert found.factor("chunk").labels == ["4KiB"]


# --- what is wrong, where, what to do ---


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[trials]\nmetric = 'iosp'", "plan.toml:2: trials.metric: no metric `iosp`; did you mean `iops`?"),
        ("abuot = 'x'", "plan.toml:1: unknown key `abuot`; did you mean `about`?"),
        ("\n[trials]\ncuont = 3", "plan.toml:3: unknown key `cuont` in [trials]; did you mean `count`?"),
        ("[trials]\ncount = 'x'", 'plan.toml:2: trials.count: expected a whole number, found "x"'),
        ("[trials]\ncount = 0", "plan.toml:2: trials.count: 0 is outside 1 to 10000"),
        ("[trials]\nwithin = '200%'", "plan.toml:2: trials.within: 200% is outside 0% to 100%"),
        ("[options]\nsiez = '4KiB'", "plan.toml:2: options.siez: no workload key `siez`; did you mean `size`?"),
        ("[knobs]\nread_ahaed_kb = 4", "plan.toml:2: knobs.read_ahaed_kb: "),
        ("[knobs]\nread_ahead_kb = 'much'", "plan.toml:2: knobs.read_ahead_kb: read_ahead_kb=much: not a value"),
        ("[factors.a]\nvalues = [1]", "plan.toml:1: factors.a: it sets nothing"),
        ("[factors.a]\nsets = 'sise'\nvalues = [1]", "plan.toml:2: factors.a.sets: `sise` cannot be set"),
        ("[factors.a]\nsets = 'options.sise'\nvalues = [1]", "did you mean `size`?"),
        ("[factors.a]\nsets = 'options.size'\nvalues = []", "plan.toml:3: factors.a.values: expected a list"),
        (
            "[factors.a]\nsets = 'options.size'\nvalues = [4, 4]",
            "plan.toml:3: factors.a.values: `4` is given twice",
        ),
        ("setup = 'rm -rf /'", "plan.toml:1: setup: a command is a list of its arguments"),
        ("a = 1\na = 2", "plan.toml:2: not TOML"),
        (FACTORS + "[design]\nexclude = [{ sise = '4KiB' }]", "no factor `sise`; did you mean `size`?"),
        (FACTORS + "[design]\nexclude = [{ size = '4Kib' }]", "no level `4Kib`; did you mean `4KiB`?"),
        (FACTORS + "[design]\nkind = 'ful'", "`ful` is not known; did you mean `full`?"),
        ("[filesystem]\ntype = 'ntfs'", "plan.toml:2: filesystem.type: `ntfs` is not known"),
        ('[load]\ncommand = "a \'b"', "plan.toml:2: load.command: cannot be split"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(text: str, said: str) -> None:
    assert said in complaint(text)


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("trials", "not KEY=VALUE"),
        ("trails=3", "unknown key `trails`; did you mean `trials`?"),
        ("trials.cuont=3", "`set=`: unknown key `cuont` in [trials]; did you mean `count`?"),
        ("size=[1", "not a list or table"),
    ],
)
def test_a_mistake_in_a_set_value_is_reported_as_such(assignment: str, said: str) -> None:
    assert said in complaint(FACTORS, assignment)


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("machine.queue.schedulr=bfq", "did you mean `scheduler`?"),
        ("machine.drive.7.queue_depth=4", "the machine file has 1 of them"),
        ("knobs.read_ahead_kb=8", "a modelled machine has no knob `read_ahead_kb`"),
        ("workload=randmoio", "did you mean"),
        ("options.size=0", "size"),
        ("setup=['true']", "setup: a modelled machine does not have this"),
        ("load.command=true", "load.command: a modelled machine does not have this"),
        ("target=/nowhere/at/all.toml", "no such file"),
        ("target=/dev/nowhere", "target /dev/nowhere: no such device, file or machine"),
    ],
)
def test_every_cell_is_checked_before_anything_runs(assignment: str, said: str) -> None:
    with pytest.raises((Usage, _core.ConfigError)) as found:
        ready(SIXTY, assignment)
    assert said in str(found.value)
    assert "\n" not in str(found.value)


def assert_taken_or_told(text: str, *assignments: str) -> None:
    """Any other exception is a defect."""
    said = "fine"
    try:
        found = plan(text, *assignments)
        assume(sum(len(factor.levels) for factor in found.factors) < 200)
        made_ready(found)
    except (Usage, _core.ConfigError, TargetError) as error:
        said = str(error)
    assert said
    assert "\n" not in said


pieces = some.sampled_from([chr(code) for code in (*range(32, 127), 10, 9, 0, 127, 0x20AC, 0x1F600)])
sources = [SIXTY, FACTORS, *(open_plan(name).text for name in ("sched-shootout", "untuned-vs-tuned", "ioprio-mix"))]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some.sampled_from(sources), some.data())
def test_a_malformed_plan_is_one_line_and_never_a_traceback(text: str, data: some.DataObject) -> None:
    for _ in range(data.draw(some.integers(1, 4))):
        at = data.draw(some.integers(0, len(text)))
        length = data.draw(some.integers(0, 12))
        text = text[:at] + data.draw(some.text(pieces, max_size=6)) + text[at + length :]
    assert_taken_or_told(text)


scalars = some.one_of(some.none(), some.booleans(), some.integers(-5, 5), some.floats(-2, 2), some.text(max_size=5))
groups = some.lists(scalars, max_size=3) | some.dictionaries(some.text(max_size=4), scalars, max_size=3)
nested = some.lists(groups, max_size=2) | some.dictionaries(some.text(max_size=4), groups, max_size=2)
values = scalars | groups | nested
places = some.sampled_from(
    ["about", "seed", "target", "workload", "options", "knobs", "machine", "filesystem", "create", "setup", "teardown",
     "load", "factors", "design", "trials", "factors.a", "factors.a.levels", "factors.a.values", "design.exclude",
     "design.cells", "design.baseline", "trials.within", "trials.relative_to", "load.interval", "setup", "options.size",
     "factors.size.sets", "factors.size.only", "trials.order", "load.command", "filesystem.size", "knobs.vm"]
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(places, values)
def test_a_value_of_any_kind_at_any_place_is_accepted_or_an_error_of_one_line(place: str, value: object) -> None:
    def toml(one: object) -> str:
        match one:
            case dict():
                return "{" + ", ".join(f"{json.dumps(name)} = {toml(inner)}" for name, inner in one.items()) + "}"
            case list():
                return "[" + ", ".join(map(toml, one)) + "]"
            case None:
                return "1979-05-27"
            case _:
                return json.dumps(one)

    assert_taken_or_told(FACTORS, f"{place}={toml(value)}")
