"""`spindle convert`, and `spindle run` with a job file, as separate processes; amounts are compared with fio itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from spindle.result.completions import completions
from tests.program import spindle

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


def test_the_converted_workload_is_equivalent_to_the_job_file(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    assert spindle("convert", "job.fio", "-o", "job.toml", cwd=tmp_path).status == 0
    runs = [
        spindle("run", file, "data", "--create", "1MiB", "--json", "-q", cwd=tmp_path)
        for file in ("job.fio", "job.toml")
    ]
    workloads = [json.loads(run.out)["workload"] for run in runs]
    assert workloads[0] == workloads[1]
    assert not (tmp_path / "data").exists()


def test_amounts_are_those_of_fio(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    (tmp_path / "job.fio").write_text(JOB)
    run = spindle("run", "job.fio", "--create", "1MiB", "--json", "-q", cwd=tmp_path)
    fio = subprocess.run(
        ["fio", "--output-format=json", "job.fio"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    ours: dict[str, int] = {}
    for stream in json.loads(run.out)["figures"]["streams"]:
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


ORDERED = """
[global]
filename=data
bs=8k
size=256k
[onwards]
rw=write
[gaps]
stonewall
rw=read:8k
[behind]
stonewall
rw=read
offset=64k
size=96k
[odd]
stonewall
rw=read
bs=12k
io_size=600k
[both]
stonewall
rw=rw
rwmixread=100
bs=4k,16k
"""


def test_offsets_that_follow_from_the_job_are_those_of_fio(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    (tmp_path / "job.fio").write_text(ORDERED)
    spindle("run", "job.fio", "--log", "ours.csv", "-q", cwd=tmp_path)
    (tmp_path / "theirs.fio").write_text(
        re.sub(r"^\[(?!global)(\w+)\]", r"[\1]\nwrite_iolog=\1.io", ORDERED, flags=re.M)
    )
    subprocess.run(["fio", "theirs.fio"], cwd=tmp_path, capture_output=True, timeout=120, check=True)
    for job in ("onwards", "gaps", "behind", "odd", "both"):
        lines = [line.split() for line in (tmp_path / f"{job}.io").read_text().splitlines()]
        theirs = [(line[2], int(line[3]), int(line[4])) for line in lines if line[2:3] in (["read"], ["write"])]
        ours = [(each.operation, each.offset, each.bytes) for each in completions(tmp_path / f"ours-{job}.csv")]
        assert ours == theirs, job
        assert len(theirs) > 8


def test_stonewalled_jobs_run_one_after_another_on_a_file_made_for_them(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(
        "[global]\nsize=1m\nfilename=x\nverify=crc32c\nverify_fatal=1\n"
        "[a]\nrw=randwrite\n[b]\nwait_for=a\nrw=read\n[c]\nstonewall\nrw=randrw\nbs=4k,16k\n"
    )
    record = json.loads(spindle("run", "job.fio", "--json", "-q", cwd=tmp_path).out)
    assert [phase["name"] for phase in record["phases"]] == ["a", "b", "c"]
    streams = [run["figures"]["streams"][0] for run in record["runs"]]
    assert [sum(stream[op]["bytes"] for op in ("read", "write") if stream[op]) >> 12 for stream in streams[:2]] == [
        256
    ] * 2
    assert streams[2]["read"]["bytes"] // streams[2]["read"]["requests"] == 4096
    assert streams[2]["write"]["bytes"] // streams[2]["write"]["requests"] == 16384
    assert not (tmp_path / "x").exists()


def test_files_and_phases_of_a_job_file_pass_through_the_toml(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(
        "[global]\nsize=512k\nnrfiles=2\nfallocate=none\n[a]\nrw=write\nnumjobs=2\n"
        "[b]\nstonewall\nrw=randread\nbs=8k\nsync=1\n"
    )
    assert spindle("convert", "job.fio", "-o", "job.toml", cwd=tmp_path).status == 0
    runs = [spindle("run", *what, "--json", "-q", cwd=tmp_path) for what in (["job.fio"], ["job.toml", "."])]
    records = [json.loads(run.out) for run in runs]
    assert [run["workload"] for run in records[0]["runs"]] == [run["workload"] for run in records[1]["runs"]]
    moved = [
        [stream[op]["bytes"] for stream in run["figures"]["streams"] for op in ("read", "write") if stream[op]]
        for run in records[0]["runs"]
    ]
    assert moved == [[512 << 10] * 2, [512 << 10]]
    assert not list(tmp_path.glob("spindle-*")), "the folder of the run is gone"


def test_each_reason_has_a_line_and_the_status_is_usage(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[a]\nrw=read\nsize=1m\nfilename=x\ndirect=1\nlockfile=readwrite\nruntim=3\n")
    for verb in ("run", "convert"):
        ended = spindle(verb, "job.fio", cwd=tmp_path)
        assert ended.status == 2
        assert [line.split(": ")[:4] for line in ended.err.splitlines()] == [
            ["spindle", "job.fio:6", "error", "lockfile"],
            ["spindle", "job.fio:7", "error", "runtim"],
        ]
    document = json.loads(spindle("convert", "job.fio", "--json", cwd=tmp_path).out)
    assert document["runs"] is False
    assert [finding["option"] for finding in document["findings"]] == ["lockfile", "runtim"]


def test_a_job_file_writes_to_a_device_only_with_erase(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[a]\nrw=write\nsize=4k\nfilename=/dev/null-there-is-none\n")
    assert spindle("run", "job.fio", cwd=tmp_path).status != 0
    (tmp_path / "there").write_bytes(bytes(8192))
    ended = spindle("run", "job.fio", "there", cwd=tmp_path)
    assert ended.status == 3
    assert (tmp_path / "there").read_bytes() == bytes(8192)


def test_a_preset_without_a_target_is_refused(tmp_path: Path) -> None:
    assert "which target?" in spindle("run", "seeker", cwd=tmp_path).err
