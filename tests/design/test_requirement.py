"""Requirement and price files: what is read, and the one line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

import spindle
from spindle.design.example import EXAMPLE
from spindle.design.prices import read_prices
from spindle.design.reading import requirement_of, requirement_of_keys
from spindle.design.requirement import State

LOAD = '[[load]]\nrate = "100 IOPS"\n'


def test_the_example_is_read_as_it_says() -> None:
    found = requirement_of(EXAMPLE, "example")
    assert (found.usable_bytes, found.survive, found.limits.bays) == (4 * 10**12, 2, 16)
    assert found.needed_bytes == round(4e12 * 1.2**3)
    assert found.limits.rebuild_hours == pytest.approx(72)
    queries, backup = found.loads
    assert queries.rate_iops == 600
    assert queries.bounds[State.REBUILDING] == {"p99": 200_000_000}
    assert queries.parsed()[0]["mix"]["write"] == pytest.approx(0.2)
    assert (backup.period, backup.least_bytes_per_s, backup.rate_iops) == ("night", 40_000_000, 0)


def test_options_of_the_common_case_give_the_same_as_a_file() -> None:
    keys = {
        "usable": "12TB",
        "iops": "2000",
        "mix": "70/30",
        "size": "8KiB",
        "p99": "20ms",
        "survive": "2",
        "bays": "16",
    }
    text = """
    usable = "12TB"
    survive = 2
    limits = { bays = 16 }
    [[load]]
    rate = 2000
    mix = "70/30"
    size = "8KiB"
    p99 = "20ms"
    """
    assert requirement_of_keys(keys) == requirement_of(text, "design")


def test_users_are_workers_with_a_rate_each() -> None:
    found = requirement_of('usable = "1TB"\n[[load]]\nusers = 200\neach = "0.5 MB/s"\nsize = "1MiB"\n', "x")
    assert found.loads[0].rate_iops == pytest.approx(200 * 0.5e6 / 2**20)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LOAD, "need.toml: usable: is missing"),
        ('usable = "1TB"\n', "need.toml: load: is missing"),
        ('usable = "1TB"\nsurvives = 2\n' + LOAD, "need.toml:2: unknown key `survives`; did you mean `survive`?"),
        ('usable = "12T"\n' + LOAD, "need.toml:1: usable:"),
        ('usable = "1TB"\n[limits]\nbudgets = 3\n' + LOAD, "need.toml:3: unknown key `budgets` in [limits]; did"),
        ('usable = "1TB"\n[limits]\nyearly_loss = 2\n' + LOAD, "need.toml:3: limits.yearly_loss: expected a number"),
        ('usable = "1TB"\n[space]\nlevels = ["raid7"]\n' + LOAD, "need.toml:3: space.levels: no level `raid7`"),
        ('usable = "1TB"\n[space]\ndrives = ["WD10EACX"]\n' + LOAD, "did you mean `WD10EACS`?"),
        ('usable = "1TB"\n[space]\nchunks = ["48KiB"]\n' + LOAD, "not a power of two"),
        ('usable = "1TB"\n[growth]\nload = "10%"\n' + LOAD, "growth.years: is missing"),
        ('usable = "1TB"\n' + LOAD + 'p99 = "20"\np98 = "2ms"\n', "need.toml:5: unknown key `p98` in [load]"),
        ('usable = "1TB"\n' + LOAD + 'mix = "70/40"\n', "need.toml:4: load.mix: `70/40` is not a share"),
        ('usable = "1TB"\n' + LOAD + 'pattern = "zpif"\n', "need.toml:4: load.pattern:"),
        ('usable = "1TB"\n' + LOAD + 'least_iops = 5\n', "need.toml:4: load.least_iops: the load has a rate"),
        ('usable = "1TB"\n' + LOAD + 'hot = "apart"\n', "need.toml:4: load.hot: needs pattern ="),
        ('usable = "1TB"\n[[load]]\npattern = "hot-set"\nhot = "apart"\n', "need.toml:4: load.hot: needs a load"),
        ('usable = "1TB"\n' + LOAD + 'pattern = "hot-set"\nhot = "yes"\n', "need.toml:5: load.hot: `yes` is not known"),
        ('usable = "1TB"\n' + LOAD + 'degraded = "40ms"\n', "need.toml:4: load.degraded: expected the bounds"),
        ('usable = "1TB"\n[[load]]\nworkload = "olpt"\n', "need.toml:3: load.workload:"),
        ('usable = "1TB"\n[[load]]\nworkload = "bonnie"\n', "has phases"),
        ('usable = "1TB"\n' + LOAD + 'apart = "1GB"\n', "one must stay on the data's array"),
        ('usable = "0"\n' + LOAD, "need.toml:1: usable: must be above 0"),
        ('usable = "1TB"\n' + LOAD + "p99 = 0\n", "need.toml:4: load.p99: must be above 0"),
        ('usable = "1TB"\n' + LOAD + "degraded = { p99 = 0 }\n", "load.degraded.p99: must be above 0"),
        ('usable = "1TB"\n[limits]\nrebuild = "0h"\n' + LOAD, "need.toml:3: limits.rebuild: must be above 0"),
        ('usable = "1TB"\n' + LOAD + 'size = "1B"\n', "need.toml:4: load.size: a request size of 1 bytes"),
        ('usable = "1TB"\n[space]\nregions = ["1.2.3%"]\n' + LOAD, "`1.2.3%` is not a share of a drive"),
        ('usable = "1TB"\n[[load]]\nname = "a"\n[[load]]\nname = "b"\np99 = 0\n', "need.toml:6: load.p99"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(text: str, says: str) -> None:
    with pytest.raises(spindle.Error) as caught:
        requirement_of(text, "need.toml")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model,cost\n", ":1: no column `price`"),
        ("model,price\nWD10EACZ,50\n", ":2: no drive `WD10EACZ` in the catalogue; did you mean `WD10EACS`?"),
        ("model,price\nWD10EACS,fifty\n", ":2: `fifty` is not a price"),
        ("model,price\nWD10EACS,-5\n", ":2: a price is above 0"),
        ("model,price\nWD10EACS\n", ":2: 1 columns"),
        ("model,price\nWD10EACS,5\nWD10EACS,6\n", ":3: a second price"),
        ("model,price,currency\nWD10EACS,5,EUR\nWD3000GLFS,6,USD\n", ":3: a second currency, USD"),
        ("# nothing\n", "has no price"),
        ("", "has no price"),
        ("model,price\nWD10EACS,0\n", ":2: a price is above 0"),
        ("model,price\nWD10EACS,nan\n", ":2: a price is above 0"),
        ("model,price\nWD10EACS,1e300\n", ":2: a price is above 0 and at most 1e+09"),
        ("model;price\nWD10EACS;50\n", ":1: no column `model`; the first line names them, with a comma"),
        ("model,price\n" + "x" * 200_000 + ",5\n", ":2: not CSV: field larger"),
    ],
)
def test_a_mistake_in_prices_is_one_line_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(text)
    with pytest.raises(spindle.Error) as caught:
        read_prices(path)
    assert says in str(caught.value)


def test_choices_that_are_there_twice_are_tried_once() -> None:
    space = (
        'drives = ["WD10EACS", "WD10EACS"]\nlevels = ["raid5", "raid5"]\nspares = [1, 1]\nregions = ["50%", "50%"]\n'
    )
    found = requirement_of('usable = "1TB"\n[space]\n' + space + LOAD, "need.toml").space
    assert (found.drives, found.levels, found.spares, found.regions) == (("WD10EACS",), ("raid5",), (1,), (0.5,))


def test_prices_of_a_spreadsheet_are_read(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b"\xef\xbb\xbfmodel,price\r\nWD10EACS,50\r\n")
    assert read_prices(tmp_path / "p.csv").of == {"WD10EACS": 50}


def test_prices_are_read_from_csv_and_toml(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("# remark\nprice,model,currency\n50,WD10EACS,EUR\n\n80.5,WD3000GLFS,EUR\n")
    (tmp_path / "p.toml").write_text('currency = "EUR"\n[prices]\nWD10EACS = 50\nWD3000GLFS = 80.5\n')
    csv, toml = (read_prices(tmp_path / name) for name in ("p.csv", "p.toml"))
    assert csv.of == toml.of == {"WD10EACS": 50, "WD3000GLFS": 80.5}
    assert csv.currency == toml.currency == "EUR"
