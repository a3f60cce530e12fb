"""`spindle.design`: the cheapest drives and array that meet a need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from spindle.cluster.choice import Choice, choice_of
from spindle.cluster.sharing import opened
from spindle.design import answer
from spindle.design.commands import MADE_BY
from spindle.design.design import design as answer_of
from spindle.design.example import EXAMPLE
from spindle.design.prices import read_prices
from spindle.design.reading import read_requirement, requirement_of, requirement_of_keys
from spindle.library.arguments import public
from spindle.library.plot import Plot
from spindle.library.session import Progress, watched
from spindle.library.shown import Printable
from spindle.report.terminal.style import Style
from spindle.run.errors import Usage

Name = str | os.PathLike[str]


class Design(answer.DesignAnswer, Printable, frozen=True):
    """The answer: the recommendation, the front, what decides, what would break it. `print` shows it as a page."""

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.design import design_page

        return design_page(self, style)

    def full_page(self, style: Style) -> list[str]:
        """The page with every design of the front."""
        from spindle.report.terminal.design import design_page

        return design_page(self, style, whole_front=True)

    def plot(self) -> Plot:
        """The front as a chart. Raises `spindle.Error` if nothing meets the need."""
        from spindle.report.charts.design import chart

        found = chart(self)
        if found is None:
            raise Usage("nothing meets the need: there is no front to draw")
        return Plot([found], self.about or "Design")

    def machine(self, array: str = "data") -> str:
        """The machine file of an array of the recommendation, for `spindle.run` and `spindle.predict`. Raises
        `spindle.Error`."""
        if array not in self.machines:
            have = f"its arrays are {', '.join(self.machines)}" if self.machines else "nothing meets the need"
            raise Usage(f"`machine=`: there is no array `{array}`; {have}")
        return f"{MADE_BY}\n{self.machines[array]}"

    def __repr__(self) -> str:
        best = self.recommendation
        return f"<Design: {best.words if best is not None else 'nothing meets the need'}>"


@public
def design(
    requirement: Name,
    prices: Name,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress = False,
) -> Design:
    """Find the cheapest drives, level, layout and chunk that meet a need, by formulas and simulations.

    `requirement`: a TOML file (docs/reference/design.md), or its text if it has a line break. `prices`: a CSV file
    with the columns model,price, or a TOML file. `workers`, `cluster`: simulate in worker processes, or on a cluster of
    Dask at this address (docs/reference/cluster.md). `progress`: a live line on stderr. Nothing is executed. Raises
    `spindle.Error`.
    """
    return designed(requirement, prices, choice_of(workers, cluster), progress)


def designed(requirement: Name | Mapping[str, str], prices: Name, where: Choice, progress: Progress) -> Design:
    """The same at a place of choice. `requirement`: also the keys of the common case, one load, and its limits, as
    text. Raises `spindle.Error`."""
    if isinstance(requirement, Mapping):
        read = requirement_of_keys(requirement)
    else:
        text = os.fspath(requirement)
        read = requirement_of(text, "requirement") if "\n" in text else read_requirement(Path(text))
    of_prices = read_prices(Path(prices))
    with watched(progress) as watch, opened(where, watch) as place:
        found = answer_of(read, of_prices, watch, place)
    return Design(**{name: getattr(found, name) for name in found.__struct_fields__})


def example() -> str:
    """A requirement file with its remarks."""
    return EXAMPLE
