"""A number after a sequential `rw`: the requests of real runs have the offsets of fio."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spindle.result.completions import completions

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

Places = list[tuple[str, int, int]]
"""(operation, file, offset)."""

EQUAL = """
[global]
bs=4k
size=64k
[wraps]
rw=read:4k
[ends]
stonewall
rw=write:8k
[again]
stonewall
rw=read:8k
loops=3
[amount]
stonewall
rw=read:8k
io_size=100k
[few]
stonewall
rw=read:8k
number_ios=4
[offset]
stonewall
rw=read:4k
offset=33k
size=16k
[files]
stonewall
rw=read:8k
nrfiles=2
file_service_type=sequential
size=128k
[far]
stonewall
rw=read:-8k
offset=128k
loops=2
[odd]
stonewall
rw=write:-8k
offset=130k
size=62k
[last]
stonewall
rw=read:-8k
offset=60k
[stays]
stonewall
rw=write:-4k
[between]
stonewall
rw=read:-4k
offset=32k
"""

BUT_FOR_THE_FIRST = """
[global]
bs=4k
size=64k
[back]
rw=read:-8k
[written]
stonewall
rw=write:-8k
loops=3
[odd]
stonewall
rw=read:-8k
size=66k
[middle]
stonewall
rw=read:-8k
offset=64k
[both]
stonewall
rw=rw:-8k
rwmixread=100
"""


def ran(folder: Path, jobs: str) -> dict[str, tuple[Places, Places]]:
    """The requests of fio and of Spindle for each job."""
    ours, theirs = folder / "ours", folder / "theirs"
    for each in (ours, theirs):
        each.mkdir(exist_ok=True)
        (each / "job.fio").write_text(jobs)
    logged = re.sub(r"^\[(?!global)(\w+)\]", r"[\1]\nwrite_iolog=\1.io", jobs, flags=re.M)
    (theirs / "job.fio").write_text(logged)
    command = [sys.executable, "-m", "spindle.cli", "run", "job.fio", "--log", "ours.csv", "-q"]
    run = subprocess.run(command, cwd=ours, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr
    subprocess.run(["fio", "job.fio"], cwd=theirs, capture_output=True, timeout=600, check=True)
    names = re.findall(r"^\[(?!global)(\w+)\]", jobs, flags=re.M)
    logs = {name: ours / (f"ours-{name}.csv" if len(names) > 1 else "ours.csv") for name in names}
    return {name: (asked(theirs / f"{name}.io"), done(log)) for name, log in logs.items()}


def asked(iolog: Path) -> Places:
    lines = [line.split() for line in iolog.read_text().splitlines()]
    found = [line for line in lines if line[2:3] in (["read"], ["write"])]
    files = list(dict.fromkeys(line[1] for line in found))
    return [(line[2], files.index(line[1]), int(line[3])) for line in found]


def done(log: Path) -> Places:
    return [(each.operation, each.file, each.offset) for each in completions(log)]


def test_every_request_has_the_offset_of_fio(tmp_path: Path) -> None:
    for name, (theirs, ours) in ran(tmp_path, EQUAL).items():
        assert ours == theirs, name
        assert len(theirs) >= 2


def test_backwards_from_the_start_all_but_the_first_request_have_the_offsets_of_fio(tmp_path: Path) -> None:
    for name, (theirs, ours) in ran(tmp_path, BUT_FOR_THE_FIRST).items():
        assert ours[:-1] == theirs[1:], name
        assert len(ours) == len(theirs) >= 16


@pytest.mark.parametrize(
    ("options", "requests"), [("rw=read:4k", 8), ("rw=read:8k", 6), ("rw=read:-8k\noffset=96k", 16)]
)
def test_a_region_within_a_larger_file_ends_as_in_fio(tmp_path: Path, options: str, requests: int) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_bytes(bytes(256 << 10))
    [(theirs, ours)] = ran(tmp_path, f"[a]\nfilename=data\nsize=64k\nbs=4k\n{options}\n").values()
    assert ours == theirs
    assert len(theirs) == requests
