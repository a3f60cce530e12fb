"""The front of a design: latency and probability of a loss over cost."""

from __future__ import annotations

from typing import Any

from spindle.design.answer import DesignAnswer
from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.terminal.design import front_columns, front_rows, money

MOST_SERIES = 8


def chart(found: DesignAnswer) -> Chart | None:
    """Return the chart; None: there is no front."""
    if not found.front or found.recommendation is None:
        return None
    distinct = found.distinct_front
    names = list(dict.fromkeys(one.arrays[0].drive for one in found.front))[:MOST_SERIES]
    values: list[dict[str, Any]] = [
        {
            "cost": one.cost, "p99": one.p99_ns / 1e6, "loss": max(one.yearly_loss, 1e-15), "watts": one.watts,
            "drive": one.arrays[0].drive if one.arrays[0].drive in names else "other", "design": one.words,
            "best": one == found.recommendation, "distinct": one in distinct,
        }
        for one in found.front
    ]  # fmt: skip
    unit = f" ({found.currency})" if found.currency else " (price)"
    costs = [float(value["cost"]) for value in values]
    x = parts.number("cost", f"Cost of all drives{unit}", zero=False, scale={"domain": _around(costs)})
    losses = [float(value["loss"]) for value in values]
    panels = [
        _panel(x, parts.rates("p99", "Largest p99 (ms)", [float(value["p99"]) for value in values]), names),
        _panel(
            x,
            parts.number(
                "loss", "Loss of data (probability a year)", log=10, axis={"values": _decades(losses), "format": "~e"}
            ),
            names,
        ),
    ]
    return Chart(
        key="front",
        title="Designs that no other one beats",
        says="Each point meets the need in its confirming runs; a small one differs from a cheaper one by less than is "
        "known. The ring is the recommendation, the cheapest: "
        f"{money(found.recommendation.cost, found.currency)}, {found.recommendation.words}.",
        specification=parts.whole(data={"values": values}, vconcat=panels, spacing=20),
        sheet=Sheet("Designs of the front", front_columns(found), front_rows(found, distinct), folded=True),
    )


def _around(costs: list[float]) -> list[float]:
    """The ends of the axis, with room for the marks."""
    room = max(0.05 * (max(costs) - min(costs)), 0.02 * max(costs))
    return [max(0.0, min(costs) - room), max(costs) + room]


def _decades(values: list[float]) -> list[float]:
    exponents = [int(f"{value:e}".rpartition("e")[2]) for value in values]
    return [float(f"1e{exponent}") for exponent in range(min(exponents), max(exponents) + 2)]


def _panel(x: dict[str, Any], y: dict[str, Any], names: list[str]) -> dict[str, Any]:
    marks = parts.series("drive", "Drive", names, dashes=False)
    weight = {
        "size": {"condition": {"test": "datum.distinct", "value": 70}, "value": 12},
        "opacity": {"condition": {"test": "datum.distinct", "value": 1}, "value": 0.5},
    }
    ring = {"type": "point", "shape": "circle", "size": 320, "filled": False, "stroke": "@ink", "strokeWidth": 1.5}
    return {
        "width": parts.WIDTH,
        "height": parts.HEIGHT,
        "layer": [
            {"mark": {"type": "point", "filled": True}, "encoding": {"x": x, "y": y, **marks, **weight}},
            {"transform": [{"filter": "datum.best"}], "mark": {**ring, "aria": False}, "encoding": {"x": x, "y": y}},
        ],
    }
