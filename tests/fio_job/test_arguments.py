"""`spindle fio`: fio's command line, compared with fio itself; job files on stdin, and parts of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from spindle.formats.fio_job import JobFileRefused, convert_sections, convert_text
from spindle.formats.fio_job.arguments import CommandLine, parsed, sections_of
from tests.program import spindle

pytestmark = pytest.mark.promise(20)

JOBS = "[global]\nbs=8k\nrw=randread\nsize=64k\n[a]\n[b]\nbs=16k\n[c]\nrw=read\n"


def line_of(*words: str) -> CommandLine:
    return parsed(words, {"--erase": True, "--json": False, "-q": False})


def jobs_of(*words: str) -> list[tuple[str, dict[str, str | None]]]:
    return [
        (section.name, {setting.name: setting.value for setting in section.settings})
        for section in sections_of(line_of(*words))
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["--rw=read", "--bs=8k", "--thread", "--name=x", "--size=1m"],
        ["-rw=read", "-bs", "8k", "-thread", "-name=x", "-size", "1m"],
        ["--rw", "read", "--bs", "8k", "--thread", "--name", "x", "--siz=1m"],
    ],
)
def test_options_are_written_in_each_of_fio_s_ways(words: list[str]) -> None:
    [(name, options)] = jobs_of(*words)
    assert name == "x"
    assert convert_sections(sections_of(line_of(*words)), "x").jobs[0].job.size.bytes == 1 << 20
    assert {key: options[key] for key in ("rw", "bs", "thread")} == {"rw": "read", "bs": "8k", "thread": None}


def test_options_before_the_first_name_apply_to_all_jobs_and_later_ones_to_their_job() -> None:
    words = ["--bs=8k", "--name=a", "--rw=read", "--name=b", "--bs=16k", "--name=global", "--rw=write", "--name=c"]
    assert jobs_of(*words) == [
        ("a", {"bs": "8k", "rw": "read"}),
        ("b", {"bs": "16k"}),
        ("c", {"bs": "8k", "rw": "write"}),
    ]


def test_globals_of_the_command_line_apply_to_job_files_and_each_further_file_waits(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("[a]\nrw=read\n[b]\nrw=read\n")
    (tmp_path / "two.fio").write_text("[global]\nruntime=3\n[c]\nrw=read\n")
    found = jobs_of("--runtime=7", str(tmp_path / "one"), str(tmp_path / "two.fio"))
    assert found == [
        ("a", {"runtime": "7", "rw": "read"}),
        ("b", {"runtime": "7", "rw": "read"}),
        ("c", {"runtime": "3", "stonewall": None, "rw": "read"}),
    ]


def test_options_of_spindle_may_be_anywhere_and_fio_s_meaning_comes_first() -> None:
    line = line_of("--name=a", "--erase", "/dev/sdx", "--sync=1", "-q", "--json", "--erase=/dev/sdy", "f.fio")
    assert line.rest == ["--erase", "/dev/sdx", "-q", "--json", "--erase=/dev/sdy"]
    assert line.options == [("name", "a"), ("sync", "1")]
    assert line.files == ["f.fio"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (
            ["--name=a", "--runntime=4"],
            "runntime: not known to this version of Spindle, which knows the options of fio",
        ),
        (["--name=a", "--random=1"], "random: may be random_distribution, random_generator"),
        (["--name=a", "--bs"], "bs: needs a value"),
        (["--name=a", "--client=host"], "client: is not supported; jobs run here"),
        (["--name=a", "--output-format=xml"], "output-format: `xml` is not there"),
        (["--name=a", "--test-duration=4"], "test-duration: belongs to fio's profile=act"),
        (["--name=a", "--section=b"], "`section=`: there is no job `b`; its jobs are: a"),
        (["/nonexistent"], "no such file"),
    ],
)
def test_a_wrong_fio_command_line_is_one_line(words: list[str], reported: str) -> None:
    with pytest.raises(JobFileRefused) as refused:
        sections_of(line_of(*words))
    assert reported in str(refused.value)


def test_an_option_of_another_engine_is_reported_as_such() -> None:
    [said] = [
        finding
        for finding in convert_text("[a]\nfilename=/x\nsize=1m\ndirect=1\nfixedbufs=1\n", "j").findings
        if finding.option == "fixedbufs"
    ]
    assert str(said) == "j:5: error: fixedbufs: belongs to ioengine=io_uring or io_uring_cmd, and this job's is psync; fio refuses it too"  # fmt: skip # noqa: E501
    runs = convert_text("[a]\nioengine=io_uring\nfilename=/x\nsize=1m\ndirect=1\nfixedbufs=1\n", "j")
    assert not runs.refused


def test_lengths_of_zones_left_blank_share_the_rest_in_whole_percents_as_in_fio() -> None:
    job = "[a]\nfilename=/x\nsize=1m\nrw=randread\nrandom_distribution=zoned:{}\n"
    zones = {
        asked: convert_text(job.format(asked), "j").phases[0].streams[0]["zones"]
        for asked in ("60/10:20/:20/", "50:30:20", "40/30:60")
    }
    assert zones == {
        "60/10:20/:20/": "10%:60,45%:20,45%:20",
        "50:30:20": "33%:50,33%:30,33%:20",
        "40/30:60": "30%:40,70%:60",
    }


def test_a_part_of_a_job_file_from_stdin(tmp_path: Path) -> None:
    run = spindle("run", "-", "--section", "a", "--section", "c", "--json", "-q", cwd=tmp_path, stdin=JOBS)
    assert run.status in (0, 1), run.err
    record = json.loads(run.out)
    assert [stream["name"] for stream in record["workload"]["streams"]] == ["a", "c"]
    missing = spindle("convert", "-", "--section", "d", cwd=tmp_path, stdin=JOBS)
    assert (missing.status, missing.err) == (
        2,
        "spindle: standard input: error: --section: there is no job `d`; its jobs are: a, b, c\n",
    )


def test_the_same_command_line_moves_as_much_in_fio_and_spindle(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    (tmp_path / "more.fio").write_text(JOBS)
    words = ["--size=256k", "-bs=8k", "--name=one", "--rw=randread", "--name=two", "-rw=write", "--bs", "16k"]
    words += ["more.fio", "--section=one", "--section=two", "--section=b", "--output-format=json"]
    moved = []
    for program in (["fio"], None):
        folder = tmp_path / ("fio" if program else "spindle")
        folder.mkdir()
        shutil.copy(tmp_path / "more.fio", folder)
        if program:
            reported = subprocess.run([*program, *words], cwd=folder, capture_output=True, text=True, check=True).stdout
        else:
            reported = spindle("fio", *words, "-q", cwd=folder).out
        jobs = json.loads(reported[reported.index("\n{") if program else 0 :])["jobs"]
        moved.append([(job["jobname"], job["read"]["io_bytes"], job["write"]["io_bytes"]) for job in jobs])
    assert moved[0] == moved[1]
    assert [name for name, _, _ in moved[0]] == ["one", "two", "b"]


def test_readonly_parse_only_showcmd_and_output(tmp_path: Path) -> None:
    write = ["fio", "--name=a", "--rw=write", "--size=64k"]
    ended = spindle(*write, "--readonly", cwd=tmp_path)
    assert ended.status == 2
    assert "--readonly: a job writes" in ended.err
    assert spindle(*write, "--parse-only", cwd=tmp_path).status == 0
    (tmp_path / "j.fio").write_text(JOBS)
    shown = spindle("fio", "--showcmd", "j.fio", "--section=b", cwd=tmp_path).out
    assert shown == "fio --name=b --bs=8k --rw=randread --size=64k --bs=16k\n"
    spindle("fio", "--name=a", "--size=64k", "--output=o.json", "--output-format=json", "-q", cwd=tmp_path)
    assert json.loads((tmp_path / "o.json").read_text())["jobs"][0]["read"]["io_bytes"] == 64 << 10
    assert spindle("fio", cwd=tmp_path).status == 2


@pytest.mark.parametrize(
    ("asked", "there"),
    [("0", ["read", "write", "trim", "sync"]), ("1", ["mixed"]), ("both", ["read", "write", "trim", "sync", "mixed"])],
)
def test_unified_rw_reporting_is_that_of_fio_s_json(tmp_path: Path, asked: str, there: list[str]) -> None:
    words = ["fio", "--name=a", "--rw=randrw", "--size=256k", f"--unified_rw_reporting={asked}", "--output-format=json"]
    [job] = json.loads(spindle(*words, "-q", cwd=tmp_path).out)["jobs"]
    assert [key for key in job if key in ("read", "write", "trim", "sync", "mixed")] == there
    if "mixed" in there:
        assert (job["mixed"]["io_bytes"], job["mixed"]["total_ios"], job["mixed"]["clat_ns"]["N"]) == (
            256 << 10,
            64,
            64,
        )


def test_cpus_allowed_policy_split_pins_clones_in_turn_and_a_difference_is_reported() -> None:
    job = "[a]\nfilename=/x\nsize=1m\nrw=randread\ncpus_allowed=0,1\ncpus_allowed_policy=split\n"
    assert convert_text(job, "j").cpus == (0, 1)
    assert not convert_text(job, "j").refused
    mixed = convert_text(job + "[b]\nfilename=/x\nsize=1m\nrw=randread\ncpus_allowed=0,1\n", "j")
    assert [finding.option for finding in mixed.findings if finding.is_error] == ["cpus_allowed_policy"]
