"""Parts that the experiments of docs/questions share: machines, loads, a table and a chart.

Each experiment is a file beside this one. `python examples/questions/NAME.py` prints its table, `--chart FILE.svg`
draws it, `--kernel` runs the real kernel on the modelled drives (`spindle help lab`) where the machine allows it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spindle
from spindle.library.plot import Plot
from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.validation.published import md_stream

ARGUMENTS = argparse.ArgumentParser()
ARGUMENTS.add_argument("--chart", help="draw a chart to this file, .svg or .png")
ARGUMENTS.add_argument("--kernel", action="store_true", help="run the real kernel on the modelled drives")

OLD = f"""[host]
kernel = "{md_stream.HOST.kernel}"
memory = "{md_stream.HOST.memory}"
copy_rate = "{md_stream.HOST.copy_rate}"
ask_page = "{md_stream.HOST.ask_page}"
send_page = "{md_stream.HOST.send_page}"
stripe_page = "{md_stream.HOST.stripe_page}"
"""
"""The host of the published streams."""


@dataclass
class Experiment:
    """A table of numbers: one column of names or sizes, then columns of figures."""

    title: str
    first: str
    """Head of the first column."""
    unit: str
    """Unit of the figures, for the axis of the chart."""
    columns: Sequence[str]
    rows: list[tuple[str, list[float]]] = field(default_factory=list)
    shown: Callable[[float], str] = "{:.2f}".format
    drawn: Sequence[str] | None = None
    """Columns in the chart; None: all."""
    bars: bool = False
    """The rows are names, not steps of a size: bars instead of lines."""

    def add(self, name: str, *figures: float) -> None:
        """Add a row."""
        self.rows.append((name, list(figures)))

    def finish(self, chart: str | None) -> None:
        """Print the table, and draw the chart if one is wanted."""
        heads = [Column(self.first, words=True), *map(Column, self.columns)]
        print(self.title)
        for line in table(heads, [[name, *map(self.shown, figures)] for name, figures in self.rows], Style()):
            print(line)
        if chart is not None:
            Plot([self._chart()], self.title).save(chart, force=True)

    def _chart(self) -> Chart:
        drawn = list(self.columns if self.drawn is None else self.drawn)
        values = [
            {"row": name, "column": column, "figure": figure}
            for name, figures in self.rows
            for column, figure in zip(self.columns, figures, strict=True)
            if column in drawn
        ]
        figure = parts.number("figure", self.unit)
        row: dict[str, Any] = {"field": "row", "type": "nominal", "sort": None, "title": self.first}
        if self.bars:
            column = {"field": "column", "type": "nominal", "sort": None}
            colour = parts.series("column", "", drawn, dashes=False)
            row["axis"] = {"labelLimit": 260}
            size: dict[str, Any] = {"height": 14 * len(drawn) * len(self.rows) + 40, "mark": "bar"}
            encoding = {"y": row, "yOffset": {**column, "scale": {"domain": drawn}}, "x": figure, **colour}
        else:
            row["axis"] = {"labelAngle": 0}
            size = {"height": parts.HEIGHT, "mark": {"type": "line", "point": True}}
            encoding = {"x": row, "y": figure, **parts.series("column", "", drawn)}
        specification = parts.whole(width=parts.WIDTH, data={"values": values}, encoding=encoding, **size)
        heads = [Column(self.first, words=True), *map(Column, self.columns)]
        rows = [[name, *map(self.shown, figures)] for name, figures in self.rows]
        return Chart("figures", self.unit, "", specification, Sheet(self.title, heads, rows))


def run(machine: str, load: str = "seeker", *, kernel: bool = False, **keys: Any) -> spindle.Result:
    """Run a load on a machine, given as TOML."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.toml"
        path.write_text(machine)
        return spindle.run(load, path, kernel=kernel, **keys)


def stream(machine: str, write: bool = False, *, kernel: bool = False, length: str = "512MiB", **keys: Any) -> float:
    """Bytes per second of one stream of 1 MiB through the page cache, as dd does it."""
    more: dict[str, Any] = {"write_fraction": 1, "end_fsync": True} if write else {}
    options: dict[str, Any] = {"seconds": "none", "bytes": length, "direct": False, **more, **keys}
    return run(machine, "sdd-read", kernel=kernel, **options).bytes_per_s


def drives(model: str, count: int = 1, **keys: str | int) -> str:
    """A `[[drive]]` table."""
    lines = [f"{key} = {_toml(value)}" for key, value in keys.items()]
    return "\n".join(["[[drive]]", f"model = '{model}'", f"count = {count}", *lines, ""])


def array(level: str, layout: str = "", chunk: str = "", **keys: object) -> str:
    """An `[array]` table."""
    given = {"level": level, "layout": layout, "chunk": chunk, **keys}
    return "\n".join(
        ["[array]", *(f"{key} = {_toml(value)}" for key, value in given.items() if value not in ("", None)), ""]
    )


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
