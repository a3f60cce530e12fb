"""Throughput and latency second by second, and below them the devices' own counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spindle.base.numbers import plain
from spindle.report.charts import parts, theme
from spindle.report.document.alike import alike
from spindle.report.document.model import Chart, Sheet
from spindle.report.document.trial import Case, Trial, bytes_per_s_of, iops_of, is_observed, is_streaming, unit_of
from spindle.report.terminal.table import Column
from spindle.result.figures import Interval
from spindle.result.record import Level

MOST_POINTS = 240
"""Most points on a screen; longer series are shown in longer intervals."""
MOST_KINDS = 4
DEVICE_COLUMNS = ("r/s", "rkB/s", "rMB/s", "w/s", "wkB/s", "wMB/s", "await", "r_await", "w_await", "aqu-sz", "%util")


def charts(cases: Sequence[Case]) -> list[Chart]:
    """Return a chart for each kind of work: the first trial of each case, as many cases as are distinguishable."""
    kinds = [(name, found) for name, members in alike(cases) if (found := _drawable(members))]
    drawn = sorted(kinds, key=lambda kind: -len(kind[1]))[:MOST_KINDS] if len(kinds) > MOST_KINDS else kinds
    left = f" {len(drawn)} of {len(kinds)} kinds of work are drawn, those of the most cases first."
    return [_chart(name, found, at, left if len(drawn) < len(kinds) else "") for at, (name, found) in enumerate(drawn)]


def _drawable(cases: Sequence[Case]) -> list[tuple[Case, Trial]]:
    trials = [(case, next((t for t in case.trials if _has_series(t)), None)) for case in cases]
    return [(case, trial) for case, trial in trials if trial is not None]


def _has_series(trial: Trial) -> bool:
    return len(trial.run.figures.series) > 2 or (is_observed(trial.run) and len(trial.run.activity.samples) > 2)


def _observed_s(trial: Trial) -> float:
    """Return how long the devices were observed under a program's own load; 0 for other loads."""
    samples = trial.run.activity.samples if is_observed(trial.run) else []
    return max((sample.at_s for sample in samples), default=0.0)


def coarser(series: Sequence[Interval], most: int) -> list[list[Interval]]:
    """Merge neighbours into at most `most` intervals; a short rest at the end is left out."""
    whole = list(series)
    if len(whole) > 1 and whole[-1].length_ns < whole[0].length_ns / 2:
        whole.pop()
    together = max(1, -(-len(whole) // most))
    return [whole[at : at + together] for at in range(0, len(whole), together)]


def mean_latency_ns(intervals: Sequence[Interval]) -> float | None:
    """Return the mean over reads and writes of all streams; None: nothing was completed."""
    streams = [stream for interval in intervals for stream in interval.streams]
    count = sum(stream.reads + stream.writes for stream in streams)
    return sum(s.read_latency_ns + s.write_latency_ns for s in streams) / count if count else None


def _chart(kind: str, found: Sequence[tuple[Case, Trial]], at: int, left: str) -> Chart:
    streaming = all(is_streaming(trial.run) for _, trial in found)
    drawn = _chosen(found, streaming)
    unit = "MB/s" if streaming else unit_of(drawn[0][0])
    labels = parts.shortened([case.label for case, _ in drawn])
    values = [
        value for (_, trial), label in zip(drawn, labels, strict=True) for value in _values(trial, label, streaming)
    ]
    longest = max([*(value["s"] for value in values), *(_observed_s(trial) for _, trial in drawn)])
    x = parts.number(
        "s",
        "Time since the end of the ramp (s)",
        scale={"domain": [0, longest], "nice": False},
        axis={"tickMinStep": 1},
    )
    rate = parts.rates("rate", f"Throughput ({unit})", [value["rate"] for value in values])
    latencies = [value["ms"] for value in values if value["ms"]]
    low, high = min(latencies, default=1.0), max(latencies, default=1.0)
    latency = (
        parts.number(
            "ms",
            "Mean latency (ms)",
            log=10,
            scale=parts.log_scale([low, high]),
            axis={"values": parts.decades([low, high])},
        )
        if high > 20 * low
        else parts.number("ms", "Mean latency (ms)")
    )
    looks = parts.series("case", "Case", labels, marks=False)
    panels: list[dict[str, Any]] = (
        []
        if not values
        else [
            {
                "width": parts.WIDTH,
                "height": parts.HEIGHT * 0.75,
                "mark": "line",
                "encoding": {"x": x, "y": rate, **looks},
            },
            {
                "width": parts.WIDTH,
                "height": parts.HEIGHT * 0.55,
                "mark": "line",
                "encoding": {"x": x, "y": latency, **looks},
            },
        ]
    )
    device = _device_panels(drawn, labels, x, looks, streaming)
    panels += device
    return Chart(
        key=f"seconds-{at + 1}" if at else "seconds",
        title=f"Second by second{f': {kind}' if kind else ''}",
        says=_says(drawn, len(found), bool(values), bool(device)) + left,
        specification=parts.whole(data={"values": values}, vconcat=panels),
        sheet=_sheet([trial for _, trial in found], [case.label for case, _ in found]),
    )


def _chosen(found: Sequence[tuple[Case, Trial]], streaming: bool) -> Sequence[tuple[Case, Trial]]:
    """Return all, or a selection evenly spread over the order of their throughput, with the slowest and the fastest."""
    if len(found) <= theme.SERIES:
        return found
    rate = bytes_per_s_of if streaming else iops_of
    return parts.spread(sorted(found, key=lambda pair: rate(pair[1].run)), theme.SERIES)


def _values(trial: Trial, label: str, streaming: bool) -> list[dict[str, Any]]:
    found = []
    for intervals in coarser(trial.run.figures.series, MOST_POINTS):
        seconds = sum(interval.length_ns for interval in intervals) / 1e9
        if seconds <= 0:
            continue
        streams = [stream for interval in intervals for stream in interval.streams]
        moved = sum(s.read_bytes + s.write_bytes for s in streams) / 1e6
        requests = sum(s.reads + s.writes for s in streams)
        latency = mean_latency_ns(intervals)
        found.append(
            {
                "case": label,
                "s": (intervals[0].start_ns + intervals[-1].start_ns + intervals[-1].length_ns) / 2e9,
                "rate": (moved if streaming else requests) / seconds,
                "ms": None if latency is None else latency / 1e6,
            }
        )
    return found


def _device_panels(
    drawn: Sequence[tuple[Case, Trial]],
    labels: Sequence[str],
    x: dict[str, Any],
    looks: dict[str, Any],
    streaming: bool,
) -> list[dict[str, Any]]:
    """Return the same time as seen by the devices under test; nothing without data, as in a modelled run."""
    values = [
        value for (_, trial), label in zip(drawn, labels, strict=True) for value in _of_devices(trial, label, streaming)
    ]
    if not values:
        return []
    unit = "MB/s" if streaming else "requests/s"
    rate = parts.rates("rate", f"Devices ({unit})", [value["rate"] for value in values])
    queue = parts.number("queue", "Devices' queue (requests)")
    return [
        {
            "width": parts.WIDTH,
            "height": parts.HEIGHT * 0.55,
            "data": {"values": values},
            "mark": "line",
            "encoding": {"x": x, "y": y, **looks},
        }
        for y in (rate, queue)
    ]


def _of_devices(trial: Trial, label: str, streaming: bool) -> Iterator[dict[str, Any]]:
    """Sum over all devices under test; MB are 10^6 bytes, as everywhere but in iostat."""
    run = trial.run
    samples = [sample for sample in run.activity.samples if sample.devices]
    for sample in samples[:: max(1, -(-len(samples) // MOST_POINTS))]:
        columns = list(sample.devices.values())
        if streaming:
            rate = sum(each.get("rMB/s", 0.0) + each.get("wMB/s", 0.0) for each in columns) * (1 << 20) / 1e6
        else:
            rate = sum(each.get("r/s", 0.0) + each.get("w/s", 0.0) for each in columns)
        middle = sample.at_s - sample.seconds / 2 - (0 if is_observed(run) else run.workload.ramp_ns / 1e9)
        if 0 <= middle <= run.figures.measured_s - sample.seconds / 2 or is_observed(run):
            queue = sum(each.get("aqu-sz", 0.0) for each in columns)
            yield {"case": label, "s": middle, "rate": rate, "queue": queue}


def _says(drawn: Sequence[tuple[Case, Trial]], cases: int, with_load: bool, with_devices: bool) -> str:
    parts_said = ["what the load got in each interval"] if with_load else []
    if with_devices:
        parts_said.append("what the devices themselves counted")
    text = ", and below ".join(parts_said).capitalize() + "."
    if len(drawn) == 1:
        text = f"{text} {drawn[0][0].label}."
    if any(len(case.trials) > 1 for case, _ in drawn):
        text += " The first trial of each case."
    if len(drawn) < cases:
        text += (
            f" {len(drawn)} of {cases} cases are drawn, at equal steps of rank from the slowest to the fastest; the "
            "figures of all are under Figures."
        )
    invalid = [case.label for case, trial in drawn if trial.level is Level.INVALID]
    if invalid:
        text += f" Invalid verdict: {'; '.join(invalid)}."
    return text


def _sheet(trials: Sequence[Trial], labels: Sequence[str]) -> Sheet:
    """Return the devices' own counters over the whole run."""
    found = [
        (label, device, trial.level)
        for label, trial in zip(labels, trials, strict=True)
        for device in trial.run.devices
    ]
    names = [name for name in DEVICE_COLUMNS if any(name in device.iostat for _, device, _ in found)]
    columns = [
        Column("case", words=True),
        Column("device", words=True),
        *(Column(name) for name in names),
        Column("verdict", words=True),
    ]
    rows = [
        [
            label,
            device.name if device.role == "target" else f"{device.name} (below)",
            *(plain(device.iostat[name]) if name in device.iostat else "" for name in names),
            level,
        ]
        for label, device, level in found
    ]
    return Sheet("The devices' own counters, mean of the whole run (columns of iostat -x)", columns, rows, folded=True)
