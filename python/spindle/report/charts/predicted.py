"""Measured and modelled: the same load on real storage and on a modelled machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from spindle.base import units
from spindle.base.numbers import plain, share_of
from spindle.report.charts import parts
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.traits import size_words
from spindle.report.document.trial import Trial, is_observed, is_streaming
from spindle.report.terminal.table import Column
from spindle.result.record import Level
from spindle.result.workload import End, Workload
from spindle.stats.estimate import mean_of_trials

ROW = 34
_ANY_END = End(time_ns=None, bytes=None, requests=None, steady=False)


@dataclass(frozen=True)
class Pair:
    """One load on both kinds of target."""

    label: str
    streaming: bool
    measured: float
    modelled: float
    level: Level

    @property
    def ratio(self) -> float | None:
        """Modelled over measured."""
        return self.modelled / self.measured if self.measured else None


def charts(trials: Sequence[Trial]) -> list[Chart]:
    """Return a panel for streams and one for requests, or nothing unless a load ran on both."""
    pairs = pairs_of(trials)
    return [_chart(pairs)] if pairs else []


def pairs_of(trials: Sequence[Trial]) -> list[Pair]:
    """Return pairs with the same streams (any seed and end of run) on a real and on a modelled target."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.run.target.traits.does_io and not is_observed(trial.run):
            groups.setdefault(_load(trial.run.workload), []).append(trial)
    found = []
    for members in groups.values():
        real: dict[str, list[Trial]] = {}
        modelled: dict[str, list[Trial]] = {}
        for trial in members:
            side = modelled if trial.run.target.traits.is_modelled else real
            side.setdefault(trial.run.target.place, []).append(trial)
        for name, theirs in real.items():
            for model, ours in modelled.items():
                several = len(real) > 1 or len(modelled) > 1
                found.append(_pair(f"{name} / {model}" if several else "", theirs, ours))
    return found


def _load(workload: Workload) -> str:
    """Return a key that is equal for equal loads."""
    return repr([replace(stream, end=_ANY_END, priority=None) for stream in workload.streams])


def _pair(targets: str, measured: Sequence[Trial], modelled: Sequence[Trial]) -> Pair:
    run = measured[0].run
    streaming = is_streaming(run)
    stream = run.workload.streams[0]
    words = [run.workload.name, size_words(stream.size), f"{run.workload.outstanding} under way"]
    if stream.mix.write > 0:
        words.append(f"{units.percent(stream.mix.write)} writes")
    if targets:
        words.append(targets)

    def mean(of: Sequence[Trial]) -> float:
        rates = [trial.run.figures.bytes_per_s / 1e6 if streaming else trial.run.figures.iops for trial in of]
        return mean_of_trials(rates)

    level = max((trial.level for trial in [*measured, *modelled]), key=lambda level: level.rank)
    return Pair(", ".join(words), streaming, mean(measured), mean(modelled), level)


def _chart(pairs: Sequence[Pair]) -> Chart:
    panels = [
        _panel([pair for pair in pairs if pair.streaming is streaming], streaming)
        for streaming in (False, True)
        if any(pair.streaming is streaming for pair in pairs)
    ]
    ratios = sorted(ratio for pair in pairs if (ratio := pair.ratio) is not None)
    says = "The same load, modelled and measured."
    if len(ratios) == 1:
        says += f" Modelled is {share_of(ratios[0])} measured."
    elif ratios:
        least, middle, most = ratios[0], ratios[(len(ratios) - 1) // 2], ratios[-1]
        says += (
            f" Modelled is from {share_of(least)} to {share_of(most)} measured, in the middle {share_of(middle)} it."
        )
    if any(pair.level is Level.INVALID for pair in pairs):
        says += " A red cross marks a pair one of whose figures has an invalid verdict."
    return Chart(
        key="predicted",
        title="Measured against modelled",
        says=says,
        specification=parts.whole(vconcat=panels),
        sheet=_sheet(pairs),
    )


def _panel(pairs: Sequence[Pair], streaming: bool) -> dict[str, Any]:
    labels = parts.shortened([pair.label for pair in pairs])
    values: list[dict[str, Any]] = [
        {"load": label, "kind": kind, "rate": rate, "invalid": pair.level is Level.INVALID}
        for pair, label in zip(pairs, labels, strict=True)
        for kind, rate in (("measured", pair.measured), ("modelled", pair.modelled))
    ]
    x = parts.rates("rate", f"Throughput ({'MB/s' if streaming else 'IOPS'})", [value["rate"] for value in values])
    y = {"field": "load", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 330, "grid": True}}
    looks = parts.series("kind", "Figure", ["measured", "modelled"], dashes=False)
    return {
        "width": parts.WIDTH - 220,
        "height": max(ROW * len(pairs), 60),
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "line", "color": "@line", "strokeWidth": 2},
                "encoding": {"x": x, "y": y, "detail": {"field": "load"}},
            },
            {"mark": {"type": "point", "size": 110}, "encoding": {"x": x, "y": y, **looks}},
            parts.crosses(x, y),
        ],
    }


def _sheet(pairs: Sequence[Pair]) -> Sheet:
    rows = [
        [
            pair.label,
            "MB/s" if pair.streaming else "IOPS",
            plain(pair.measured),
            plain(pair.modelled),
            "" if pair.ratio is None else units.percent(pair.ratio),
            pair.level,
        ]
        for pair in pairs
    ]
    columns = [
        Column("load", words=True),
        Column("unit", words=True),
        *(Column(head) for head in ("measured", "modelled", "modelled / measured")),
        Column("verdict", words=True),
    ]
    return Sheet("Pairs", columns, rows, folded=True)
