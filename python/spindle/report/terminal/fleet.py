"""The hosts of a fleet's run: a row each, all together, and those that are slow or missing."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.base import units
from spindle.base.numbers import plain
from spindle.fleet.comparison import FAR, FEWEST, FleetComparison, FleetHost, FleetPhase, MergedOp
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table

MOST_ROWS = 40
"""Hosts with a row of their own; of more, the slowest."""


def fleet_page(found: FleetComparison, style: Style) -> list[str]:
    """Return the page."""
    return list(_page(found, style))


def _page(found: FleetComparison, style: Style) -> Iterator[str]:
    there = max((len(phase.hosts) for phase in found.phases), default=0)
    count = f"{there} of {there + len(found.missing)} hosts"
    yield from style.headline(f"{found.name}: {found.workload} on {count}, {found.created[:16]}Z")
    for one in found.missing:
        record = f" (record {one.run_id})" if one.run_id is not None else ""
        yield from style.wrap(f"{one.reason}{record}", f"{one.state:<7} {one.name}: ", "        ")
    for phase in found.phases:
        yield ""
        if len(found.phases) > 1:
            yield from style.headline(phase.name)
        yield from _phase(phase, style)


def _phase(phase: FleetPhase, style: Style) -> Iterator[str]:
    ops = list(phase.merged)
    rows = sorted(phase.hosts, key=lambda host: host.iops_of_median)[:MOST_ROWS]
    if len(rows) == len(phase.hosts):
        rows = phase.hosts
    latencies = [name for name in ops if name in ("read", "write", "fsync")]
    columns = [
        Column("host", words=True),
        Column("IOPS"),
        Column("of median"),
        Column("MB/s"),
        *(Column(f"{name} {figure} ms") for name in latencies for figure in ("mean", "p99")),
        Column("start ms"),
        Column("", words=True),
    ]
    yield from table(columns, [_row(host, latencies) for host in rows] + [_together(phase, latencies)], style)
    if len(rows) < len(phase.hosts):
        yield f"the {len(rows)} slowest of {len(phase.hosts)} hosts"
    yield from _slow(phase, style)


def _row(host: FleetHost, latencies: list[str]) -> list[str]:
    found = host.values
    return [
        host.name,
        plain(found.get("iops", 0.0)),
        f"{100 * host.iops_of_median:.0f} %",
        plain(found.get("bytes_per_s", 0.0) / 1e6),
        *(
            plain(found[key] / 1e6) if (key := f"{name}.{figure}_ns") in found else ""
            for name in latencies
            for figure in ("mean", "p99")
        ),
        _start(host),
        "slow" if host.slow else "",
    ]


def _start(host: FleetHost) -> str:
    if host.skew_ns is None:
        return ""
    error = f" ± {host.clock_error_ns / 1e6:.2f}" if host.clock_error_ns is not None else ""
    return f"{host.skew_ns / 1e6:+.2f}{error}"


def _together(phase: FleetPhase, latencies: list[str]) -> list[str]:
    ops = [op for name, op in phase.merged.items() if name != "fsync"]
    return [
        "all",
        plain(sum(op.iops for op in ops)),
        "",
        plain(sum(op.bytes_per_s for op in ops) / 1e6),
        *(text for name in latencies for text in _latencies(phase.merged[name])),
        "",
        "",
    ]


def _latencies(op: MergedOp) -> tuple[str, str]:
    p99 = dict(op.percentiles).get(99.0)
    return plain(op.mean_ns / 1e6), "" if p99 is None else plain(p99 / 1e6)


def _slow(phase: FleetPhase, style: Style) -> Iterator[str]:
    yield ""
    slow = [host for host in phase.hosts if host.slow]
    for host in slow:
        figures = ", ".join(
            f"{one.metric} {_value(one.metric, one.value)} (median {_value(one.metric, one.median)})"
            for one in host.slow
        )
        yield from style.wrap(f"{host.name}: {figures}", "slow    ", "        ")
    if slow:
        yield from style.wrap(
            f"Slow: worse than the median by more than {FAR:g} robust standard deviations, and by 5 %. One run of each "
            "host; run again before a drive is changed, and look at it with `spindle doctor` on its host."
        )
    elif len(phase.hosts) < FEWEST:
        yield f"no host is named slow: that takes results of {FEWEST} hosts"
    else:
        yield "no host is slower than its peers"


def _value(metric: str, value: float) -> str:
    return units.duration(round(value)) if metric.endswith("_ns") else f"{plain(value)}/s"
