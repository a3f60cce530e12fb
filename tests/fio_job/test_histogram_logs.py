"""`write_hist_log`: as fio writes it, and as fio's own tools read it."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spindle.formats import fio_log
from spindle.formats.fio_bins import BUCKETS, bucket_of
from spindle.formats.fio_job import convert_text
from spindle.formats.fio_log import Job, LogOrder
from spindle.result.completions import Completion
from tests.program import spindle

pytestmark = pytest.mark.promise(21)

TOOLS = Path("/usr/share/doc/fio")
"""Where Debian has them."""
JOB = """
[global]
ioengine=null
size=1g
bs=4k
runtime=2
time_based
write_hist_log=h
log_hist_msec=500
[mix]
rw=randrw
rate_iops=400,200
[reads]
rw=randread
rate_iops=400
log_hist_coarseness=3
write_hist_log=r
[none]
rw=randread
rate_iops=400
log_hist_msec=0
write_hist_log
"""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the logs of the jobs."""
    folder = tmp_path_factory.mktemp("ours")
    (folder / "job.fio").write_text(JOB)
    ended = spindle("run", "job.fio", "--output-format", "json+", "-q", cwd=folder)
    (folder / "out.json").write_text(ended.out)
    assert (folder / "h_clat_hist.1.log").exists(), ended.err
    return folder


def lines_of(file: Path) -> list[list[int]]:
    return [[int(field) for field in line.split(", ")] for line in file.read_text().splitlines()]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_logs_have_the_names_and_the_columns_of_fio(ours: Path, tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    subprocess.run(["fio", "job.fio"], cwd=tmp_path, capture_output=True, timeout=120, check=True)
    found = {file.name: lines_of(file) for file in ours.glob("*.log")}
    theirs = {file.name: lines_of(file) for file in tmp_path.glob("*.log")}
    assert set(found) == set(theirs) == {"h_clat_hist.1.log", "r_clat_hist.2.log", "h_clat_hist.3.log"}
    for name, lines in theirs.items():
        assert {len(line) for line in found[name]} == {len(line) for line in lines}
        assert {(line[1], line[2]) for line in found[name]} == {(line[1], line[2]) for line in lines}
    assert found["h_clat_hist.3.log"] == theirs["h_clat_hist.3.log"] == []


def test_every_request_is_in_the_bucket_of_its_latency(ours: Path) -> None:
    jobs = json.loads((ours / "out.json").read_text())["jobs"]
    for name, part, direction in (("h_clat_hist.1.log", "read", 0), ("h_clat_hist.1.log", "write", 1)):
        lines = [line for line in lines_of(ours / name) if line[1] == direction]
        assert [line[0] for line in lines[:2]] == [500, 1000]
        sums = [sum(counts) for counts in zip(*(line[3:] for line in lines), strict=True)]
        report = next(job for job in jobs if job[part]["total_ios"])[part]
        bins = {bucket_of(int(ns)): count for ns, count in report["clat_ns"]["bins"].items()}
        assert {bucket: count for bucket, count in enumerate(sums) if count} == bins


def test_coarser_buckets_are_sums_of_neighbours() -> None:
    latencies = [0, 127, 128, 300, 70_000, 20 << 30]
    logs: dict[int, list[int]] = {}
    for coarseness in (0, 6):
        order = LogOrder("hist", "x", 1000, coarseness=coarseness)
        done = [Completion(5, ns, ns, "read", 0, 0, 4096, "a", 0) for ns in latencies]
        file = Lines()
        fio_log.write(done, {("a", 0): Job(1, (0,), (order,))}, {"x_clat_hist.1.log": file})
        logs[coarseness] = [int(field) for field in file.text.split(", ")][3:]
    assert [len(counts) for counts in logs.values()] == [BUCKETS, BUCKETS >> 6]
    assert [at for at, count in enumerate(logs[0]) if count] == sorted({bucket_of(ns) for ns in latencies})
    assert logs[6] == [sum(logs[0][at : at + 64]) for at in range(0, BUCKETS, 64)]


class Lines(io.StringIO):
    """A log file in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)


def test_a_coarseness_that_fio_does_not_have_is_refused() -> None:
    found = convert_text("[a]\nfilename=/x\nsize=1m\nwrite_hist_log=x\nlog_hist_coarseness=7\n", "j").findings
    assert [each.option for each in found if each.is_error] == ["log_hist_coarseness"]


@pytest.mark.parametrize(
    ("name", "options", "needs"),
    [("fio-histo-log-pctiles.py", [], "six"), ("fiologparser_hist.py", ["--group_nr=29", "--interval=500"], "pandas")],
)
def test_fio_s_own_tools_read_it(ours: Path, tmp_path: Path, name: str, options: list[str], needs: str) -> None:
    tool = unpacked(name, tmp_path)
    command = [interpreter_with(needs), str(tool), *options, "h_clat_hist.1.log"]
    ended = subprocess.run(command, cwd=ours, capture_output=True, text=True, timeout=60, check=True)
    rows = [line for line in ended.stdout.splitlines() if re.match(r" *\d+, *\d+,", line)]
    samples = sum(int(row.split(",")[1]) for row in rows)
    assert samples >= sum(sum(line[3:]) for line in lines_of(ours / "h_clat_hist.1.log"))


def unpacked(name: str, folder: Path) -> Path:
    packed = TOOLS / f"{name}.gz"
    if not packed.exists():
        pytest.skip(f"{packed} is not there")
    tool = folder / name
    tool.write_bytes(gzip.decompress(packed.read_bytes()))
    return tool


def interpreter_with(module: str) -> str:
    for interpreter in (sys.executable, "/usr/bin/python3"):
        found = subprocess.run([interpreter, "-c", f"import {module}"], capture_output=True, check=False)
        if found.returncode == 0:
            return interpreter
    pytest.skip(f"{module} is not installed")
