"""Clients with a rate of their own: what each got, who starved, and the table of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle.report.terminal.page import page
from spindle.report.terminal.style import Style
from spindle.result.document import decode
from spindle.result.record import Level, RunRecord
from spindle.result.rules import judge
from spindle.result.rules.starved import starved
from tests.program import Ended, Invoke

CLIENTS = """
table = "paraseq"
seconds = 4

[[stream]]
name = "slow"
pattern = "sequential"
size = "64KiB"
workers = 3
worker_rate = "0.65536 MB/s"
per_worker = true

[[stream]]
name = "other"
workers = 2
rate = "20 IOPS"
per_worker = true
"""


def on_model(invoke: Invoke, here: Path, text: str, machine: str = "one-sata") -> RunRecord:
    (here / "w.toml").write_text(text)
    ended: Ended = invoke("run", "w.toml", machine, "--json", "--quiet")
    assert ended.status == 0, ended
    found = decode(ended.out.encode(), "stdout")
    assert isinstance(found, RunRecord)
    return found


def test_each_worker_has_figures_that_add_up_to_the_streams(invoke: Invoke, here: Path) -> None:
    record = on_model(invoke, here, CLIENTS)
    for stream, count, rate in zip(record.figures.streams, (3, 2), (10.0, 10.0), strict=True):
        assert stream.read is not None
        assert [worker.worker for worker in stream.workers] == list(range(count))
        assert sum(worker.requests for worker in stream.workers) == stream.read.requests
        assert sum(worker.bytes for worker in stream.workers) == stream.read.bytes
        assert max(worker.max_ns for worker in stream.workers) == stream.read.latency.max_ns
        assert all(worker.iops == pytest.approx(rate, rel=0.06) for worker in stream.workers)
        assert all(worker.p50_ns <= worker.p99_ns <= worker.max_ns for worker in stream.workers)


@pytest.mark.parametrize("engine", ["io_uring", "pread"])
def test_figures_of_workers_add_up_on_real_files_with_each_engine(engine: str, invoke: Invoke, here: Path) -> None:
    (here / "w.toml").write_text('requests = 400\n[[stream]]\nname = "a"\nworkers = 2\ndepth = 4\nper_worker = true\n')
    ended = invoke("run", "w.toml", "t.bin", "--create", "8MiB", "--engine", engine, "--json", "--quiet")
    if "io_uring cannot be used" in ended.err:
        pytest.skip(ended.err)
    assert ended.status == 0, ended
    (stream,) = json.loads(ended.out)["figures"]["streams"]
    assert [worker["worker"] for worker in stream["workers"]] == [0, 1]
    assert sum(worker["requests"] for worker in stream["workers"]) == stream["read"]["requests"] == 400


def test_clients_that_get_their_rate_in_time_do_not_starve(invoke: Invoke, here: Path) -> None:
    record = on_model(invoke, here, CLIENTS)
    (verdict,) = starved(record)
    assert (verdict.level, verdict.numbers) == (Level.OK, {"clients": 5.0, "starved": 0.0})


def test_clients_of_a_target_that_cannot_serve_them_starve(invoke: Invoke, here: Path) -> None:
    """A disk that makes some 100 random reads a second, asked for 300."""
    text = CLIENTS.replace("workers = 2", "workers = 30").replace("20 IOPS", "300 IOPS")
    record = on_model(invoke, here, text)
    verdict = next(verdict for verdict in record.verdicts if verdict.check == "starved")
    assert verdict.level is Level.WARN
    assert verdict.numbers["starved"] >= 30
    lines = page(record, Style())
    row = next(line.split() for line in lines if line.startswith("other "))
    assert row[1] == row[-1] == "30"
    assert float(row[4]) < 60


def test_a_client_that_is_late_with_one_piece_in_a_hundred_starves_though_it_gets_its_rate(
    invoke: Invoke, here: Path
) -> None:
    record = on_model(invoke, here, CLIENTS)
    slow = record.figures.streams[0]
    late = replace(slow, workers=[replace(slow.workers[0], p99_ns=101_000_000), *slow.workers[1:]])
    streams = [late, *record.figures.streams[1:]]
    (verdict,) = starved(replace(record, figures=replace(record.figures, streams=streams)))
    assert verdict.evidence.startswith("1 of 5 clients starved: slow 0 (100 % of its rate, 99 % within 101 ms)")


def test_the_table_has_the_streams_and_the_clients_that_wait_longest(invoke: Invoke, here: Path) -> None:
    lines = page(on_model(invoke, here, CLIENTS), Style())
    rows = {cells[0]: cells for line in reversed(lines) if (cells := line.split())}
    assert rows["slow"][1:4] == ["3", "1.97", "1.97"]
    assert rows["all"][1] == "5"
    assert sum(line.startswith(("slow ", "other ")) for line in lines) == 2 + 5


def test_streams_without_clients_say_nothing_about_them(invoke: Invoke, here: Path) -> None:
    record = on_model(invoke, here, CLIENTS.replace("per_worker = true", ""))
    assert starved(record) == []
    assert "starved" not in {verdict.check for verdict in judge(record)}
    assert any(line.startswith("stream ") for line in page(record, Style()))


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ('worker_rate = "2 MB/s"\nsize = "4KiB-64KiB"', "as sizes vary"),
        ('worker_rate = "2 IOPS"\nrate = "2 IOPS"', "exclude each other"),
        ('worker_rate = "2 IOPS"\nthink = "1ms"', "exclude each other"),
        ('worker_rate = "slow"', "worker_rate"),
    ],
)
def test_impossible_rates_are_refused_in_one_line(key: str, says: str, invoke: Invoke, here: Path) -> None:
    (here / "w.toml").write_text(f"seconds = 1\n{key}\n")
    ended = invoke("run", "w.toml", "null:1GiB")
    assert ended.status == 2
    assert says in ended.err
    assert ended.err.count("\n") == 1
