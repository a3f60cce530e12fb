"""Output of a job file: JSON and logs, equal to those that fio writes for the same jobs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documents import structure
from tests.program import spindle

FIO_PLOT = shutil.which("fio-plot", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
"""Beside the interpreter, whether or not its environment is the shell's."""

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/fio-jobs.md").read_text()

JOB = """
[global]
filename=data
size=1m
direct=1
ioengine=libaio
percentile_list=50:99:99.9
[reads]
rw=randread
bs=8k
numjobs=2
group_reporting
[mix]
rw=randrw
rwmixread=70
bs=4k
iodepth=4
write_bw_log=m
write_lat_log=m
write_iops_log
new_group
[later]
stonewall
rw=write
fsync=4
bs=64k
write_lat_log=l
log_avg_msec=10
log_offset=1
per_job_logs=0
"""

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders in which Spindle and fio ran the same job file."""
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    for folder in (ours, theirs):
        (folder / "job.fio").write_text(JOB)
    run = spindle("run", "job.fio", "--output-format", "fio-json", "-q", cwd=ours)
    (ours / "out.json").write_text(run.out)
    command = ["fio", "--output-format=json", "--output=out.json", "job.fio"]
    subprocess.run(command, cwd=theirs, capture_output=True, timeout=120, check=True)
    return ours, theirs


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return found


@needs_fio
def test_every_key_is_fio_s_own_and_absent_keys_are_documented(folders: tuple[Path, Path]) -> None:
    ours, theirs = (structure({**document(folder), "disk_util": []}) for folder in folders)
    assert {key: ours[key] for key in ours if key in theirs} == {key: theirs[key] for key in theirs if key in ours}
    assert set(ours) - set(theirs) == {"/jobs[]/job_start"}
    rows = re.findall(r"^\| (`.*?) \|", PAGE.split("### JSON")[1].split("\n## ")[0], flags=re.M)
    documented = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    assert {key.split("/")[2] for key in set(theirs) - set(ours)} <= documented


@needs_fio
def test_jobs_groups_amounts_and_percentiles_are_those_of_fio(folders: tuple[Path, Path]) -> None:
    def amounts_of(folder: Path) -> list[tuple[Any, ...]]:
        return [
            (
                job["jobname"],
                job["groupid"],
                job["read"]["total_ios"] + job["write"]["total_ios"],
                job["read"]["io_bytes"] + job["write"]["io_bytes"],
                job["job options"],
                sorted(job["read"]["clat_ns"].get("percentile", {})),
            )
            for job in document(folder)["jobs"]
        ]

    assert amounts_of(folders[0]) == amounts_of(folders[1])
    assert document(folders[0])["global options"] == document(folders[1])["global options"]
    assert [entry[1:4] for entry in amounts_of(folders[0])] == [(0, 256, 2 << 20), (1, 256, 1 << 20), (2, 16, 1 << 20)]


@needs_fio
def test_logs_have_the_names_and_the_columns_of_fio(folders: tuple[Path, Path]) -> None:
    ours, theirs = ({file.name: file.read_text().splitlines() for file in each.glob("*.log")} for each in folders)
    assert set(ours) == set(theirs)
    assert {"m_bw.3.log", "m_lat.3.log", "m_clat.3.log", "mix_iops.3.log", "l_lat.log"} <= set(ours)
    for name in ("m_bw.3.log", "m_lat.3.log", "mix_iops.3.log"):
        assert len(ours[name]) == len(theirs[name]) == 256
        for lines in (ours[name], theirs[name]):
            columns = [line.split(", ") for line in lines]
            assert {column[2] for column in columns} == {"0", "1"}
            assert {tuple(column[3:]) for column in columns} == {("4096", "0")}
    assert {len(line.split(", ")) for line in ours["l_lat.log"]} == {6}
    assert ours["m_slat.3.log"] == []


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with the file names of fio-plot: two depths, two numbers of jobs."""
    folder = tmp_path_factory.mktemp("plot")
    (folder / "results").mkdir()
    for depth in (1, 4):
        for jobs in (1, 2):
            name = f"randread-iodepth-{depth}-numjobs-{jobs}"
            (folder / "job.fio").write_text(
                f"[randread]\nfilename=data\nrw=randread\nbs=4k\nsize=1m\ndirect=1\nioengine=libaio\niodepth={depth}\n"
                f"numjobs={jobs}\ngroup_reporting\nwrite_bw_log={name}\nwrite_lat_log={name}\nwrite_iops_log={name}\n"
            )
            run = spindle("run", "job.fio", "--output-format", "fio-json", "-q", cwd=folder)
            (folder / f"results/randread-{depth}-{jobs}.json").write_text(run.out)
            assert (folder / f"{name}_lat.{jobs}.log").exists(), run.err
    for log in folder.glob("*.log"):
        log.rename(folder / "results" / log.name)
    return folder


@pytest.mark.skipif(FIO_PLOT is None, reason="fio-plot is not installed")
@pytest.mark.parametrize(
    "graph",
    [
        ["-L", "-t", "iops"],
        ["-l", "-n", "1", "--show-cpu"],
        ["-N", "-d", "4", "--show-data"],
        ["-H", "-d", "1", "-n", "1"],
        ["-g", "-t", "iops", "lat", "bw", "-d", "1", "4", "-n", "2"],
    ],
    ids=lambda graph: graph[0],
)
def test_fio_plot_draws_the_json_without_an_error(measured: Path, graph: list[str]) -> None:
    picture = measured / f"picture{graph[0]}.png"
    command = [str(FIO_PLOT), "-i", "results", "-T", "title", "-r", "randread", *graph, "-o", picture.name]
    run = subprocess.run(command, cwd=measured, capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert run.stdout.strip() == f"Saving to file {picture.name}"
    assert picture.read_bytes().startswith(b"\x89PNG")
