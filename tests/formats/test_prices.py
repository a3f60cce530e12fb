"""Files of prices: the example, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle import _core
from spindle.base.errors import ConfigError
from spindle.formats.prices import example, prices_of, read_prices

HEAD = "model,price,currency\n"


def test_the_example_can_be_read_and_says_what_it_is() -> None:
    prices = prices_of(example(), "example")
    assert prices.currency == "USD"
    assert set(prices.by_model) <= set(_core.drive_names())
    assert prices.of("ST20000NM007D") > 0
    assert "not current prices" in example().splitlines()[1]


def test_every_drive_on_sale_has_a_price_in_the_example() -> None:
    from spindle.base.offers import facts

    on_sale = {name for name in _core.drive_names() if facts(name).offer.afr}
    assert on_sale == set(prices_of(example(), "example").by_model)


def test_columns_in_another_order_spaces_and_comments_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes("\ufeff# mine\n\ncurrency, model ,price\nEUR,\tMG08ACA16TE , 249.90\n".encode())
    prices = read_prices(path)
    assert (prices.currency, prices.by_model) == ("EUR", {"MG08ACA16TE": 249.9})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "p.csv: no prices"),
        (HEAD, "p.csv: no prices"),
        ("model,price\n", "p.csv:1: the header lacks the column `currency`"),
        ("MG08ACA16TE,249,EUR\n", "p.csv:1: the header lacks the column `model`"),
        (f"# a\n{HEAD}MG08ACA16TE,249\n", "p.csv:3: 2 columns, but the header has 3"),
        (f"{HEAD}MG08ACA16TX,249,EUR\n", "did you mean MG08ACA16TE?"),
        (f"{HEAD}floppy,249,EUR\n", "`spindle drives` lists the names"),
        (f"{HEAD}MG08ACA16TE,249 EUR,EUR\n", "p.csv:2: column `price`: '249 EUR' is not a number"),
        (f"{HEAD}MG08ACA16TE,-1,EUR\n", "must be above 0"),
        (f"{HEAD}MG08ACA16TE,nan,EUR\n", "must be above 0"),
        (f"{HEAD}MG08ACA16TE,249,Euro\n", "column `currency`: 'Euro'"),
        (f"{HEAD}MG08ACA16TE,249,EUR\nMG09ACA18TE,300,USD\n", "p.csv:3: column `currency`: USD, but EUR above"),
        (f"{HEAD}MG08ACA16TE,249,EUR\nMG08ACA16TE,250,EUR\n", "p.csv:3: column `model`: MG08ACA16TE has a price"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_column(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        prices_of(text, "p.csv")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_not_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_prices(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"model,price\xff\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_prices(tmp_path / "bytes.csv")
    with pytest.raises(ConfigError, match="no price of MG09ACA18TE; add a line"):
        prices_of(f"{HEAD}MG08ACA16TE,249,EUR\n", "p.csv").of("MG09ACA18TE")
