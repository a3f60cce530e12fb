"""A quick look in words: the device's rates, its limit, and the comparison with its class."""

from __future__ import annotations

from spindle.base import units
from spindle.result.record import (
    ClassFigure,
    Knee,
    KneePoint,
    Level,
    QuickFinding,
    QuickFindings,
    RunRecord,
    Step,
    worst,
)
from spindle.result.target import Target
from spindle.run import classes

FLAT = 0.01
"""Rates of several steps that agree this well come from a limit: devices vary more."""
FLAT_STEPS = 3
FAST_LAST = 0.97
"""A last part at least this fast is as fast as the first."""
SHORT_STROKE = 0.10
"""A file on less of a disk than this avoids most of its seek time."""
LIKE_CLASS = (0.8, 1.25)
"""Factors of the class's range within which a figure is typical."""


def findings_of(
    target: Target, steps: list[Step], runs: list[RunRecord], sweep: Knee | None, skipped: list[str]
) -> QuickFindings:
    """The findings of the steps of a quick look, in words."""
    view = _View(steps, runs)
    findings = [
        *_sequential(view),
        *_one_at_a_time(view),
        *_rising(view, sweep),
        *_mix(view),
        *_zones(view),
    ]
    limit, reason = _limit(view, sweep)
    if runs:
        findings.append(QuickFinding(topic="limit", text=reason))
    findings.extend(_trust(runs))
    key = target.detail.get("class")
    comparison, words = _compare(key, view, sweep)
    findings.extend(words)
    findings.extend(_short_stroke(target, key))
    findings.extend(_test_file(target))
    findings.extend(QuickFinding(topic="not measured", text=text) for text in skipped)
    return QuickFindings(device_class=key, limit=limit, findings=findings, comparison=comparison)


class _View:
    """The runs of each step."""

    def __init__(self, steps: list[Step], runs: list[RunRecord]) -> None:
        by_id = {run.id: run for run in runs}
        self._of = {step.name: [by_id[run] for run in step.runs] for step in steps}

    def one(self, step: str) -> RunRecord | None:
        """The single run of a step that completed anything."""
        runs = self._of.get(step, [])
        return runs[0] if runs and runs[0].figures.requests else None

    def all(self, step: str) -> list[RunRecord]:
        """Every run of a step."""
        return self._of.get(step, [])


def _level(run: RunRecord) -> Level:
    return Level.INVALID if run.level is Level.INVALID else Level.OK


def _sequential(view: _View) -> list[QuickFinding]:
    run = view.one("sequential-read")
    if run is None:
        return []
    return [
        QuickFinding(
            topic="sequential read",
            text=f"{units.rate(run.figures.bytes_per_s)} (1 MiB requests, {run.workload.outstanding} outstanding)",
            level=_level(run),
        )
    ]


def _one_at_a_time(view: _View) -> list[QuickFinding]:
    run = view.one("random-read")
    read = run.figures.streams[0].read if run is not None else None
    if run is None or read is None:
        return []
    tail = read.latency.percentile(99.0)
    return [
        QuickFinding(
            topic="random read",
            text=(
                f"{units.count(read.iops)} IOPS one at a time (4 KiB): {units.duration(read.latency.mean_ns)} each"
                + (f", 1 in 100 takes {units.duration(tail)} or more" if tail is not None else "")
            ),
            level=_level(run),
        )
    ]


def _rising(view: _View, sweep: Knee | None) -> list[QuickFinding]:
    if sweep is None or sweep.knee is None:
        return []
    at = _knee_point(sweep)
    most = max(sweep.points, key=lambda point: point.iops)
    level = (
        Level.INVALID
        if worst([v for run in view.all("random-read-rising") for v in run.verdicts]) is Level.INVALID
        else Level.OK
    )
    text = (
        f"{units.count(most.iops)} IOPS at best (4 KiB, {most.outstanding} outstanding, "
        f"{units.duration(most.mean_latency_ns)} each)"
    )
    if not sweep.levelled_off:
        text += "; it still grew there, the knee is beyond"
    elif at.outstanding == most.outstanding:
        text += "; more concurrency gains nothing"
    else:
        text += (
            f"; the knee is at {at.outstanding} outstanding: {units.count(at.iops)} IOPS, "
            f"{units.duration(at.mean_latency_ns)} each, more only adds latency"
        )
    return [QuickFinding(topic="rising concurrency", text=text, level=level)]


def _knee_point(sweep: Knee) -> KneePoint:
    return next(point for point in sweep.points if point.outstanding == sweep.knee)


def _mix(view: _View) -> list[QuickFinding]:
    run = view.one("mix")
    if run is None:
        return []
    parts = []
    for stream in run.figures.streams:
        for name, op in stream.ops():
            parts.append(f"{name}s {units.count(op.iops)} IOPS at {units.duration(op.latency.mean_ns)}")
    whole = f"{units.count(run.figures.iops)} IOPS, {units.rate(run.figures.bytes_per_s)}"
    return [
        QuickFinding(
            topic="read/write mix",
            text=f"{whole} ({run.workload.outstanding} outstanding): {', '.join(parts)}",
            level=_level(run),
        )
    ]


def _zones(view: _View) -> list[QuickFinding]:
    first, last = view.one("first-part"), view.one("last-part")
    if first is None or last is None or first.figures.bytes_per_s <= 0:
        return []
    share = last.figures.bytes_per_s / first.figures.bytes_per_s
    rates = f"{units.rate(first.figures.bytes_per_s)} first, {units.rate(last.figures.bytes_per_s)} last"
    if share >= FAST_LAST:
        text = f"{rates}: the end is as fast as the start"
    else:
        text = f"{rates}: the end reaches {units.percent(share)} of the start"
    return [QuickFinding(topic="first against last part", text=text, level=worst_of(first, last))]


def worst_of(*runs: RunRecord) -> Level:
    """Invalid if any of them is."""
    return Level.INVALID if any(run.level is Level.INVALID for run in runs) else Level.OK


def _limit(view: _View, sweep: Knee | None) -> tuple[str, str]:
    """The limit of the random reads, from the verdicts of the fastest step."""
    runs = view.all("random-read-rising") or view.all("random-read")
    runs = [run for run in runs if run.figures.requests and not run.figures.is_partial]
    if not runs:
        return "unknown", "the limit was not measured"
    top = max(runs, key=lambda run: run.figures.iops)
    bad = {verdict.check: verdict for verdict in top.verdicts if verdict.level is not Level.OK}
    if "cache-share" in bad and bad["cache-share"].numbers.get("share", 0) > 0:
        return "cache", f"a cache answered, not the device: {bad['cache-share'].evidence}"
    if "group-limit" in bad:
        return "queue", f"a control group limits the random reads: {bad['group-limit'].evidence}"
    if "generator-bound" in bad:
        cpu = top.figures.cpu
        if cpu.user_ns > cpu.system_ns:
            return "generator", f"the load generator limits the random reads: {bad['generator-bound'].evidence}"
        return "cpu", f"the CPU limits the random reads: {bad['generator-bound'].evidence}"
    if top.target.detail.get("class") == "zram":
        return "cpu", "the CPU limits the random reads: zram works on the caller's CPU, and has no queue"
    if sweep is not None and sweep.levelled_off and _imposed(sweep):
        at = max(sweep.points, key=lambda point: point.iops)
        return (
            "queue",
            f"a limit is imposed, by none of this process's control groups (by the provider of a virtual disk?): "
            f"the last steps agree to {units.percent(FLAT)} at {units.count(at.iops)} IOPS",
        )
    if "achieved-depth" in bad:
        return "queue", f"the requests wait before the device: {bad['achieved-depth'].evidence}"
    if sweep is not None and sweep.levelled_off:
        busy = top.counters.iostat.get("%util") if top.counters is not None else None
        how = f"it was busy {busy:.0f} % of the time and " if busy is not None else ""
        return "device", f"the device limits the random reads: {how}more concurrency gains nothing"
    return "unknown", "no limit was reached: throughput still grew with concurrency"


def _imposed(sweep: Knee) -> bool:
    best = max(point.iops for point in sweep.points)
    return sum(1 for point in sweep.points if point.iops >= (1 - FLAT) * best) >= FLAT_STEPS


def _trust(runs: list[RunRecord]) -> list[QuickFinding]:
    """The verdicts, each check once with its worst level."""
    bad: dict[str, tuple[Level, str, int]] = {}
    for run in runs:
        for verdict in run.verdicts:
            if verdict.level is Level.OK or verdict.check in ("saturated", "too-short", "generator-bound"):
                continue  # the sweep replaces the first, a quick look is short, and the limit covers the third
            level, text, count = bad.get(verdict.check, (verdict.level, verdict.evidence, 0))
            if verdict.level.rank > level.rank:
                level, text = verdict.level, verdict.evidence
            bad[verdict.check] = (level, text, count + 1)
    return [
        QuickFinding(
            topic=check, text=text if _of_the_look(check) else f"{text} ({count} of {len(runs)} runs)", level=level
        )
        for check, (level, text, count) in sorted(bad.items(), key=lambda item: -item[1][0].rank)
    ]


def _of_the_look(check: str) -> bool:
    """True for checks of the machine, which was checked once for all runs."""
    return check.startswith("before-")


_FIGURES = (
    ("sequential_read", "sequential read", "MB/s"),
    ("random_read_depth1", "random read one at a time", "IOPS"),
    ("random_read_peak", "random read at best", "IOPS"),
    ("last_to_first", "last part against first", "of it"),
)


def _compare(key: str | None, view: _View, sweep: Knee | None) -> tuple[list[ClassFigure], list[QuickFinding]]:
    known = classes.catalogue().get(key) if key is not None else None
    if known is None:
        text = "this device's class is unknown: there is nothing to compare with"
        return [], [QuickFinding(topic="class", text=text)]
    if known.no_figures:
        return [], [QuickFinding(topic="class", text=f"{known.name}: {known.no_figures}")]
    measured = _measured(view, sweep)
    comparison = []
    for name, words, unit in _FIGURES:
        points = known.figures.get(name)
        value = measured.get(name)
        if not points or value is None:
            continue
        low, high = min(p.value for p in points), max(p.value for p in points)
        span = _span(low, high, unit)
        comparison.append(
            ClassFigure(
                name=name,
                measured=value,
                low=low,
                high=high,
                unit=unit,
                source="; ".join(f"{p.drive}: {p.source}" for p in points),
                text=f"{words}: {_span(value, value, unit)}, {_judge(value, low, high)} ({known.name}: {span})",
            )
        )
    findings = [QuickFinding(topic="class", text=figure.text) for figure in comparison]
    return comparison, findings or [QuickFinding(topic="class", text=f"{known.name}: none of its figures was measured")]


def _measured(view: _View, sweep: Knee | None) -> dict[str, float]:
    found = {}
    if (run := view.one("sequential-read")) is not None:
        found["sequential_read"] = run.figures.bytes_per_s / 1e6
    if (run := view.one("random-read")) is not None:
        found["random_read_depth1"] = run.figures.iops
    if sweep is not None and sweep.points:
        found["random_read_peak"] = max(point.iops for point in sweep.points)
    first, last = view.one("first-part"), view.one("last-part")
    if first is not None and last is not None and first.figures.bytes_per_s > 0:
        found["last_to_first"] = last.figures.bytes_per_s / first.figures.bytes_per_s
    return found


def _span(low: float, high: float, unit: str) -> str:
    if unit == "of it":
        return units.percent(low) if low == high else f"{units.percent(low)} to {units.percent(high)}"
    return f"{units.count(low)} {unit}" if low == high else f"{units.count(low)} to {units.count(high)} {unit}"


def _judge(value: float, low: float, high: float) -> str:
    if value < LIKE_CLASS[0] * low:
        return f"only {units.percent(value / low)} of the least that such a device delivers"
    if value > LIKE_CLASS[1] * high:
        return f"{value / high:.1f} times the most that such a device delivers: a cache, or another class"
    return "as such a device delivers"


def _test_file(target: Target) -> list[QuickFinding]:
    """The reason for the size of a test file that Spindle chose; too small a file has a verdict."""
    sized, rule = target.detail.get("sized"), target.detail.get("size_rule")
    if not sized or not rule or sized["limited_by"] is not None or rule["page_cache_bytes"]:
        return []
    assumed = f" (not reported by {', '.join(rule['assumed'])})" if rule["assumed"] else ""
    text = (
        f"{units.size(sized['size_bytes'])}: direct I/O bypasses memory, and the caches below may hold "
        f"{units.size(rule['hidden_bytes'])}{assumed}; buffered I/O would need "
        f"{units.size(target.detail['cache_rule_bytes'])} (twice all caches)"
    )
    return [QuickFinding(topic="test file", text=text)]


def _short_stroke(target: Target, key: str | None) -> list[QuickFinding]:
    devices = target.detail.get("devices") or []
    if not target.traits.is_one_file or not devices or not (key or "").startswith("hdd-"):
        return []
    whole = sum(device.get("size_bytes") or 0 for device in devices)
    share = target.size_bytes / whole if whole else 1.0
    if share >= SHORT_STROKE:
        return []
    return [
        QuickFinding(
            topic="seeks",
            text=f"the file covers {units.percent(share)} of the disk: its seeks are short, the whole disk is slower",
            level=Level.WARN,
        )
    ]
