"""A prediction: figures with their bands, what makes the bands, and what the model leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spindle.base import units
from spindle.prediction.beside import PredictedRun, Side
from spindle.prediction.look import PredictedLook
from spindle.prediction.model import Band, Cause, OperationFigures, Prediction
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table

SMALLEST = 0.005
"""Effects below this share are not worth a line."""
_LEFT_OUT = "not in the model, or not in the band:"
MEASURES: dict[str, tuple[Callable[[OperationFigures], Band], Callable[[float], str]]] = {
    "IOPS": (lambda of: of.iops, units.count),
    "throughput": (lambda of: of.bytes_per_s, units.rate),
    "mean": (lambda of: of.mean_ns, units.duration),
    "p99": (lambda of: of.p99_ns, units.duration),
}


def prediction_page(found: Prediction, style: Style) -> list[str]:
    """Return the page."""
    return list(_page(found, style))


def _page(found: Prediction, style: Style) -> Iterator[str]:
    yield from style.headline(f"{found.workload} on {found.target}, predicted from {found.source}")
    yield ""
    yield from table(
        [Column("", words=True), Column("", words=True), *map(Column, ("predicted", "least", "most"))],
        [row for of in found.operations for row in _rows(of)],
        style,
    )
    yield ""
    yield from _causes(found, style)
    if found.limits:
        yield ""
        yield _LEFT_OUT
        for limit in found.limits:
            yield from style.wrap(limit, "- ")


def beside_page(found: PredictedRun, style: Style) -> list[str]:
    """Return measured figures beside predicted ones, and the likely causes of differences."""
    return ["measured beside predicted", *_beside(found, style)]


def look_page(found: PredictedLook, style: Style) -> list[str]:
    """Return the steps of a quick look beside their predictions, and what the model leaves out."""
    lines = [f"measured beside predicted from {found.source}"]
    for step in found.steps:
        lines += ["", step.about, *_beside(step.run, style)]
    if found.limits:
        lines += ["", _LEFT_OUT]
        for limit in found.limits:
            lines += style.wrap(limit, "- ")
    return lines


def _beside(found: PredictedRun, style: Style) -> Iterator[str]:
    heads = ("measured", "predicted", "least", "most", "")
    rows = [
        row
        for of in found.operations
        for row in (
            [of.label, "IOPS", units.count(of.iops), *_band(of.predicted, units.count), _WORDS[of.side]],
            ["", "mean", units.duration(of.mean_ns), *_band(of.predicted_mean_ns, units.duration), ""],
        )
    ]
    columns = [Column("", words=True), Column("", words=True), *(Column(head, words=not head) for head in heads)]
    yield from table(columns, rows, style)
    for hint in found.hints:
        yield from style.wrap(f"{hint.cause} ({hint.evidence})", "likely: ")
    if not found.hints and any(of.side is not Side.WITHIN for of in found.operations):
        yield "no rule explains the difference"


def _band(band: Band, shown: Callable[[float], str]) -> list[str]:
    return [shown(value) for value in (band.value, band.least, band.most)]


_WORDS = {Side.WITHIN: "as predicted", Side.BELOW: "below the band", Side.ABOVE: "above the band"}


def _rows(of: OperationFigures) -> Iterator[list[str]]:
    label = of.label
    for name, (band_of, shown) in MEASURES.items():
        band = band_of(of)
        if name == "throughput" and of.operation == "fsync":
            continue
        yield [label, name, *(shown(value) for value in (band.value, band.least, band.most))]
        label = ""


def _causes(found: Prediction, style: Style) -> Iterator[str]:
    shown = [cause for cause in found.causes if cause.largest >= SMALLEST]
    rest = [cause for cause in found.causes if cause.largest < SMALLEST]
    if shown:
        yield "the band comes from:"
        heads = [Column("", words=True), *map(Column, ("least", "model", "most", "IOPS", "mean latency"))]
        yield from table(heads, [_row(cause) for cause in shown], style)
    if rest:
        yield from style.wrap(f"no effect here: {', '.join(_name(cause) for cause in rest)}")


def _row(cause: Cause) -> list[str]:
    return [
        _name(cause), cause.least, cause.value, cause.most, units.percent(cause.iops), units.percent(cause.mean),
    ]  # fmt: skip


def _name(cause: Cause) -> str:
    return cause.key if cause.part == "workload" else f"{cause.key} of {cause.part}"
