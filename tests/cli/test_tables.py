"""The pages a person reads: the field's shapes, without colour in a pipe, in blocks where it is narrow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle.report.terminal import verdicts
from spindle.report.terminal.drive import catalogue
from spindle.report.terminal.page import SHAPES, page
from spindle.report.terminal.style import Style
from spindle.result.record import Knee, KneePoint, KneeRecord, Level, Record, RunRecord, Tool, Verdict
from spindle.result.rules import judged
from tests.cli.records import counters, figures, op, quiet_read, record, series, stream
from tests.program import Invoke

PIPE = Style()
READ_ONLY = [("write_fraction", "0"), ("fsync_fraction", "0")]


def text(found: Record, style: Style = PIPE) -> str:
    return "\n".join(page(found, style))


def mixed_record() -> RunRecord:
    fsync = op(4.4, size=0, mean_ms=30.0)
    found = stream(op(171.0, mean_ms=81.8), op(42.8, mean_ms=17.1), fsync=fsync)
    return record(figures(found))


def test_randomio_has_its_own_columns_to_the_character() -> None:
    lines = text(mixed_record()).splitlines()
    head = lines.index("  total |  read:         latency (ms)       |  write:        latency (ms)")
    assert lines[head + 1] == "   iops |   iops   min    avg    max   sdev |   iops   min    avg    max   sdev"
    assert lines[head + 2] == "--------+-----------------------------------+----------------------------------"
    row = lines[head + 3]
    assert row == "  213.8 |  171.0  20.4   81.8  654.4   40.9 |   42.8 4.275   17.1  136.8  8.550" or re.fullmatch(
        r"  213\.8 \|  171\.0 +20\.[45] +81\.8 +654\.4 +40\.9 \|   42\.8 +4\.\d+ +17\.1 +136\.8 +8\.5\d*", row
    )
    assert [at for at, char in enumerate(row) if char == "|"] == [8, 44]
    assert len(row) == len(lines[head + 1])


def test_randomio_shows_latencies_far_below_a_millisecond() -> None:
    fast = record(figures(stream(op(90_000.0, mean_ms=0.0871))), overrides=READ_ONLY)
    row = next(line for line in text(fast).splitlines() if line.startswith("90000.0"))
    assert "0.087" in row
    assert row.index("|") == 8


def test_randomio_shows_fsyncs_separately() -> None:
    assert "fsync: 4.40 a second" in text(mixed_record())


def test_operations_without_a_column_of_randomio_are_shown_below_the_table() -> None:
    found = stream(op(100.0), trim=op(30.0, mean_ms=2.0), zero=op(20.0, mean_ms=3.0))
    shown = text(record(figures(found)))
    assert "trim: 30.0 a second, 0.500 / 2.00 / 16.0 / 1.00 ms" in shown
    assert "zero: 20.0 a second, 0.750 / 3.00 / 24.0 / 1.50 ms" in shown
    assert "  150.0 |" in shown


def test_seeker_counts_writes_as_well() -> None:
    found = record(figures(stream(op(50.0, mean_ms=10.0), op(50.0, mean_ms=20.0))), preset="seeker")
    assert "Results: 100 seeks/second, 15.0 ms random access time" in text(found)


def test_seeker_shows_seeks_per_second_and_best_and_worst() -> None:
    found = record(figures(stream(op(73.8, mean_ms=13.5))), preset="seeker")
    assert "Results: 73.8 seeks/second, 13.5 ms random access time (best 3.38 ms, worst 108 ms)" in text(found)


def test_dd_shows_throughput_and_the_times_of_the_run() -> None:
    found = record(figures(stream(op(500.0, size=1 << 20))), preset="sdd-read")
    shown = text(found)
    assert re.search(r"main +read +524 +500 +29\.3 GiB", shown)
    assert "real 60.00 s, user 1.00 s, sys 2.00 s" in shown


def test_hddtest_shows_each_second() -> None:
    found = record(figures(stream(op(1600.0, size=65536)), series=series([100e6, 110e6, 90e6])), preset="hddtest")
    rows = [line.split() for line in text(found).splitlines() if re.match(r"\s+\d\.00 ", line)]
    assert [row[:2] for row in rows] == [["1.00", "100"], ["2.00", "110"], ["3.00", "90.0"]]


def test_a_long_series_is_shown_in_fewer_rows() -> None:
    found = record(figures(stream(op(1600.0)), series=series([100e6] * 600)), preset="hddtest")
    assert len(text(found).splitlines()) < 90


def test_every_stream_and_operation_has_its_row_with_percentiles() -> None:
    streams = [stream(op(100.0), name="sequential"), stream(op(2000.0, mean_ms=0.5), name="random")]
    found = record(figures(*streams), preset="mixed")
    shown = text(found)
    assert re.search(r"stream +op +IOPS +MB/s +mean us +p50 +p90 +p99 +p99\.9 +max", shown)
    assert re.search(r"random +read +2000 +8\.19 +500", shown)


@pytest.mark.parametrize("preset", ["randomio", "seeker", "sdd-read", "hddtest", "oltp"])
@pytest.mark.parametrize("width", [20, 40, 79, 80, 200])
def test_no_line_is_wider_than_the_terminal(preset: str, width: int) -> None:
    found = record(figures(stream(op(1234.5))), devices=[counters(0)], preset=preset)
    widest = max(text(replace(found), Style(width=width)).splitlines(), key=len)
    assert len(widest) <= max(width, 34), widest  # below that words no longer fit


def test_a_pipe_gets_no_colour_and_a_terminal_does() -> None:
    bad = judged(record(figures(stream(op(16_000.0))), devices=[counters(0)], overrides=READ_ONLY))
    assert "\x1b" not in text(bad)
    assert "\x1b[31;1minvalid\x1b[0m" in text(bad, Style(width=80, colour=True))


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_invalid_figures_are_never_shown_before_their_verdict(shape: str) -> None:
    bad = record(figures(stream(op(16_000.0))), devices=[counters(0)], overrides=READ_ONLY)
    bad = replace(bad, workload=replace(bad.workload, table=shape))
    shown = text(judged(bad))
    assert shown.index("invalid cache-share") < min(
        found.start()
        for found in re.finditer(r"iops|ops/s|IOPS +MB/s|Results:|MB/s +IOPS|second|K/sec|reclen", shown, re.I)
    )


def points(*pairs: tuple[int, float, float]) -> list[KneePoint]:
    return [
        KneePoint(
            outstanding=outstanding,
            iops=iops,
            bytes_per_s=iops * 4096,
            mean_latency_ns=mean_ms * 1e6,
            p99_latency_ns=round(mean_ms * 3e6),
            run=quiet_read().id,
        )
        for outstanding, iops, mean_ms in pairs
    ]


def knee_record(levelled_off: bool = True) -> KneeRecord:
    found = points((1, 100, 10.0), (2, 190, 10.5), (4, 300, 13.3), (8, 310, 26.0), (16, 311, 51.0))
    return KneeRecord(
        id=quiet_read().id,
        started="2026-01-01T00:00:00Z",
        tool=Tool(version="0.1.0"),
        sweep=Knee(points=found, knee=4, levelled_off=levelled_off),
        runs=[quiet_read()],
        verdicts=[],
    )


def test_a_sweep_is_a_table_a_plot_and_a_sentence() -> None:
    shown = text(knee_record())
    assert re.search(r" 4 +300 +1\.23 +13\.3 +39\.9 +<- knee", shown)
    assert "The knee is at 4 outstanding: 300 IOPS at 13.3 ms, 96.5 % of the highest throughput" in shown
    for label in ("o1", "o2", "#4", "o8", "o16"):
        assert label in shown
    assert "311 IOPS" in shown


def test_the_plot_has_latency_upwards_and_throughput_to_the_right() -> None:
    lines = text(knee_record()).splitlines()
    row = {
        label: next(at for at, line in enumerate(lines) if re.search(rf"{label}(?!\d)", line))
        for label in ("o1", "#4", "o16")
    }
    column = {label: lines[at].index(label) for label, at in row.items()}
    assert row["o16"] < row["#4"] < row["o1"]
    assert column["o1"] < column["#4"] <= column["o16"]


def test_a_narrow_terminal_gets_the_table_without_the_plot() -> None:
    shown = text(knee_record(), Style(width=30))
    assert "o16" not in shown
    assert "311" in shown


@pytest.mark.promise(27)
def test_the_worst_of_many_warnings_is_shown_and_the_others_are_named() -> None:
    def warn(check: str, text: str = "seen 1") -> Verdict:
        return Verdict(check=check, level=Level.WARN, evidence=text, advice="do this")

    many = [warn("too-short"), warn("working-set"), warn("steady", "it fell"), warn("before-cpu"), warn("saturated")]
    assert verdicts.warnings(many, Style()) == [
        "warn    steady: it fell -> do this",
        "        and 4 more warnings, with `why=True`: working-set, before-cpu, too-short, saturated",
    ]
    assert len(verdicts.warnings(many, Style(why=True))) == 5
    assert verdicts.warnings(many[:1], Style()) == ["warn    too-short: seen 1 -> do this"]
    assert verdicts.warnings([], Style()) == []


@pytest.mark.promise(27)
def test_invalid_verdicts_are_always_shown_in_full(invoke: Invoke, here: Path) -> None:
    asked = ("run", "randomio", "t.bin", "--create", "4MiB", "--buffered", "--seconds", "0.3", "--write-fraction", "0")
    short = invoke(*asked, "-o", "saved.json", "--quiet").out
    assert sum(line.startswith("warn ") for line in short.splitlines()) == 1
    assert "more warnings, with --why:" in short
    whole = invoke("show", "saved.json", "--why").out
    assert sum(line.startswith("warn ") for line in whole.splitlines()) > 2
    assert [line for line in whole.splitlines() if line.startswith("invalid")] == [
        line for line in short.splitlines() if line.startswith("invalid")
    ]


def test_the_catalogue_of_drives_stays_a_table_at_80_columns() -> None:
    lines = catalogue(Style(width=80))
    assert lines[0].split()[:3] == ["drive", "size", "rpm"]
    assert "about" not in lines[0]
    assert all(len(line) <= 80 for line in lines)
    assert "spindle drives show NAME" in lines[-1]
    assert "about" in catalogue(Style(width=200))[0]


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_stream_that_completed_nothing_is_on_the_page_of_every_table(shape: str) -> None:
    """A row that is left out looks like a load that was never asked for."""
    shown = SHAPES[shape](record(figures(stream(None))), PIPE)
    assert any(re.search(r"\b0(\.0)?\b|\bno (seek|stream|operation)", line) for line in shown), shown


def test_commits_whose_sync_did_not_return_are_not_shown_as_durable(invoke: Invoke) -> None:
    ended = invoke("run", "wal", "one-sata", "--seconds", "0.002", "--quiet")
    rows = {words[0]: words[1:] for line in ended.out.splitlines() if (words := line.split())}
    assert rows["group"] == ["0", "sync"]
    assert rows["dsync"] == ["0", "write"]
