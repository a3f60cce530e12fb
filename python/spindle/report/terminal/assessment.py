"""An assessment: the need, the multiples tried, the answer with its margin, the bottleneck, the next steps."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from spindle.assess.assessment import Assessment, Number
from spindle.assess.purpose import PURPOSES
from spindle.base import units
from spindle.base.numbers import plain
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.search import TargetPoint, TargetSearch


def assessment_page(found: Assessment, style: Style) -> list[str]:
    """Return the page."""
    return list(_page(found, style))


def _page(found: Assessment, style: Style) -> Iterator[str]:
    yield from style.headline(f"{found.target.asked} for {found.purpose}")
    yield PURPOSES[found.purpose].about
    yield ""
    yield from table(
        [Column("need", words=True), Column(""), Column("", words=True)], list(map(_number, found.need)), style
    )
    yield ""
    yield from _tried(found, style)
    yield ""
    yield from style.wrap(f"{found.answer.capitalize()}: {found.reason}.")
    if (said := margin_words(found)) is not None:
        yield from style.wrap(said)
    if found.bottleneck is not None:
        yield ""
        yield from style.wrap(f"limit: {found.bottleneck.words}")
        for line in found.bottleneck.evidence:
            yield from style.wrap(line, "  - ")
    if found.next_steps:
        yield ""
        yield "next:"
        for line in found.next_steps:
            yield from style.wrap(line, "  - ")
    if found.caveats:
        yield ""
        for line in found.caveats:
            yield from style.wrap(line, "warn  ")


def _number(number: Number) -> list[str]:
    source = "" if number.source is None else f"default ({number.source})"
    return [number.words, f"{'at most ' if number.kind == 'time' else ''}{amount(number)}", source]


def amount(number: Number) -> str:
    """A number of a need with its unit."""
    match number.kind:
        case "bytes":
            return units.rate(number.value)
        case "bits":
            return f"{plain(number.value / 1e6)} Mbit/s"
        case "time":
            return units.duration(number.value)
    return f"{number.value:.0f}" if number.whole else plain(number.value)


def _tried(found: Assessment, style: Style) -> list[str]:
    heads = ["times", "IOPS", "MB/s", *(f"{bound.figure} ms" for bound in found.search.bounds), "runs"]
    columns = [*map(Column, heads), Column("", words=True)]
    return table(columns, [_row(found.search, point) for point in found.search.points], style)


def _row(search: TargetSearch, point: TargetPoint) -> list[str]:
    latencies = ["" if seen.latency_ns is None else plain(seen.latency_ns / 1e6) for seen in point.checks]
    says = point.decision if point.sustained else "does not keep up"
    need = " <- the need" if point.value == 1 else ""
    return [
        f"{point.value:.2f}", plain(point.iops), plain(point.bytes_per_s / 1e6), *latencies, str(len(point.runs)),
        f"{says}{need}",
    ]  # fmt: skip


def margin_words(found: Assessment) -> str | None:
    """The margin in a sentence; None: it is unknown."""
    margin = found.margin
    if margin.least is None:
        return None if margin.most is None else f"It takes less than {_times(margin.most)} the need."
    if margin.most is None:
        return f"It takes at least {_times(margin.least)} the need: {_headline(found, margin.least)}."
    best = margin.value if margin.value is not None else margin.least
    return f"It takes {_times(best)} the need ({margin.least:.2f} to {margin.most:.2f}): {_headline(found, best)}."


def _headline(found: Assessment, times: float) -> str:
    """`125 transactions a second`."""
    number = next(each for each in found.need if each.key == found.headline)
    value = number.value * times
    return f"{amount(replace(number, value=float(int(value)) if number.whole else value))} {number.words}"


def _times(value: float) -> str:
    return f"{value:.2f} times"
