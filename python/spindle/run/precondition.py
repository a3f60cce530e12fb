"""Preconditioning: brings flash to its state in use before it is measured. It is filled twice, then written at random.

A new or trimmed drive has spare erased blocks and is faster than it will ever be again. By the SNIA Solid State Storage
Performance Test Specification (v2.0.2), workload-independent preconditioning writes the whole region sequentially
twice; workload-dependent preconditioning then runs the load itself until it is steady.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spindle.base import units
from spindle.result.record import Precondition
from spindle.result.workload import Sequential, Workload, WorkloadStream
from spindle.run import classes
from spindle.run.engine import LoadPart
from spindle.run.errors import RunFailed, Usage
from spindle.run.resolve import ResolvedWorkload, resolve_text
from spindle.run.runner import LocalRunner, region_bytes

if TYPE_CHECKING:
    from spindle.result.record import RunRecord

PASSES = 2
"""Number of fills, as in the PTS."""
FILL_BYTES = 1 << 20
"""Size of the fill's requests; the PTS requires at least 128 KiB."""
SMALL_BYTES = 4096
"""Size of the random writes, and of the fill if the region is smaller than one large request."""
LIMIT = "25m"
"""Time limit of the random writes: 25 rounds of a minute, as in the PTS."""


@dataclass(frozen=True)
class Preconditioning:
    """Options of preconditioning."""

    anyway: bool = False
    """True to do it on a rotating disk too, whose speed does not depend on earlier writes."""
    limit: str = LIMIT
    """Longest time of the random writes."""


def streams(wanted: Preconditioning, resolved: ResolvedWorkload) -> list[WorkloadStream]:
    """The streams that the target must be opened for, besides those of the workload. Raises ConfigError or Usage."""
    return [*_fill(resolved, 1 << 30).spec.streams, *_churn(wanted, resolved).spec.streams]


def carry_out(opened: LocalRunner, wanted: Preconditioning, resolved: ResolvedWorkload) -> Precondition:
    """Precondition a target that was opened for `streams` after those of the workload. Raises RunFailed if stopped."""
    device = opened.device
    if device is not None and classes.is_rotating(device) and not wanted.anyway:
        why = f"{device.name} is a rotating disk: its speed does not depend on earlier writes"
        opened.watch.say(f"spindle: not preconditioned: {why}; `precondition_anyway=` does it")
        return Precondition(skipped=why)
    runner = replace(opened, engine_options=replace(opened.engine_options, log=None), written=None, _run=None)
    region = _region(resolved, opened.size_bytes)
    first = len(resolved.spec.all_streams)
    filled = _run(
        runner,
        _fill(resolved, region),
        LoadPart(first, name="fill"),
        f"preconditioning: {PASSES} x {units.size(region)}",
    )
    churn = _churn(wanted, resolved)
    what = "random writes of 4 KiB" if churn.spec.name == NAME else "the workload itself"
    label = f"preconditioning: {what} until steady, at most {wanted.limit}"
    written = _run(runner, churn, LoadPart(first + 1, name="churn"), label)
    steady = written.figures.steady
    return Precondition(
        region_bytes=region,
        passes=PASSES,
        fill_bytes=filled.figures.total_write_bytes,
        fill_seconds=filled.figures.elapsed_ns / 1e9,
        load=what,
        load_bytes=written.figures.total_write_bytes,
        load_seconds=written.figures.elapsed_ns / 1e9,
        steady=steady is not None,
        window=steady,
        iops=written.figures.iops if steady is None else steady.mean,
    )


NAME = "precondition"


def _run(runner: LocalRunner, step: ResolvedWorkload, part: LoadPart, label: str) -> RunRecord:
    measured = runner.measure(step, label, part)
    if measured.stopped:
        raise RunFailed(f"stopped while preconditioning ({label}): nothing was measured")
    if measured.record.figures.is_partial:
        found = measured.record.figures.ended_by
        raise RunFailed(f"{label}: a write failed ({found}); nothing was measured")
    return measured.record


def _fill(resolved: ResolvedWorkload, region: int) -> ResolvedWorkload:
    size = FILL_BYTES if region >= FILL_BYTES else SMALL_BYTES
    text = f"""
        bytes = "{PASSES * (region // size * size)}B"
        pattern = "sequential"
        size = "{size}B"
        write_fraction = 1.0
        depth = 32
        region = "{_region_text(resolved.spec)}"
    """
    return resolve_text(text, "preconditioning", "precondition-fill")


def _churn(wanted: Preconditioning, resolved: ResolvedWorkload) -> ResolvedWorkload:
    """The workload itself if it writes at random, else random writes of 4 KiB."""
    until = [
        ("until_steady", "true"),
        ("seconds", wanted.limit),
        ("ramp", "0s"),
        ("bytes", "none"),
        ("requests", "none"),
    ]
    if not resolved.spec.phases and _writes_at_random(resolved.spec):
        verified = any(stream.verify for stream in resolved.spec.streams)
        return resolved.with_overrides([*until, ("verify", "false")] if verified else until)
    text = f"""
        pattern = "uniform"
        size = "{SMALL_BYTES}B"
        write_fraction = 1.0
        depth = 32
        region = "{_region_text(resolved.spec)}"
    """
    return resolve_text(text, "preconditioning", NAME, [*until, *_rule(resolved.spec)])


def _rule(spec: Workload) -> list[tuple[str, str]]:
    """The workload's own rule for being steady, if it has one."""
    rule = spec.end.steady_rule
    if rule is None:
        return []
    return [
        ("steady_metric", rule.metric),
        ("steady_window", f"{rule.window_ns}ns"),
        ("steady_range", repr(rule.range)),
        ("steady_slope", repr(rule.slope)),
        ("steady_drift", "none" if rule.drift_per_minute is None else repr(rule.drift_per_minute)),
    ]


def _writes_at_random(spec: Workload) -> bool:
    return any(stream.mix.write > 0 and not isinstance(stream.pattern, Sequential) for stream in spec.streams)


def _region(resolved: ResolvedWorkload, size: int) -> int:
    region = region_bytes(_fill(resolved, 1 << 30).spec.streams[0], size)
    if region < SMALL_BYTES:
        raise Usage(f"`precondition=`: the region is {units.size(region)}: there is nothing to fill")
    return region


def _region_text(spec: Workload) -> str:
    """The region of the workload if all streams share one, else everything."""
    regions = {stream.region for stream in spec.all_streams}
    if len(regions) != 1:
        return "0%-100%"
    region = regions.pop()
    begin, end = (
        f"{place.bytes}B" if hasattr(place, "bytes") else f"{place.fraction * 100:.10g}%"
        for place in (region.offset, region.end)
    )
    return f"{begin}-{end}"
