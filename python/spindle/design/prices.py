"""Prices of drives: the user's file, CSV (`model,price`) or TOML. There is no other source of prices."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from spindle import _core
from spindle.base.suggestions import meant
from spindle.run.document import Table, parse
from spindle.run.errors import Usage
from spindle.run.resolve import read_text

COLUMNS = ("model", "price")
BYTE_ORDER = "\ufeff"
"""Spreadsheets write it at the beginning."""
MOST_PRICE = 1e9


@dataclass(frozen=True)
class Prices:
    """Price of each drive, in one currency."""

    of: dict[str, float]
    currency: str
    source: str


def read_prices(path: Path) -> Prices:
    """Read a price file. Raises Usage, one line with its place."""
    text = read_text(path, "prices", "a CSV file with the columns model,price").removeprefix(BYTE_ORDER)
    found = _toml(text, str(path)) if path.suffix.lower() == ".toml" else _csv(text, str(path))
    if not found.of:
        raise Usage(f"{path}: has no price; write a line `model,price` for each drive that can be bought")
    return found


def _csv(text: str, source: str) -> Prices:
    """Lines `model,price`, and `currency` if there is such a column: one for the whole file. # begins a remark."""
    prices: dict[str, float] = {}
    currencies: dict[str, int] = {}
    places: list[int] | None = None
    of_currency: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader(io.StringIO(line)))]
        except csv.Error as error:
            raise Usage(f"{source}:{number}: not CSV: {error}") from None
        if places is None:
            names = [cell.lower() for cell in cells]
            if missing := [name for name in COLUMNS if name not in names]:
                raise Usage(
                    f"{source}:{number}: no column `{missing[0]}`; the first line names them, with a comma: model,price"
                )
            places = [names.index(name) for name in COLUMNS]
            of_currency = names.index("currency") if "currency" in names else None
            continue
        if len(cells) <= max(places):
            raise Usage(f"{source}:{number}: {len(cells)} columns; model and price are needed")
        _add(prices, cells[places[0]], cells[places[1]], f"{source}:{number}")
        if of_currency is not None and of_currency < len(cells) and cells[of_currency]:
            currencies.setdefault(cells[of_currency], number)
    if len(currencies) > 1:
        other, number = list(currencies.items())[1]
        raise Usage(f"{source}:{number}: a second currency, {other}; convert all prices to one")
    return Prices(prices, next(iter(currencies), ""), source)


def _toml(text: str, source: str) -> Prices:
    """A table `[prices]` of models, and `currency`."""
    root = Table(parse(text, source), (), text, source)
    currency = root.word("currency") or ""
    root.word("about"), root.take("date")
    table = root.table("prices")
    root.finish()
    prices: dict[str, float] = {}
    for model in table.left():
        value = table.take(model)
        try:
            _add(prices, model, str(value), source)
        except Usage as error:
            table.fail(model, str(error).partition(": ")[2])
    return Prices(prices, currency, source)


def _add(prices: dict[str, float], model: str, price: str, place: str) -> None:
    known = _core.drive_names()
    if model not in known:
        hint = meant(model, known, "`spindle drives` lists the catalogue")
        raise Usage(f"{place}: no drive `{model}` in the catalogue; {hint}")
    try:
        value = float(price)
    except ValueError:
        raise Usage(f"{place}: `{price}` is not a price; write a number such as 289.00") from None
    if not 0 < value <= MOST_PRICE:
        raise Usage(f"{place}: a price is above 0 and at most {MOST_PRICE:.0e}, not {price}")
    if model in prices:
        raise Usage(f"{place}: a second price of `{model}`; leave one")
    prices[model] = value
