"""Speed over chunk size for each level and layout, as multiples of one drive: of the runs, in theory, published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spindle.base import units
from spindle.base.numbers import plain
from spindle.prediction import theory
from spindle.report import published
from spindle.report.charts import parts
from spindle.report.document import storage
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.storage import Array
from spindle.report.document.trial import Trial, is_observed, is_streaming
from spindle.report.terminal.table import Column
from spindle.result.record import Level
from spindle.stats.estimate import mean_of_trials

LEAST_CHUNKS = 2
"""Fewest chunk sizes of a curve."""


@dataclass(frozen=True)
class Point:
    """Trials of one array and one direction."""

    array: Array
    value: float
    """Multiple of one drive; MB/s or IOPS if no run is on a single drive."""
    level: Level


@dataclass(frozen=True)
class Panel:
    """The runs of one direction."""

    direction: str
    write_fraction: float
    streaming: bool
    single: float | None
    """One drive's own speed: bytes per second of a stream, else requests per second."""
    points: Sequence[Point]
    drives: Sequence[str]


def charts(trials: Sequence[Trial]) -> list[Chart]:
    """Return one chart with a panel for each direction, or none unless chunk sizes were varied."""
    groups: dict[tuple[str, bool], list[Trial]] = {}
    for trial in trials:
        if is_observed(trial.run) or not all(stream.only_data for stream in trial.run.workload.streams):
            continue
        groups.setdefault((_direction(trial), is_streaming(trial.run)), []).append(trial)
    panels = [panel for key, members in sorted(groups.items()) if (panel := _panel(*key, members)) is not None]
    return [_chart(panels)] if panels else []


def _direction(trial: Trial) -> str:
    writes = {stream.mix.of_calls for stream in trial.run.workload.streams}
    if writes == {0.0}:
        return "reads"
    if writes == {1.0}:
        return "writes"
    return f"{units.percent(sum(writes) / len(writes))} writes"


def _speed(trial: Trial, streaming: bool) -> float:
    figures = trial.run.figures
    return figures.bytes_per_s if streaming else figures.iops


def _panel(direction: str, streaming: bool, trials: Sequence[Trial]) -> Panel | None:
    groups: dict[Array, list[Trial]] = {}
    singles = []
    for trial in trials:
        array = storage.array_of(trial.run)
        if array is not None and array.chunk is not None:
            groups.setdefault(array, []).append(trial)
        elif array is None and len(storage.drives_of(trial.run)) == 1:
            singles.append(_speed(trial, streaming))
    chunks: dict[tuple[str, int], set[int | None]] = {}
    for array in groups:
        chunks.setdefault((array.name, array.drives), set()).add(array.chunk)
    if not any(len(found) >= LEAST_CHUNKS for found in chunks.values()):
        return None
    single = mean_of_trials(singles) if singles else None
    unit = single or (1e6 if streaming else 1.0)
    points = [
        Point(
            array,
            mean_of_trials([_speed(trial, streaming) for trial in members]) / unit,
            max((trial.level for trial in members), key=lambda level: level.rank),
        )
        for array, members in groups.items()
        if len(chunks[array.name, array.drives]) >= LEAST_CHUNKS
    ]
    points.sort(key=lambda point: (point.array.name, point.array.drives, point.array.chunk))
    first = next(trial for trial in trials if storage.array_of(trial.run) is not None)
    writes = [stream.mix.of_calls for stream in first.run.workload.streams]
    return Panel(direction, sum(writes) / len(writes), streaming, single, points, storage.drives_of(first.run))


def _chart(panels: Sequence[Panel]) -> Chart:
    names = list(dict.fromkeys(point.array.name for panel in panels for point in panel.points))
    relative = all(panel.single is not None for panel in panels)
    values: list[dict[str, Any]] = []
    for panel in panels:
        values += [
            _value(panel, point.array.name, point.array.chunk, point.value, "run", point.level is Level.INVALID)
            for point in panel.points
        ]
        if panel.single is None:
            continue
        values += _theory(panel)
        values += _published(panel, names)
    return Chart(
        key="chunks",
        title="Chunk size, level and layout" + (", as multiples of one drive" if relative else ""),
        says=_says(panels, values),
        specification=parts.whole(
            data={"values": values},
            vconcat=[_drawn(panel, names, values) for panel in panels],
        ),
        sheet=_sheet(panels, values),
    )


def _value(
    panel: Panel, name: str, chunk: int | None, value: float, source: str, invalid: bool = False
) -> dict[str, Any]:
    return {
        "panel": panel.direction,
        "array": name,
        "kib": (chunk or 0) / 1024,
        "x": value,
        "source": source,
        "invalid": invalid,
    }


def _theory(panel: Panel) -> list[dict[str, Any]]:
    """Return a horizontal line for each array, from its smallest to its largest chunk."""
    found = []
    for array in {(p.array.level, p.array.layout, p.array.drives): p.array for p in panel.points}.values():
        speeds = (theory.streaming if panel.streaming else theory.random)(array.level, array.layout, array.drives)
        if speeds is None:
            continue
        chunks = [point.array.chunk for point in panel.points if point.array.name == array.name]
        multiple = theory.mixed(speeds, panel.write_fraction)
        ends = sorted({chunk for chunk in chunks if chunk is not None})
        found += [_value(panel, array.name, chunk, multiple, "theory") for chunk in (ends[0], ends[-1])]
    return found


def _published(panel: Panel, names: Sequence[str]) -> list[dict[str, Any]]:
    if not panel.streaming or panel.direction not in ("reads", "writes"):
        return []
    return [
        _value(panel, name, known.chunk, known.read if panel.direction == "reads" else known.write, "published")
        for known in published.streams(panel.drives)
        if (name := f"{known.level} {known.layout}") in names
    ]


def _drawn(panel: Panel, names: Sequence[str], values: Sequence[dict[str, Any]]) -> dict[str, Any]:
    unit = "multiples of one drive" if panel.single is not None else "MB/s" if panel.streaming else "IOPS"
    ticks = sorted({value["kib"] for value in values if value["panel"] == panel.direction})
    x = parts.number("kib", "Chunk (KiB)", log=2, scale={"nice": False}, axis={"values": ticks})
    y = parts.number("x", f"{panel.direction.capitalize()} ({unit})")
    looks = parts.series("array", "Level and layout", names)
    of = [{"filter": f"datum.panel == {panel.direction!r}"}]
    colour, dash, mark = looks["color"], looks["strokeDash"], looks["shape"]
    sources = {value["source"] for value in values if value["panel"] == panel.direction}
    layers: list[dict[str, Any]] = []
    if "theory" in sources:
        layers.append(
            {
                "transform": [{"filter": "datum.source == 'theory'"}],
                "mark": {"type": "line", "strokeWidth": 7, "opacity": 0.22, "strokeCap": "butt"},
                "encoding": {"x": x, "y": y, "color": colour},
            }
        )
    layers += [
        {
            "transform": [{"filter": "datum.source == 'run'"}],
            "mark": "line",
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
        },
        {
            "transform": [{"filter": "datum.source == 'run'"}],
            "mark": "point",
            "encoding": {"x": x, "y": y, "color": colour, "shape": mark},
        },
    ]
    if "published" in sources:
        layers.append(
            {
                "transform": [{"filter": "datum.source == 'published'"}],
                "mark": {"type": "point", "filled": False, "size": 110, "strokeWidth": 2},
                "encoding": {"x": x, "y": y, "color": colour, "shape": mark},
            }
        )
    layers.append(parts.crosses(x, y))
    return {"width": parts.WIDTH, "height": parts.HEIGHT, "transform": of, "layer": layers}


def _says(panels: Sequence[Panel], values: Sequence[dict[str, Any]]) -> str:
    singles = [
        f"{panel.direction}: {units.rate(panel.single) if panel.streaming else units.count(panel.single) + ' IOPS'}"
        for panel in panels
        if panel.single is not None
    ]
    text = "Lines with filled marks: the runs."
    if singles:
        text += f" One drive is the mean of the runs without an array ({', '.join(singles)})."
    else:
        text += " No run on a single drive is among them, so speeds are absolute; add one to see multiples."
    sources = {value["source"] for value in values}
    if "theory" in sources:
        text += " Broad pale lines: theory (docs/reference/report.md)."
    if "published" in sources:
        text += f" Open marks: {published.STREAMS_2008}."
    if any(value["invalid"] for value in values):
        text += " A red cross marks a figure whose verdict is invalid."
    return text


def _sheet(panels: Sequence[Panel], values: Sequence[dict[str, Any]]) -> Sheet:
    theories = {(v["panel"], v["array"]): v["x"] for v in values if v["source"] == "theory"}
    published_at = {(v["panel"], v["array"], v["kib"]): v["x"] for v in values if v["source"] == "published"}
    rows = []
    for panel in panels:
        for point in panel.points:
            name, kib = point.array.name, (point.array.chunk or 0) / 1024
            known = theories.get((panel.direction, name))
            printed = published_at.get((panel.direction, name, kib))
            rows.append(
                [
                    panel.direction,
                    name,
                    f"{kib:g}",
                    plain(point.value),
                    "" if known is None else plain(known),
                    "" if printed is None else plain(printed),
                    point.level,
                ]
            )
    columns = [
        Column("direction", words=True),
        Column("array", words=True),
        *(Column(head) for head in ("chunk KiB", "run", "theory", "published")),
        Column("verdict", words=True),
    ]
    return Sheet("Points of the curves", columns, rows, folded=True)
