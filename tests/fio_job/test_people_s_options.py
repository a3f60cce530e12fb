"""Options that many people use, compared with fio on the same jobs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spindle import _core
from spindle.formats.fio_job import Conversion, Level, body_of, convert_text
from spindle.result.completions import completions
from tests.program import spindle

pytestmark = pytest.mark.promise(20)


def converted(job: str, target: str | None = None) -> Conversion:
    return convert_text(job, "j.fio", target)


def streams_of(job: str) -> list[dict[str, Any]]:
    conversion = converted(job)
    assert not conversion.refused, [str(finding) for finding in conversion.findings]
    workload = json.loads(_core.Workload.parse(body_of(conversion), "j", "j").to_json())
    loads = [phase["load"] for phase in workload["phases"]] or [workload]
    return [stream for load in loads for stream in load["streams"]]


def errors_of(job: str) -> list[str]:
    return [finding.option for finding in converted(job).findings if finding.level is Level.ERROR]


def fio_requests(job: str, folder: Path) -> list[tuple[str, int, int]]:
    """The requests of fio: operation, offset, bytes."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    (folder / "theirs.fio").write_text(f"{job}write_iolog=theirs.log\n")
    subprocess.run(["fio", "theirs.fio"], cwd=folder, capture_output=True, timeout=120, check=True)
    lines = [line.split() for line in (folder / "theirs.log").read_text().splitlines()]
    return [(line[2], int(line[3]), int(line[4])) for line in lines if line[2:3] in (["read"], ["write"])]


def our_requests(job: str, folder: Path) -> list[tuple[str, int, int]]:
    (folder / "ours.fio").write_text(job)
    ended = spindle("run", "ours.fio", "--log", "ours.csv", "-q", cwd=folder)
    assert ended.status in (0, 1), ended.err
    return [(each.operation, each.offset, each.bytes) for each in completions(folder / "ours.csv")]


ZONED = "[a]\nfilename=data\nbs=4k\nsize=1m\nzonemode=strided\n"


@pytest.mark.parametrize(
    "zones",
    [
        "rw=read\nzonesize=64k\nzonerange=128k\n",
        "rw=read\nzonesize=64k\nzonerange=128k\nzoneskip=64k\nio_size=1536k\n",
        "rw=read\nzonesize=32k\nzonerange=64k\nzoneskip=1z\noffset=128k\nsize=512k\n",
        "rw=read\nzonesize=60k\nzonerange=64k\nbs=8k\n",
    ],
)
def test_zones_in_turn_have_the_places_of_fio(tmp_path: Path, zones: str) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    assert our_requests(ZONED + zones, tmp_path) == fio_requests(ZONED + zones, tmp_path)


def test_random_places_stay_in_their_zone_as_long_as_in_fio(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    job = ZONED + "rw=randread\nzonesize=64k\nzonerange=128k\nzoneskip=128k\n"
    zones = [
        [offset >> 17 for _, offset, _ in requests]
        for requests in (our_requests(job, tmp_path), fio_requests(job, tmp_path))
    ]
    assert zones[0] == zones[1]
    assert len(zones[0]) == 256


@pytest.mark.parametrize(
    ("job", "option"),
    [
        ("zonemode=zbd\nzonesize=64k\n", "zonemode"),
        ("zonesize=64k\n", "zonesize"),
        ("zonemode=strided\n", "zonesize"),
        ("zonemode=strided\nzonesize=64k\nzonerange=130k\n", "zonerange"),
        ("zonemode=strided\nzonesize=64k\nrw=rw\n", "zonemode"),
        ("zonemode=strided\nzonesize=64k\nrw=randread\nrandom_distribution=zipf\n", "zonemode"),
        ("rw=write\ndedupe_percentage=20\nverify=crc32c\n", "dedupe_percentage"),
        ("rw=write\ndedupe_percentage=20\ndedupe_mode=working_set\ndedupe_global=1\n", "dedupe_global"),
        ("rw=write\ntrim_percentage=20\ntrim_backlog=8\nverify=crc32c\n", "trim_percentage"),
        ("rw=randread\nfill_device=1\n", "fill_device"),
        ("rw=write\nbs=2k\nioengine=mmap\nfsync=8\n", "bs"),
    ],
)
def test_an_option_that_cannot_be_carried_over_is_refused_by_name(job: str, option: str) -> None:
    assert errors_of(f"[a]\nfilename=x\nsize=1m\n{job}") == [option]


EXITS = (
    "[global]\nfilename=data\nsize=1m\nrw=randread\nrate_iops=2000\n[a]\nio_size=200k\n[b]\nio_size=40m\n"
    "[c]\nstonewall\nrate_iops=0\nio_size=400k\n"
)


@pytest.mark.parametrize(
    ("exits", "runs"),
    [
        ("exitall\n", ["a", "b", "c"]),
        ("exitall\nexit_what=stonewall\n", ["a", "b", "c"]),
        ("exitall\nexit_what=all\n", ["a", "b"]),
    ],
)
def test_the_first_job_that_is_done_ends_the_others(tmp_path: Path, exits: str, runs: list[str]) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    (tmp_path / "j.fio").write_text(EXITS.replace("[a]\n", f"{exits}[a]\n"))
    record = json.loads(spindle("run", "j.fio", "--json", "-q", cwd=tmp_path).out)
    figures = [run["figures"] for run in record.get("runs", [record])]
    moved = {stream["name"]: stream["read"]["bytes"] for each in figures for stream in each["streams"]}
    assert list(moved) == runs
    assert moved["a"] == 200 << 10
    assert moved["b"] < 4 << 20
    assert moved.get("c", 400 << 10) == 400 << 10


def test_exitall_of_one_group_leaves_the_other_alone() -> None:
    job = "[global]\nexitall\nsize=1m\nrw=read\n[a]\n[b]\n[c]\nnew_group\n[d]\n"
    assert [stream["ends"] for stream in streams_of(job)] == [["b"], ["a"], ["d"], ["c"]]
    assert streams_of(job.replace("[a]", "exit_what=all\n[a]"))[0]["ends"] == ["b", "c", "d"]


@pytest.mark.parametrize("mode", ["repeat", "working_set"])
def test_as_many_blocks_are_repeated_as_in_fio(tmp_path: Path, mode: str) -> None:
    """Number of equal blocks in a file that was written once."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    words = ["--name=a", "--rw=write", "--bs=4k", "--size=8m", "--filename=x", "--dedupe_percentage=40"]
    words += [f"--dedupe_mode={mode}", "--dedupe_working_set_percentage=2"]
    subprocess.run(["fio", *words], cwd=tmp_path, capture_output=True, check=True)
    theirs = _different(tmp_path / "x")
    (tmp_path / "x").unlink()
    (tmp_path / "j.fio").write_text("[a]\n" + "\n".join(word.removeprefix("--") for word in words[1:]) + "\n")
    spindle("run", "j.fio", "--keep", "-q", cwd=tmp_path)
    ours = _different(tmp_path / "x")
    assert 0.56 < theirs < 0.66
    assert abs(ours - theirs) < 0.05


def _different(file: Path) -> float:
    data = file.read_bytes()
    blocks = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    assert len(blocks) == 2048
    return len(set(blocks)) / len(blocks)


def test_mmap_is_a_mapping_and_syncs_as_often_as_fio_asks() -> None:
    [one, direct] = streams_of(
        "[global]\nioengine=mmap\nfilename=x\nsize=1m\n[a]\nrw=randrw\nfsync=16\niodepth=8\n[b]\nrw=write\ndirect=1\n"
    )
    assert (one["mapped"], one["direct"], one["depth"], one["sync"]["fsync_every"]) == (True, False, 1, 16)
    assert (direct["mapped"], direct["direct"], direct["sync"]["dsync"]) == (True, False, True)


@pytest.mark.alone  # on a busy machine the kernel writes the pages during the run
def test_jobs_with_and_without_a_mapping_run_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "j.fio").write_text(
        "[global]\nsize=1m\nverify=crc32c\n[a]\nioengine=mmap\nrw=randwrite\n[b]\nioengine=psync\nrw=write\n"
    )
    record = json.loads(spindle("run", "j.fio", "--json", "-q", cwd=tmp_path).out)
    assert record["figures"]["generator"]["engine"] == "mmap+pread"
    assert [stream["write"]["bytes"] for stream in record["figures"]["streams"]] == [1 << 20] * 2
    assert record["figures"]["verification"]["read_back"]["found"]["faults"] == []
    assert {verdict["check"]: verdict["level"] for verdict in record["verdicts"]}["cache-share"] != "ok"


def test_a_modelled_machine_refuses_a_mapping_in_one_line(tmp_path: Path) -> None:
    ended = spindle("run", "randomio", "one-sata", "--mapped", "--buffered", cwd=tmp_path)
    assert ended.status == 2
    assert "mapping is not modelled" in ended.complaint


def test_a_later_phase_appends_to_what_an_earlier_one_wrote(tmp_path: Path) -> None:
    job = "[global]\nfilename=x\nrw=write\nsize=1m\n[a]\n[b]\nstonewall\nfile_append=1\nsize=256k\n"
    first, second = streams_of(job)
    assert first["region"]["end"]["bytes"] == second["region"]["offset"]["bytes"] == 1 << 20
    assert second["region"]["end"]["bytes"] == (1 << 20) + (256 << 10)
    (tmp_path / "j.fio").write_text(job)
    record = json.loads(spindle("run", "j.fio", "--json", "-q", cwd=tmp_path).out)
    assert [run["figures"]["streams"][0]["write"]["bytes"] for run in record["runs"]] == [1 << 20, 256 << 10]


def test_a_job_that_fills_a_file_leaves_the_end_of_the_file_system() -> None:
    conversion = converted("[a]\nfilename=x\nrw=write\nbs=1m\nfill_device=1\n")
    [said] = [finding.text for finding in conversion.findings if finding.option == "fill_device"]
    assert "the last 6 % of the file system stay free" in said
    free = shutil.disk_usage(".").free
    assert 0.5 * free < _core.parse_size(str(conversion.files[0]["filesize"])) < free


def test_poisson_arrivals_of_a_rate_in_bytes_are_whole_requests_of_the_smallest_size_as_in_fio() -> None:
    job = "[a]\nfilename=x\nsize=64m\nrw=randread\nrate_process=poisson\nrate=1000k\n"
    for sizes, rate in (("bs=64k", 15), ("bsrange=4k-16k", 250), ("bssplit=8k/50:32k/50", 125)):
        [stream] = streams_of(f"{job}{sizes}\n")
        assert stream["arrival"] == {"kind": "open", "rate_iops": rate, "spacing": "poisson"}
    assert errors_of(f"{job}bs=2m\n") == ["rate"]


@pytest.mark.parametrize("end", ["number_ios=9", "io_size=64k"])
def test_a_write_that_fio_marks_for_a_trim_hides_the_end_of_the_job(end: str) -> None:
    job = f"[a]\nfilename=x\nsize=1m\nrw=randwrite\ntrim_percentage=30\n{end}\n"
    assert "trim_percentage" in differing(f"{job}verify=md5\n")
    assert "trim_percentage" not in differing(job)


def differing(job: str) -> set[str]:
    """Options of the job file with a `differs` line."""
    return {finding.option for finding in converted(job).findings if finding.level is Level.DIFFERS}


def test_trim_percentage_alone_has_no_effect_as_in_fio() -> None:
    conversion = converted("[a]\nfilename=x\nsize=1m\nrw=write\ntrim_percentage=30\n")
    [said] = [finding for finding in conversion.findings if finding.option == "trim_percentage"]
    assert said.level is Level.NOTE
