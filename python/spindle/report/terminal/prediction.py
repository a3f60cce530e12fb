"""A prediction: figures with their bands, what makes the bands, and what the model leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spindle.base import units
from spindle.prediction.beside import PredictedRun, Side
from spindle.prediction.model import Band, Cause, OperationFigures, Prediction
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table

SMALLEST = 0.005
"""Effects below this share are not worth a line."""
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
        yield "not in the model, or not in the band:"
        for limit in found.limits:
            yield from style.wrap(limit, "- ")


def beside_page(found: PredictedRun, style: Style) -> list[str]:
    """Return measured figures beside predicted ones, and the likely causes of differences."""
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
    lines = ["measured beside predicted", *table(columns, rows, style)]
    for hint in found.hints:
        lines += style.wrap(f"{hint.cause} ({hint.evidence})", "likely: ")
    if not found.hints and any(of.side is not Side.WITHIN for of in found.operations):
        lines.append("no rule explains the difference")
    return lines


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
