"""`spindle convert`, and `spindle run` with a job file, as processes of their own; amounts against fio itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

JOB = """
[global]
size=1m
bs=8k
[first]
rw=write
numjobs=2
filename=data
[second]
rw=randrw
norandommap
filename=data
[third]
rw=read
io_size=100k
bs=16k
filename=data
[fourth]
rw=randread
norandommap
loops=3
size=1008k
bs=16k
filename=data
[fifth]
rw=write
number_ios=17
filename=data
[sixth]
rw=read:16k
bs=16k
filename=data
"""


def spindle(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spindle.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_workload_that_is_written_means_what_the_job_file_means(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    assert spindle(tmp_path, "convert", "job.fio", "-o", "job.toml").returncode == 0
    runs = [
        spindle(tmp_path, "run", file, "data", "--create", "1MiB", "--json", "-q") for file in ("job.fio", "job.toml")
    ]
    workloads = [json.loads(run.stdout)["workload"] for run in runs]
    assert workloads[0] == workloads[1]
    assert not (tmp_path / "data").exists()


def test_amounts_are_those_of_fio(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    (tmp_path / "job.fio").write_text(JOB)
    run = spindle(tmp_path, "run", "job.fio", "--create", "1MiB", "--json", "-q")
    fio = subprocess.run(
        ["fio", "--output-format=json", "job.fio"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    ours: dict[str, int] = {}
    for stream in json.loads(run.stdout)["figures"]["streams"]:
        name = stream["name"].split("-")[0]
        ours[name] = ours.get(name, 0) + sum(stream[op]["bytes"] for op in ("read", "write") if stream.get(op))
    theirs: dict[str, int] = {}
    for job in json.loads(fio.stdout)["jobs"]:
        moved = job["read"]["io_bytes"] + job["write"]["io_bytes"]
        theirs[job["jobname"]] = theirs.get(job["jobname"], 0) + moved
    assert ours == theirs
    assert ours == {
        "first": 2 << 20,
        "second": 1 << 20,
        "third": 7 << 14,
        "fourth": 3 * 63 << 14,
        "fifth": 17 << 13,
        "sixth": 1 << 20,
    }


def test_phases_are_written_one_by_one_and_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(
        "[a]\nrw=write\nsize=1m\nfilename=x\n[b]\nstonewall\nrw=write\nsize=1m\nfilename=x\n"
    )
    run = spindle(tmp_path, "run", "job.fio")
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "job.fio:6: error: stonewall: 2 phases" in run.stderr
    assert "spindle convert job.fio" in run.stderr
    assert spindle(tmp_path, "convert", "job.fio", "-o", "job.toml").returncode == 0
    assert {path.name for path in tmp_path.glob("*.toml")} == {"job-1.toml", "job-2.toml"}


def test_each_reason_has_a_line_and_the_status_is_usage(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[a]\nrw=read\nsize=1m\nfilename=x\ndirect=1\nverify=md5\nruntim=3\n")
    for verb in ("run", "convert"):
        ended = spindle(tmp_path, verb, "job.fio")
        assert ended.returncode == 2
        assert [line.split(": ")[:4] for line in ended.stderr.splitlines()] == [
            ["spindle", "job.fio:6", "error", "verify"],
            ["spindle", "job.fio:7", "error", "runtim"],
        ]
    document = json.loads(spindle(tmp_path, "convert", "job.fio", "--json").stdout)
    assert document["runs"] is False
    assert [finding["option"] for finding in document["findings"]] == ["verify", "runtim"]


def test_a_job_file_writes_to_a_device_only_with_erase(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[a]\nrw=write\nsize=4k\nfilename=/dev/null-there-is-none\n")
    assert spindle(tmp_path, "run", "job.fio").returncode != 0
    (tmp_path / "there").write_bytes(bytes(8192))
    ended = spindle(tmp_path, "run", "job.fio", "there")
    assert ended.returncode == 3
    assert (tmp_path / "there").read_bytes() == bytes(8192)


def test_without_a_target_anywhere_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[a]\nrw=read\nsize=1m\n")
    ended = spindle(tmp_path, "run", "job.fio")
    assert ended.returncode == 2
    assert "give TARGET" in ended.stderr
    assert "missing argument 'TARGET'" in spindle(tmp_path, "run", "seeker").stderr
