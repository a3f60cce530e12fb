"""Slow clients: total and single throughput, delay, and starvation."""

from __future__ import annotations

from spindle.base.numbers import plain
from spindle.report.terminal import streams
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.record import RunRecord
from spindle.result.starved import Client, clients

SHOWN = 8
"""Clients with their own row: those that wait longest."""


def page(record: RunRecord, style: Style) -> list[str]:
    """Return a row for each stream and for all, then the clients that wait longest."""
    groups = [
        (got.name, clients(asked, got))
        for asked, got in zip(record.workload.streams, record.figures.streams, strict=True)
    ]
    everyone = [client for _, found in groups for client in found]
    if not everyone:
        return streams.page(record, style)
    columns = [
        Column("", words=True),
        Column("clients"),
        Column("MB/s"),
        Column("asked"),
        Column("% of it"),
        Column("slowest %"),
        Column("late ms: median"),
        Column("worst p99"),
        Column("max"),
        Column("starved"),
    ]
    rows = [_row(name, found) for name, found in [*groups, ("all", everyone)] if found]
    longest = sorted(everyone, key=lambda client: client.worker.p99_ns / client.period_ns, reverse=True)[:SHOWN]
    head = [
        Column("those who wait longest", words=True),
        Column("MB/s"),
        Column("% of asked"),
        Column("a piece every ms"),
        Column("late ms: median"),
        Column("p99"),
        Column("max"),
        Column("", words=True),
    ]
    return [*table(columns, rows, style), "", *table(head, [_client(client) for client in longest], style)]


def _asked_bytes_per_s(client: Client) -> float:
    """Return the requested rate, by the mean size of its pieces."""
    worker = client.worker
    return client.asked_iops * worker.bytes / worker.requests if worker.requests else 0.0


def _row(name: str, found: list[Client]) -> list[str]:
    got = sum(client.worker.bytes_per_s for client in found)
    share = sum(client.worker.iops for client in found) / sum(client.asked_iops for client in found)
    late = sorted(client.worker.p50_ns for client in found)
    return [
        name,
        str(len(found)),
        plain(got / 1e6),
        plain(sum(_asked_bytes_per_s(client) for client in found) / 1e6),
        plain(100 * share),
        plain(100 * min(client.share for client in found)),
        plain(late[(len(late) - 1) // 2] / 1e6),
        plain(max(client.worker.p99_ns for client in found) / 1e6),
        plain(max(client.worker.max_ns for client in found) / 1e6),
        str(sum(client.starved for client in found)),
    ]


def _client(client: Client) -> list[str]:
    worker = client.worker
    return [
        f"{client.stream} {worker.worker}",
        plain(worker.bytes_per_s / 1e6),
        plain(100 * client.share),
        plain(client.period_ns / 1e6),
        plain(worker.p50_ns / 1e6),
        plain(worker.p99_ns / 1e6),
        plain(worker.max_ns / 1e6),
        "starved" if client.starved else "",
    ]
