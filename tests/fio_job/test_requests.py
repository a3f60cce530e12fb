"""The requests of a job file are fio's: random files against fio itself, and those that once differed."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benches.fio_fuzz import compare, excuses
from benches.fio_fuzz.compare import Difference
from benches.fio_fuzz.observe import Clone, Event, unmount
from spindle.formats import fio_job
from spindle.formats.fio_job import convert_text
from spindle.formats.fio_job.finding import JobFinding
from tests.program import ended, started

pytestmark = pytest.mark.promise(19)

ROOT = Path(__file__).resolve().parents[2]


FUZZER = ROOT / "benches/fuzz_fio.py"

needs_fuzzing = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("fio") is None or shutil.which("mkfs.ext4") is None,
    reason="needs root (loop devices, tracefs), fio and mkfs.ext4",
)


def fuzzed(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@needs_fuzzing
def test_a_short_run_of_the_fuzzer_finds_no_unreported_difference() -> None:
    run = fuzzed("--jobs", "8", "--seed", "3004", "--no-shrink")
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^8 job files with \d+ jobs compared", run.stdout, flags=re.M), run.stdout


@needs_fuzzing
def test_a_job_that_goes_on_does_not_keep_its_file_system_mounted(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", mount], check=True)
    with subprocess.Popen(["sleep", "600"], cwd=mount) as job:
        unmount(mount)
        assert job.wait() == -signal.SIGKILL
    assert not mount.is_mount()


MENDED = {
    "bs behind bssplit": "rw=write\nbssplit=8k/100\nbs=4k\nsize=64k",
    "bs behind bsrange": "rw=read\nbsrange=8k-8k\nbs=4k\nsize=64k",
    "bsrange behind bssplit": "rw=write\nbssplit=4k/50:8k/50\nbsrange=16k-16k\nsize=128k",
    "loops beside number_ios": "rw=write\nbs=4k\nsize=64k\nloops=3\nnumber_ios=5",
    "a size above filesize": "rw=read\nbs=4k\nsize=1m\nfilesize=64k",
    "a size below filesize, in rounds": "rw=read\nbs=4k\nsize=32k\nfilesize=64k\nloops=2",
    "no sync behind the last write": "rw=write\nbs=4k\nsize=64k\nfsync=4",
    "no sync behind the last write of loops": "rw=write\nbs=4k\nsize=60k\nnumber_ios=4\nloops=2\nfdatasync=2",
    "io_size in rounds": "rw=write\nbs=4k\nsize=32k\nio_size=66k\nloops=1",
    "io_size beside loops": "rw=write\nbs=4k\nsize=32k\nio_size=64k\nloops=2",
    "a region that ends within a request": "rw=read\nbs=4k\nsize=34k",
    "priority 0 is one": "rw=read\nbs=4k\nsize=32k\nprio=0",
    "the later share of a mix": "rw=randrw\nbs=4k\nsize=512k\nrwmixwrite=90\nrwmixread=90",
    "rounds that end after size": "ioengine=libaio\nrw=read\nbs=4k\nio_size=525k\nfilesize=496k\nsize=272k\noffset=76k",
    "rounds that end with the region": "ioengine=psync\nrw=read\nbs=4k\nio_size=525k\nfilesize=496k\nsize=272k",
    "trims count towards io_size": "rw=trimwrite\nbs=4k\nsize=168k\nio_size=264k",
    "a rate of trims before writes": "rw=trimwrite\nbs=4k\nsize=128k\nrate_iops=300",
    "one round of threads that submit": "rw=read\nbs=4k\nsize=224k\nloops=2\nio_submit_mode=offload",
    "rounds of trims of several sizes": "rw=trimwrite\nbssplit=4k/60:8k/40\nio_size=720k\nsize=240k",
    "gaps to the end of the device's region": "rw=write:96k\nbs=32k\nsize=396k",
    "random kinds without random places ignore ba": "rw=randwrite\nba=32k\nnumber_ios=10\npercentage_random=0",
    "such ones begin at the offset": "rw=randread\nba=16k\nsize=80k\noffset=6k\npercentage_random=0",
    "places that are multiples of ba end with the last whole one": (
        "rw=randread\nba=128k\nsize=224k\nfilesize=288k\nbs=4k"
    ),
    "rounds of popular places are as long as io_size": (
        "ioengine=io_uring\nrw=randwrite\nio_size=829k\nloops=2\nrandom_distribution=zipf:1.2\nfilesize=516k"
    ),
}


@needs_fuzzing
@pytest.mark.parametrize("options", MENDED.values(), ids=MENDED)
def test_job_files_with_a_once_unreported_difference_are_as_in_fio(options: str, tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(f"[global]\nfilename=DEVICE\ndirect=1\n[a]\n{options}\n")
    run = fuzzed("--replay", str(job))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "excused " not in run.stdout, "the option is carried out, not only excused"


MENDED_IN_FILES = {
    "clones that begin further back, with gaps": (
        "[a]\nrw=read:12k\nbs=4k\nsize=188k\nloops=2\nnumjobs=3\noffset_increment=116k"
    ),
    "clones that begin further back in files of one length": (
        "[a]\nrw=write\nbs=4k\nfilesize=664k\noffset=40k\nnumjobs=3\noffset_increment=32k"
    ),
    "clones in groups, each at one place": "[a]\ngroup_reporting\nrw=read:-4k\nbs=4k\nsize=210k\nnumjobs=3",
    "clones in groups, each of so many requests": (
        "[a]\ngroup_reporting\nrw=read\nbs=4k\nfilesize=512k\nnumber_ios=45\nnumjobs=3"
    ),
    "a reader behind a writer that ends early": (
        "[a]\nfilename=one:two\nrw=write\nbs=32k\nsize=480k\nnumber_ios=11\n"
        "[b]\nstonewall\nfilename=one:two\nrw=read\nbs=512\nsize=78k\nnumber_ios=3"
    ),
}


@pytest.mark.promise(19)
@needs_fuzzing
@pytest.mark.parametrize("jobs", MENDED_IN_FILES.values(), ids=MENDED_IN_FILES)
def test_job_files_on_file_systems_that_once_differed_are_as_in_fio(jobs: str, tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(f"[global]\ndirect=1\n{jobs}\n")
    run = fuzzed("--replay", str(job))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "excused " not in run.stdout, "the option is carried out, not only excused"


@needs_fuzzing
def test_a_stonewall_does_not_wait_for_jobs_that_are_still_delayed(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(
        "[global]\nfilename=DEVICE\ndirect=1\nbs=8k\n[a]\nrw=randtrim\nnorandommap\nba=16k\nstartdelay=150ms\nsize=280k\n"
        "[b]\nstonewall\nrw=write\nsize=448k\n[c]\nstonewall\nstartdelay=1ms\nrw=read\nsize=64k\n"
    )
    begin = convert_text(job.read_text().replace("DEVICE", "/x"), "job.fio").phases
    assert [[each.job.name for each in phase.jobs] for phase in begin] == [["a", "b"], ["c"]]
    job.write_text(job.read_text().partition("[c]")[0])
    run = fuzzed("--replay", str(job))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "excused " not in run.stdout


@needs_fuzzing
def test_workers_that_take_their_names_in_another_order_belong_to_their_phase(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    phases = "".join(f"[j{n}]\nstonewall\nrw=read\nnumjobs=4\nsize={n + 1}00k\n" for n in range(6))
    job.write_text("[global]\nfilename=DEVICE\ndirect=1\nbs=4k\n" + phases)
    run = fuzzed("--replay", str(job))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "excused " not in run.stdout


@needs_fuzzing
def test_gaps_in_a_file_that_a_job_before_makes_longer_end_as_in_fio(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(
        "[global]\ndirect=1\nfilename=data\nbs=4k\n[a]\nrw=write\nsize=256k\n[b]\nstonewall\nrw=read:4k\nsize=64k\n"
        "[c]\nstonewall\nrw=read:8k\nsize=64k\n"
    )
    run = fuzzed("--replay", str(job))
    assert run.returncode == 0, run.stdout + run.stderr


def finding(job: str, option: str, text: str) -> list[JobFinding]:
    """The `differs` lines of one job of a file that contain this text."""
    conversion = convert_text(f"[global]\nfilename=/x\ndirect=1\noverwrite=1\n{job}", "job.fio")
    return [each for each in conversion.findings if each.option == option and text in each.text]


@pytest.mark.parametrize(
    ("job", "option", "text"),
    [
        ("[a]\nioengine=vsync\nrw=trim\nsize=1m\n", "ioengine", "writes what it should discard"),
        ("[a]\nrw=randtrimwrite\noffset=64k\nsize=1m\n", "offset", "a second time"),
        ("[a]\nrw=randread\noffset=6k\nsize=1m\n", "offset", "counts them from the offset"),
        ("[a]\nrw=randread\nloops=2\nsize=1m\n", "loops", "the same places again"),
        ("[a]\nrw=write\nloops=2\nend_fsync=1\nsize=1m\n", "end_fsync", "at the end of each round"),
        ("[a]\nrw=randwrite\nloops=2\nend_fsync=1\n", "end_fsync", "at the end of each round"),
        ("[a]\nrw=write\nloops=2\nfsync_on_close=1\nsize=25%\n", "fsync_on_close", "at the end of each round"),
        ("[a]\nrw=randread\nbs=4k\nba=16k\nsize=5%\n", "ba", "leaves out the last one"),
        ("[a]\nrw=read\nbs=512\noffset=10%\nsize=5%\n", "size", "one more request"),
        ("[a]\nrw=rw\nsize=5%\n", "size", "rounds it down"),
        ("[a]\ngroup_reporting\nrw=randread\nbs=8k\nnumjobs=3\nsize=224k\n", "numjobs", "a faster one does more"),
        ("[a]\nrw=randwrite\nbs=4k\nsize=221k\n", "rw", "takes the next free one"),
        ("[a]\nrw=rw:512\nbs=512\noffset=10%\nsize=5%\n", "rw", "through once"),
        (
            "[a]\nfilename=one:two\nsize=192k\n[b]\nfilename=one:two\nioengine=io_uring\nsize=180k\nio_size=832k\n",
            "io_size",
            "in the middle of a pass",
        ),
        ("[a]\nrw=write\nfsync=8\nsize=34k\n", "fsync", "at the end of each round"),
        ("[a]\nrw=randread\nrandom_distribution=zipf\nsize=101k\n", "random_distribution", "cuts off"),
        ("[a]\nrw=randread\nrandom_distribution=zipf\nba=16k\nsize=1m\n", "random_distribution", "leave out ba"),
        ("[a]\nrw=randread:4\nba=16k\nsize=1m\n", "ba", "not aligned in fio"),
        ("[a]\nrw=randrw\nbs=1k,1k,512\nsize=1m\n", "bs", "least size of reads, writes and trims"),
        ("[a]\nrw=randwrite\nbsrange=512-1k\nsize=1m\n", "norandommap", "cuts a request"),
        ("[a]\nrw=randread\nloops=2\nsize=25%\n", "loops", "the same places again"),
        ("[a]\nrw=write\nbsrange=4k-12k\nloops=2\nsize=1m\n", "loops", "the same sizes again"),
        ("[a]\nioengine=libaio\nrw=read:6k\nbs=2k\nloops=3\nsize=149k\n", "loops", "in the middle of a pass"),
        ("[a]\nrw=randread\nbs=32k\nba=128k\nsize=96k\n", "ba", "larger than a file"),
        ("[a]\nrw=rw\nrate_iops=300\nexitall\nsize=1m\n", "exitall", "its reads or its writes"),
        (
            "[a]\nrw=randread\nbs=16k\nsize=176k\nrandom_distribution=zoned:50/5:50/95\n",
            "random_distribution",
            "smaller than a request",
        ),
        ("[a]\nrw=read\nexitall\nsize=1m\n[b]\nwait_for=a\nrw=read\nsize=1m\n", "wait_for", "before it begins"),
        ("[a]\nrw=read\nio_submit_mode=offload\nnumber_ios=9\nsize=1m\n", "io_submit_mode", "exceeds it"),
        ("[a]\nrw=write\nfilename=one:two\nnumjobs=2\ncreate_serialize=0\nsize=1m\n", "create_serialize", "may remove"),
    ],
)
def test_a_difference_to_fio_is_reported(job: str, option: str, text: str) -> None:
    assert finding(job, option, text)


def test_many_places_need_no_line_for_their_order() -> None:
    assert not finding("[a]\nrw=randwrite\nbs=4k\nsize=1g\n", "rw", "takes the next free one")


def neighbours(places: int, passes: int) -> float:
    """Share of requests that follow the one before where a visited place means the next free one."""
    draw, found = Random(1), 0
    for _ in range(passes):
        free, last = [True] * places, None
        for _ in range(places):
            place = draw.randrange(places)
            while not free[place]:
                place = (place + 1) % places
            free[place] = False
            found += last is not None and place == last + 1
            last = place
    return found / (places * passes)


def test_the_shares_in_the_line_for_few_places_are_those_of_the_next_free_place() -> None:
    assert round(100 * neighbours(55, 500)) == 8
    assert 0.01 < neighbours(1000, 30) < 0.02


@pytest.mark.parametrize(
    ("rounds", "other"),
    [
        ("size=480k\nloops=2", "loops"),
        ("size=64k\nio_size=480k", "io_size"),
        ("size=477k\nio_size=480k\npercentage_random=30", "io_size"),
    ],
)
def test_a_number_of_requests_that_fio_doubles_with_each_round_is_refused(rounds: str, other: str) -> None:
    text = f"[a]\nfilename=/x\ndirect=1\noverwrite=1\nrw=randtrimwrite\nbs=4k\nnumber_ios=24\n{rounds}\n"
    conversion = convert_text(text, "job.fio")
    refused = [each for each in conversion.findings if each.option == "number_ios"]
    assert [(str(each.level), each.text) for each in refused] == [
        ("error", f"fio doubles it with each round of trims and writes; leave out {other}")
    ]
    once = convert_text(text.replace(rounds, "size=480k\nio_size=480k"), "job.fio")
    assert not once.refused


@pytest.mark.parametrize(
    ("job", "what"),
    [
        ("[a]\nrw=randwrite\nverify_pattern=0xff\nsize=384k\n", "files"),
        ("[a]\nrw=read\nio_submit_mode=offload\nnumber_ios=47\n", "places"),
        ("[a]\nrw=read\nio_submit_mode=offload\nnumber_ios=47\n", "range"),
    ],
)
def test_a_finding_excuses_all_its_consequences(job: str, what: str) -> None:
    conversion = convert_text(f"[global]\nfilename=/x\ndirect=1\noverwrite=1\n{job}", "job.fio")
    assert excuses.excusing_line(Difference(0, what, "", job=0), conversion)


def test_the_drawn_sizes_decide_the_alignment_of_sequential_offsets() -> None:
    """One of the two may have drawn no small size."""
    job = "[a]\nfilename=/x\ndirect=1\nrw=read\nsize=1m\nbssplit=2k/10:4k/90\n"
    jobs = convert_text(job, "job.fio").phases[0].jobs
    whole = requests_in_order([4096] * 60)
    mixed = requests_in_order([2048] * 3 + [4096] * 57)
    for random, found in ((False, []), (True, ["places"])):
        of = replace(jobs[0].job, kind="randread" if random else "read")
        compared = compare._Phase(0, [of], whole, mixed, raced=False, flushed=False)
        compared._where("read", whole[0].events, mixed[0].events)
        assert [each.what for each in compared.found if "multiples" in each.text] == found


def requests_in_order(sizes: list[int]) -> list[Clone]:
    ends = itertools.accumulate(sizes)
    return [Clone([Event(0.0, "read", 0, end - size, size, False, 0) for end, size in zip(ends, sizes, strict=True)])]


def test_every_excuse_quotes_a_line_of_the_converter() -> None:
    sources = (Path(fio_job.__file__).parent).glob("*.py")
    texts = re.sub(r'"\s*\n\s*f?"', "", " ".join(path.read_text() for path in sources))
    assert [excuse.text for excuse in excuses.EXCUSES if excuse.text not in texts] == []


def test_a_finding_excuses_no_difference_of_another_job_or_direction() -> None:
    jobs = "[a]\nrw=read\nsize=1m\n[b]\nrw=randread\npercentage_random=30\nsize=1m\n"
    conversion = convert_text(f"[global]\nfilename=/x\ndirect=1\n{jobs}", "job.fio")
    less = Difference(0, "requests", "", fewer="fio", job=1)
    assert excuses.excusing_line(less, conversion)
    assert not excuses.excusing_line(replace(less, job=0), conversion), "of the other job"
    assert not excuses.excusing_line(replace(less, fewer="Spindle"), conversion), "fio ends early, it does not go on"
    assert not excuses.excusing_line(replace(less, what="syncs"), conversion), "of something else"


def test_several_rounds_that_differ_from_fio_are_reported() -> None:
    findings = convert_text("[a]\nfilename=/x\ndirect=1\nrw=rw\nsize=1m\nloops=2\noverwrite=1\n", "job.fio").findings
    assert [(str(each.level), each.option) for each in findings] == [("differs", "loops")]


def test_offload_with_a_rate_is_an_open_loop() -> None:
    text = "[a]\nfilename=/x\ndirect=1\nrw=randread\nsize=8m\niodepth=4\nio_submit_mode=offload\nrate_iops=100\n"
    conversion = convert_text(text, "job.fio")
    [stream] = conversion.phases[0].streams
    assert stream["rate"] == "100 IOPS"
    assert "spacing" not in stream
    assert stream["depth"] == 4, "threads submit, so the engine's own depth does not bound it"
    assert [(str(each.level), each.option) for each in conversion.findings] == [("differs", "io_submit_mode")]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two CPUs")
def test_each_worker_may_run_on_all_cpus_that_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(
        "[a]\nfilename=data\nsize=1m\nrw=randread\nnumjobs=2\nruntime=1\ntime_based\ncpus_allowed=0-1\n"
    )
    process = started("run", "job.fio", "-q", cwd=tmp_path)
    masks: set[str] = set()
    while process.poll() is None and len(masks) < 1:
        for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
            with contextlib.suppress(OSError):
                text = status.read_text()
                if re.match(r"Name:\s*spindle-io-", text):
                    masks.add(re.search(r"Cpus_allowed_list:\s*(\S+)", text)[1])  # type: ignore[index]
        time.sleep(0.02)
    ended(process)
    assert masks == {"0-1"}


def of_fuzzing(folder: Path) -> list[str]:
    """Mounts and loop devices below a folder."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    backing = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            backing.append(path.read_text().strip())
    return [each for each in (*mounts, *backing) if each.startswith(str(folder))]


def fuzzing(folder: Path, but: Collection[Path] = ()) -> subprocess.Popen[bytes]:
    """Wait until the fuzzer runs its first job file, in a folder that is not one of these."""
    command = [sys.executable, str(FUZZER), "--jobs", "1000", "--seed", "3004", "--no-shrink"]
    process = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(folder)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not any(
        own not in but and (any(own.glob("*/run-*")) or any(own.glob("*/mount/run-*"))) for own in folder.iterdir()
    ):
        assert process.poll() is None
        time.sleep(0.02)
    return process


@needs_fuzzing
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_fuzzer_leaves_nothing_behind_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    process = fuzzing(tmp_path)
    assert of_fuzzing(tmp_path)
    process.send_signal(number)
    assert process.wait() == 128 + number
    assert not of_fuzzing(tmp_path)
    assert not list(tmp_path.iterdir())


@needs_fuzzing
def test_the_fuzzer_removes_the_leftovers_of_a_killed_one_and_nothing_of_a_running_one(tmp_path: Path) -> None:
    killed = fuzzing(tmp_path)
    left = set(tmp_path.iterdir())
    killed.kill()
    killed.wait()
    assert of_fuzzing(tmp_path)
    others = tmp_path / "spindle-fuzz-of-somebody"
    others.mkdir()
    alive = fuzzing(tmp_path, but=left)
    try:
        assert not [each for each in of_fuzzing(tmp_path) if Path(each).is_relative_to(next(iter(left)))]
        assert not any(folder.exists() for folder in left)
        held = of_fuzzing(tmp_path)
        again = subprocess.run(
            [sys.executable, str(FUZZER), "--jobs", "0"],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            check=False,
        )
        assert again.returncode == 0, again.stderr
        assert set(held) <= set(of_fuzzing(tmp_path))
        assert alive.poll() is None
    finally:
        alive.terminate()
        alive.wait()
    assert not of_fuzzing(tmp_path)
    assert list(tmp_path.glob("spindle-fuzz-*")) == [others]
