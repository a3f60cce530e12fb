"""fio's `--status-interval`: the figures so far once per interval, and the result at the end."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from spindle import formats
from spindle.result.record import ImportedRecord
from tests.program import ended, spindle, started

pytestmark = [pytest.mark.promise(21), pytest.mark.alone]

JOB = ["--name=a", "--ioengine=null", "--size=1g", "--rate_iops=200", "--time_based"]


def documents(text: str) -> list[dict[str, Any]]:
    """JSON documents that follow each other."""
    found, decoder = [], json.JSONDecoder()
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def totals(found: list[dict[str, Any]], job: int = 0) -> list[int]:
    return [document["jobs"][job]["read"]["total_ios"] for document in found]


def imported(text: str) -> ImportedRecord:
    [record] = formats.read_bytes(text.encode(), "status")
    assert isinstance(record, ImportedRecord)
    return record


def test_each_report_has_all_so_far_and_the_last_one_is_the_result() -> None:
    done = spindle("fio", *JOB, "--runtime=3", "--status-interval=1", "--output-format=json+", "-q")
    assert done.status == 0, done.err
    found = documents(done.out)
    assert len(found) in (3, 4)  # the third may be at the very end
    counts = totals(found)
    assert counts == sorted(counts)
    for at, count in enumerate(counts[:2], start=1):
        assert count == pytest.approx(200 * at, abs=100)
    assert counts[-1] == pytest.approx(600, abs=10)
    for document in found:
        read = document["jobs"][0]["read"]
        assert sum(read["clat_ns"]["bins"].values()) == read["clat_ns"]["N"] == read["total_ios"]
        assert read["iops"] == pytest.approx(read["total_ios"] / read["runtime"] * 1000, rel=0.01)


def test_reports_are_read_as_one_run_with_the_figures_of_its_end() -> None:
    done = spindle("fio", *JOB, "--runtime=2", "--status-interval=500ms", "--output-format=json", "-q")
    found = documents(done.out)
    assert len(found) >= 3
    record = imported(done.out)
    [stream] = record.streams
    assert stream.operations["read"].iops == found[-1]["jobs"][0]["read"]["iops"]
    steps = [round(each.values["read.iops"] * (each.seconds or 0)) for each in stream.series]
    assert sum(steps) == pytest.approx(totals(found)[-1], abs=len(steps))
    assert all(steps)


def test_each_report_has_future_phases_with_zeros_and_finished_ones_with_their_figures() -> None:
    second = ["--name=b", "--stonewall", *JOB[1:]]
    words = [*JOB, "--runtime=1", *second, "--runtime=1", "--status-interval=300ms", "--output-format=json"]
    done = spindle("fio", *words, "-q")
    found = documents(done.out)
    assert [[job["jobname"] for job in document["jobs"]] for document in found] == [["a", "b"]] * len(found)
    first, second_counts = totals(found, 0), totals(found, 1)
    assert (first, second_counts) == (sorted(first), sorted(second_counts))
    assert second_counts[0] == 0
    begun = [count for count, other in zip(first, second_counts, strict=True) if other]
    assert len(begun) >= 3
    assert set(begun) == {first[-1]}
    assert [stream.name for stream in imported(done.out).streams] == ["a", "b"]


@pytest.mark.parametrize("engine", ["psync", "libaio", "mmap"])
def test_every_engine_reports(tmp_path: Path, engine: str) -> None:
    words = [*(f"--ioengine={engine}" if word.startswith("--ioengine") else word for word in JOB), "--size=1m"]
    words += ["--runtime=1", "--status-interval=300ms", "--output-format=json", "--filename=data"]
    done = spindle("fio", *words, "-q", cwd=tmp_path)
    counts = totals(documents(done.out))
    assert len(counts) >= 3
    assert 0 < counts[0] < counts[-1]


def test_an_output_file_gets_all_reports_and_terse_lines_are_one_run(tmp_path: Path) -> None:
    words = ["--runtime=1", "--status-interval=300ms", "--minimal", "--output=out.txt"]
    done = spindle("fio", *JOB, *words, "-q", cwd=tmp_path)
    assert (done.status, done.out) == (0, "")
    text = (tmp_path / "out.txt").read_text()
    kib = [int(line.split(";")[5]) for line in text.splitlines()]
    assert len(kib) >= 3
    assert kib == sorted(kib)
    [stream] = imported(text).streams
    assert stream.operations["read"].iops == int(text.splitlines()[-1].split(";")[7])


def test_tables_say_that_the_run_is_not_finished(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[a]\nioengine=null\nsize=1g\nrate_iops=200\nruntime=1\ntime_based\n")
    pages = spindle("run", "job.fio", "--status-interval=600ms", "-q", cwd=tmp_path).out.split("\n\n")
    page = "\n\n".join(pages)
    assert page.count("the run goes on: these are its figures so far") == 1
    assert page.index("the run goes on") < page.rindex("1 s measured")


def test_tables_of_phases_say_that_the_run_is_not_finished() -> None:
    second = ["--name=b", "--stonewall", *JOB[1:]]
    words = [*JOB, "--runtime=300ms", *second, "--runtime=1", "--status-interval=600ms"]
    out = spindle("fio", *words, "-q").out
    pages = out.count("of 2 phases")
    assert pages >= 2
    assert out.count("warn    status: the run goes on: these are its figures so far") == pages - 1


def test_a_run_without_a_job_file_reports_too() -> None:
    run = ["run", "randomio", "null:1GiB", "--seconds", "1", "--rate-limit", "200 IOPS", "-q"]
    out = spindle(*run, "--status-interval=300ms", "--output-format=json").out
    assert len(documents(out)) >= 3
    assert imported(out).streams


def test_a_signal_asks_for_a_report(tmp_path: Path) -> None:
    process = started("fio", *JOB, "--runtime=4", "--output-format=json", "-q", cwd=tmp_path)
    time.sleep(2.5)  # the program starts, and the load runs
    process.send_signal(signal.SIGUSR1)
    found = documents(ended(process).out)
    assert len(found) == 2
    assert totals(found)[0] < totals(found)[1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["fio", *JOB, "--status-interval=1us"], "is less than 1 ms"),
        (["fio", *JOB, "--status-interval=often"], "is not a time"),
        (["fio", *JOB, "--status-interval=1", "--json"], "use --output-format"),
        (["run", "randomio", "one-sata", "--status-interval=1"], "in its own time"),
        (["run", "randomio", "null:1g", "--vary", "depth=1,2", "--status-interval=1"], "--vary is many runs"),
        (["run", "randomio", "null:1g", "--find-knee", "--status-interval=1"], "a search is many runs"),
    ],
)
def test_status_reports_are_refused_where_there_are_none(words: list[str], why: str) -> None:
    done = spindle(*words)
    assert done.status == 2
    assert why in done.err
