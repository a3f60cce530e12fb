"""Files of prices: CSV with the columns `model`, `price` and `currency`, and comment lines that begin with `#`.

Prices are the user's: Spindle ships none but an example (`spindle drives prices`).
"""

from __future__ import annotations

import csv
import difflib
import io
import math
from pathlib import Path

from msgspec import Struct

from spindle import _core
from spindle.base.errors import ConfigError

COLUMNS = ("model", "price", "currency")
MOST_BYTES = 4 << 20


class Prices(Struct, frozen=True):
    """Prices of drives by model."""

    currency: str
    """One for the whole file."""
    by_model: dict[str, float]
    """Price of one drive."""
    source: str
    """The file, for messages."""

    def of(self, model: str) -> float:
        """Return the price of a drive. Raises `ConfigError` if the file has none."""
        if model not in self.by_model:
            raise ConfigError(f"{self.source}: no price of {model}; add a line `{model},PRICE,{self.currency}`")
        return self.by_model[model]


def example() -> str:
    """Return the example file."""
    return _core.example_prices()


def read_prices(path: str | Path) -> Prices:
    """Read a file. Raises `ConfigError` with file, line, column and the way to correct it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; `spindle drives prices` prints an example") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{path}: longer than {MOST_BYTES >> 20} MiB, so it is not a file of prices")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None
    return prices_of(text, str(path))


def prices_of(text: str, source: str) -> Prices:
    """Return the prices of a text; `source` names it in messages. Raises `ConfigError`."""
    columns: list[str] | None = None
    currency = ""
    found: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv.reader(io.StringIO(line)))]
        if columns is None:
            columns = _header(cells, f"{source}:{number}")
            continue
        if len(cells) != len(columns):
            raise ConfigError(
                f"{source}:{number}: {len(cells)} columns, but the header has {len(columns)} ({', '.join(columns)})"
            )
        row = dict(zip(columns, cells, strict=True))
        model = _model(row["model"], found, f"{source}:{number}: column `model`")
        found[model] = _price(row["price"], f"{source}:{number}: column `price`")
        currency = _currency(row["currency"], currency, f"{source}:{number}: column `currency`")
    if columns is None or not found:
        raise ConfigError(f"{source}: no prices; `spindle drives prices` prints an example")
    return Prices(currency, found, source)


def _header(cells: list[str], place: str) -> list[str]:
    names = [cell.lower() for cell in cells]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise ConfigError(
            f"{place}: the header lacks the column `{missing[0]}`; the first line must be `{','.join(COLUMNS)}`"
        )
    return names


def _model(model: str, known: dict[str, float], place: str) -> str:
    names = _core.drive_names()
    if model not in names:
        near = difflib.get_close_matches(model, names, 1)
        hint = f"; did you mean {near[0]}?" if near else "; `spindle drives` lists the names"
        raise ConfigError(f"{place}: {model!r} is not a drive of the catalogue{hint}")
    if model in known:
        raise ConfigError(f"{place}: {model} has a price already; leave one of the two lines out")
    return model


def _price(text: str, place: str) -> float:
    try:
        price = float(text)
    except ValueError:
        raise ConfigError(f"{place}: {text!r} is not a number; write 349 or 349.90, without a currency") from None
    if not math.isfinite(price) or price <= 0:
        raise ConfigError(f"{place}: {text!r} is not a price; it must be above 0")
    return price


def _currency(text: str, so_far: str, place: str) -> str:
    if not (len(text) == 3 and text.isalpha() and text.isupper()):
        raise ConfigError(f"{place}: {text!r} is not a currency; write its three letters, such as EUR or USD")
    if so_far and text != so_far:
        raise ConfigError(f"{place}: {text}, but {so_far} above; use one currency in the whole file")
    return text
