"""Charts for notebooks: Vega-Lite specifications, as SVG, in files and as altair charts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spindle.library.outputs import output_of
from spindle.library.table import needed
from spindle.report.charts import parts, theme
from spindle.report.document.model import Document, Section
from spindle.report.render import drawing
from spindle.report.render.html import html
from spindle.run.errors import Usage

if TYPE_CHECKING:
    from spindle.host.outputs import Output
    from spindle.report.document.model import Chart

PICTURES = ("png", "svg")
PAGE = "html"


class Plot:
    """One or more charts below each other. A notebook shows them; `save` writes a picture."""

    def __init__(self, charts: Sequence[Chart], title: str) -> None:
        if not charts:
            raise Usage(f"{title}: there is nothing to draw in it")
        self.charts = charts
        self.title = title

    @property
    def specification(self) -> dict[str, Any]:
        """Vega-Lite 5, with the colours of a light background."""
        panels = [chart.specification for chart in self.charts]
        whole = panels[0] if len(panels) == 1 else parts.whole(vconcat=[_inner(each) for each in panels])
        config = {**theme.CONFIG, "background": "@ground"}
        found: dict[str, Any] = theme.coloured({**whole, "config": config}, theme.LIGHT)
        return found

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a picture, `.png` or `.svg`, or a page with its table, `.html`. `force`: replace any regular file."""
        self.write(output_of(path, "chart", "`path=`", force=force))

    def write(self, output: Output) -> None:
        """Write a picture to an output whose name ends in .png or .svg, or a page (.html) that a telephone can read."""
        ending = ending_of(output)
        if ending == PAGE:
            output.save(html(Document(self.title, "", None, [Section("charts", "Charts", self.charts)])))
        else:
            output.save(drawing.picture(self.charts, ending, self.title))

    def to_altair(self) -> Any:
        """An `altair.Chart`, to be changed further. Needs altair."""
        return needed("altair", "notebook").Chart.from_dict(self.specification)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"image/svg+xml": drawing.picture(self.charts, "svg", self.title).decode(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Plot: {'; '.join(chart.title for chart in self.charts)}>"


def ending_of(output: Output) -> str:
    """The kind of picture that a name asks for. Raises Usage, so that no long work ends in it."""
    ending = output.path.suffix[1:].lower()
    if ending not in (*PICTURES, PAGE):
        raise Usage(f"{output.path}: not the name of a picture; let it end in .png, .svg or .html")
    return ending


def _inner(specification: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in specification.items() if name not in ("$schema", "config")}
