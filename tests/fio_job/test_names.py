"""Jobs of filecreate, filestat and filedelete: the same number of operations as fio, reported in the same way."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

JOB = """
[global]
nrfiles=10
filesize=4k
group_reporting
[make]
ioengine=filecreate
rw=write
numjobs=2
write_lat_log=made
[small]
stonewall
ioengine=filecreate
filesize=1k
[part]
stonewall
ioengine=filecreate
filesize=16k
number_ios=7
file_service_type=sequential
[sized]
stonewall
ioengine=filecreate
size=20k
[look]
stonewall
ioengine=filestat
file_service_type=random
loops=3
[more]
stonewall
ioengine=filestat
io_size=100k
rate_iops=1000
[turns]
stonewall
ioengine=filestat
filesize=16k
number_ios=7
[ranged]
stonewall
ioengine=filestat
filesize=4k-16k
[remove]
stonewall
ioengine=filedelete
thinktime=1ms
[some]
stonewall
ioengine=filedelete
number_ios=4
rw=randwrite
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders in which Spindle and fio ran the same job file."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    for folder in (ours, theirs):
        (folder / "job.fio").write_text(JOB)
    command = [sys.executable, "-m", "spindle.cli", "run", "job.fio", "--output-format", "fio-json", "-q"]
    run = subprocess.run(command, cwd=ours, capture_output=True, text=True, timeout=600, check=False)
    (ours / "out.json").write_text(run.stdout)
    command = ["fio", "--output-format=json", "--output=out.json", "job.fio"]
    subprocess.run(command, cwd=theirs, capture_output=True, timeout=600, check=True)
    return ours, theirs


def timed(folder: Path) -> dict[str, tuple[str, int]]:
    """For each job, the direction under which its operations are reported, and their number."""
    document: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return {
        job["jobname"]: (kind, job[kind]["clat_ns"]["N"])
        for job in document["jobs"]
        for kind in ("read", "write")
        if job[kind]["clat_ns"]["N"]
    }


def test_each_job_does_as_many_operations_as_in_fio(folders: tuple[Path, Path]) -> None:
    ours, theirs = map(timed, folders)
    assert ours == theirs
    assert ours == {
        "make": ("write", 20),
        "small": ("read", 3),
        "part": ("read", 2),
        "sized": ("read", 5),
        "look": ("read", 30),
        "more": ("read", 25),
        "turns": ("read", 7),
        "ranged": ("read", 10),
        "remove": ("read", 10),
        "some": ("write", 4),
    }


def test_rates_and_figures_are_reported_for_operations_on_names(folders: tuple[Path, Path]) -> None:
    for job in json.loads((folders[0] / "out.json").read_text())["jobs"]:
        figures = job["write" if job["jobname"] in ("make", "some") else "read"]
        assert figures["total_ios"] == figures["clat_ns"]["N"]
        assert figures["iops"] > 0
        assert figures["io_bytes"] == 0
        assert figures["clat_ns"]["percentile"]["50.000000"] > 0


def test_logs_have_a_line_for_each_file_of_a_clone(folders: tuple[Path, Path]) -> None:
    ours, theirs = (
        {name: (folder / name).read_text().splitlines() for name in ("made_clat.1.log", "made_clat.2.log")}
        for folder in folders
    )
    for name in ours:
        assert len(ours[name]) == len(theirs[name]) == 10
        for lines in (ours[name], theirs[name]):
            assert {tuple(line.split(", ")[2:]) for line in lines} == {("1", "0", "0")}


def test_no_file_is_left_behind(folders: tuple[Path, Path]) -> None:
    assert not [file.name for file in folders[0].iterdir() if file.suffix not in (".fio", ".json", ".log")]
