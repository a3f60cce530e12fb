"""Runs as tables of other tools: the readers of those tables find the figures."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle.report.terminal.shapes import page
from spindle.result.record import Level, RunRecord, Verdict
from tests.program import Ended
from tests.report.subjects import modelled, randomio, saved


def stream(target: str, write: str, size: str = "1MiB", preset: str = "sdd-read") -> RunRecord:
    record = modelled(preset, target, ("write_fraction", write), ("size", size), ("seconds", "3"))
    assert isinstance(record, RunRecord)
    return record


def single() -> RunRecord:
    record = randomio()
    assert isinstance(record, RunRecord)
    return record


def test_the_shape_of_fio_has_its_lines_with_the_figures_of_the_record() -> None:
    record = single()
    text = "\n".join(page("fio", [record]))
    assert text.startswith("main: (g=0): rw=randrw, bs=(R) 64.0KiB-64.0KiB, (W) 64.0KiB-64.0KiB")
    read = record.figures.streams[0].read
    assert read is not None
    line = re.search(r"  read: IOPS=(\d+), BW=([\d.]+)MiB/s \(([\d.]+)MB/s\)\(\d+MiB/(\d+)msec\)", text)
    assert line is not None
    assert int(line[1]) == round(read.iops)
    assert float(line[2]) == pytest.approx(read.bytes_per_s / (1 << 20), rel=0.01)
    assert float(line[3]) == pytest.approx(read.bytes_per_s / 1e6, rel=0.01)
    percentile = re.search(r"99\.00th=\[ *(\d+)\]", text)
    assert percentile is not None
    assert int(percentile[1]) == pytest.approx((read.latency.percentile(99.0) or 0) / 1e6, rel=0.01, abs=1)


def test_fio_itself_prints_the_same_lines(tmp_path: Path) -> None:
    """Check that each line with figures is a line of fio too, apart from the figures."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    arguments = "--rw=randrw --bs=64k --size=1M --ioengine=psync --fsync=2 --direct=0 --loops=4"
    fio = subprocess.run(
        ["fio", "--name=main", f"--filename={tmp_path / 'f'}", *arguments.split()],
        capture_output=True,
        text=True,
        check=True,
    )
    heads = {head(line) for line in fio.stdout.splitlines()}
    ours = {head(line) for line in page("fio", [replace(single(), verdicts=[])]) if line.strip()}
    drives = {found for found in ours if found.startswith("  drive")}
    assert ours - drives - {"     lat percentiles ()", "   bw (  KiB/s)", "   iops        "} <= heads
    assert {"main", "  read", "  write", "     lat ()", "    sync ()", "   READ", "  WRITE"} <= ours


def head(line: str) -> str:
    """The text before the first colon, without the unit."""
    return re.sub(r"\((nsec|usec|msec)\)", "()", line.partition(":")[0]) if ":" in line else line[:6]


def test_the_shape_of_bonnie_has_writes_reads_and_seeks_in_its_columns() -> None:
    runs = [stream("one-sata", "1"), stream("one-sata", "0"), single()]
    lines = page("bonnie", [replace(run, verdicts=[], target=replace(run.target, asked="here")) for run in runs])
    assert lines[0].index("---------Sequential Output---------") == 20
    assert all(len(line) == 91 for line in lines[:3])
    figures = lines[3]
    write, read, seeks = runs[0].figures.bytes_per_s, runs[1].figures.bytes_per_s, runs[2].figures.iops
    assert int(figures[31:39]) == round(write / 1024)
    assert int(figures[67:75]) == round(read / 1024)
    assert float(figures[79:87]) == pytest.approx(seeks, abs=0.06)
    assert figures[19:27].strip() == figures[43:51].strip() == figures[55:63].strip() == ""


def test_the_shape_of_iozone_has_a_row_for_each_record_size() -> None:
    runs = [stream("one-sata", write, size) for size in ("64KiB", "1MiB") for write in ("0", "1")]
    runs += [stream("one-sata", "0", size, "hddtest") for size in ("64KiB", "1MiB")]
    lines = page("iozone", [replace(run, verdicts=[]) for run in runs])
    rows = [line for line in lines if re.match(r" *\d", line)]
    assert [int(row[12:20]) for row in rows] == [64, 1024]
    for at, row in enumerate(rows):
        assert int(row[20:30]) == round(runs[2 * at + 1].figures.bytes_per_s / 1024)
        assert int(row[40:50]) == round(runs[2 * at].figures.bytes_per_s / 1024)
        assert int(row[60:70]) == round(runs[4 + at].figures.bytes_per_s / 1024)


@pytest.mark.parametrize("shape", ["fio", "bonnie", "iozone", "randomio"])
def test_no_shape_shows_a_figure_without_its_verdict(invoke: Callable[..., Ended], tmp_path: Path, shape: str) -> None:
    bad = Verdict(check="cache-share", level=Level.INVALID, evidence="99 % came from a cache", advice="")
    name = saved(tmp_path, replace(single(), verdicts=[bad]))[0]
    for arguments in (("show", name, "--shape", shape), ("report", name, "--shape", shape)):
        ended = invoke(*arguments)
        assert ended.status == 1
        assert "invalid: " in ended.out
        assert "99 % came from a cache" in ended.out


def test_shapes_of_other_tools_are_text_only(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    name = saved(tmp_path, single())[0]
    assert "--shape is for text" in invoke("report", name, "--shape", "fio", "--format", "html").complaint
    assert "exclude each other" in invoke("show", name, "--shape", "fio", "--json").complaint
