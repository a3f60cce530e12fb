"""`spindle assess`: answers and margins on machines of known ability, exit statuses, and what is refused."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import spindle
from spindle.report.terminal.style import Style
from tests.program import Ended
from tests.program import spindle as spindle_of
from tests.workbench import Workbench

Invoke = Callable[..., Ended]
SERVICE_MS, BYTES_PER_S = 1.0, 300e6
PIECE_S = SERVICE_MS / 1e3 + 2**20 / BYTES_PER_S
"""Time of the only server for a piece of 1 MiB."""
BLKIO = Path("/sys/fs/cgroup/blkio")


def machine(here: Path, service: str = f"{SERVICE_MS:g}ms", more: str = "") -> str:
    """A machine with a single server, whose ability follows from arithmetic."""
    file = here / "server.toml"
    file.write_text(
        f"[host]\nkernel = '6.1'\n[[drive]]\nservice = '{service}'\ntransfer_rate = '300 MB/s'\nflush = '1ms'\n"
        f"capacity = '100GiB'\nrotational = false\n{more}"
    )
    return str(file)


@pytest.mark.parametrize(("ability", "answer"), [(0.9, "no"), (1.05, "yes"), (2.0, "yes")])
def test_streams_at_a_fixed_rate_fit_until_the_server_is_busy_all_the_time(
    here: Path, ability: float, answer: str
) -> None:
    most = 2**20 / PIECE_S
    found = spindle.assess(machine(here), "backup", rate=most / ability / 1.5, read_rate=most / ability / 3)
    assert found.answer == answer
    assert found.margin.value == pytest.approx(ability, rel=0.05)
    assert found.margin.value is not None
    assert found.margin.least is not None
    assert found.margin.most is not None
    assert found.margin.least <= found.margin.value <= found.margin.most
    assert found.bottleneck is not None
    assert found.bottleneck.kind == "drives"


@pytest.mark.parametrize(("ability", "answer"), [(0.9, "no"), (2.0, "yes")])
def test_viewers_fit_until_the_server_is_busy_all_the_time(here: Path, ability: float, answer: str) -> None:
    most = 1 / PIECE_S / (15e6 / 8 / 2**20)
    found = spindle.assess(machine(here), "video", streams=round(most / ability))
    assert found.answer == answer
    assert found.margin.value == pytest.approx(ability, rel=0.05)


def test_an_assessment_is_stored_and_its_report_says_the_answer_and_repeats_it(
    here: Path,
) -> None:
    store = str(here / "store.db")
    need = ("--for", "video", "--streams", "30", "--bit-rate", "12Mbit/s", "--seconds", "90")
    done = spindle_of("assess", "one-sata", *need, "--store", store, "--tag", "films", "--json", "-q", cwd=here)
    assert done.status == 1, done.err
    page = spindle_of("report", "tag:films", "--store", store, cwd=here)
    assert f"one-sata for video: {done.json['answer']}: {done.json['reason']}" in page.out.replace("\n", " ")
    assert "\ntimes the need  " in page.out
    assert "requests/s" not in page.out.partition("\nVerdicts\n")[0]
    command = next(line.strip() for line in page.out.splitlines() if "spindle assess" in line)
    again = spindle_of(*shlex.split(command)[1:], "--json", "-q", cwd=here)
    assert [again.json[key] for key in ("search", "margin", "answer")] == [
        done.json[key] for key in ("search", "margin", "answer")
    ]


def test_a_stream_that_waits_for_others_is_named_and_holds_alone(here: Path) -> None:
    found = spindle.assess(machine(here, "2ms"), "postgres", tps=110, reads=1, commit_p99="20ms", read_p99="200ms")
    assert found.bottleneck is not None
    assert any("alone is within its bounds" in line for line in found.bottleneck.evidence)


def test_a_machine_that_is_too_slow_says_how_many_drives_would_do(here: Path) -> None:
    found = spindle.assess(machine(here), "video", streams=330)
    assert found.answer == "no"
    assert found.drives is not None
    assert found.drives.now == 1
    assert found.drives.enough == 4  # 330 viewers take 2.7 such servers, and raid10 an even number
    assert any("4 of these drives as raid10 would do" in line for line in found.next_steps)


def test_more_drives_do_not_shorten_a_flush(here: Path) -> None:
    found = spindle.assess(machine(here), "postgres", tps=20, commit_p99="1500us", seconds=10)
    assert found.answer == "no"
    assert found.drives is not None
    assert found.drives.enough is None
    assert found.bottleneck is not None
    assert found.bottleneck.kind == "latency"


def test_too_few_requests_for_a_p99_cannot_say(here: Path) -> None:
    found = spindle.assess(machine(here), "mail", mailboxes=100, seconds=2)
    assert found.answer == "cannot say"
    assert "longer runs (`seconds=`) can" in found.reason


def test_data_in_a_part_of_a_disk_need_shorter_seeks(here: Path) -> None:
    whole = spindle.assess("one-sata", "vm-host", guests=1, read_p99="60ms", write_p99="60ms", seconds=30)
    part = spindle.assess("one-sata", "vm-host", guests=1, read_p99="60ms", write_p99="60ms", seconds=30, data="4GiB")
    assert (part.margin.least or 0) > (whole.margin.least or 0)


def test_status_0_is_yes_and_1_is_no(here: Path, invoke: Invoke) -> None:
    one = machine(here)
    yes = invoke("assess", one, "--for", "video", "--streams", "50")
    assert yes.status == 0
    assert "Yes: the need was met." in yes.out
    assert "<- the need" in yes.out
    no = invoke("assess", one, "--for", "video", "--streams", "200")
    assert no.status == 1
    assert no.err.strip().splitlines()[-1].startswith("spindle: no: the need was not met")
    assert "limit: time of the drives" in no.out


def test_json_has_the_answer_the_margin_and_every_run(here: Path, invoke: Invoke) -> None:
    ended = invoke("assess", machine(here), "--for", "video", "--streams", "50", "--json")
    data = json.loads(ended.out)
    assert data["answer"] == "yes"
    assert data["margin"]["least"] > 2
    runs = {run["id"] for run in data["runs"]}
    assert {run for point in data["search"]["points"] for run in point["runs"]} <= runs
    assert {number["key"]: number["source"] for number in data["need"]}["streams"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--for", "video", "--tps", "3"), "--tps: not a number of a need for video"),
        (("--for", "postgres", "--commit-p99", "soon"), "--commit-p99 soon"),
        (("--for", "postgres", "--data", "30TiB"), "too little for data of 30 TiB"),
        (("--for", "video", "--erase", "/dev/null"), "--erase"),
        (
            (
                "--for",
                "nas",
            ),
            "'nas' is not one of",
        ),
        ((), "--for"),
    ],
)
def test_a_wrong_request_is_one_line_and_status_2(invoke: Invoke, arguments: tuple[str, ...], words: str) -> None:
    ended = invoke("assess", "one-sata", *arguments)
    assert ended.status == 2
    assert words in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_the_page_says_where_each_default_comes_from(here: Path) -> None:
    found = spindle.assess(machine(here), "postgres", tps=50, seconds=5)
    page = "\n".join(found.page(Style()))
    assert "default (etcd's limit for the p99 of a sync of its log)" in page
    assert "transactions a second" in page
    assert str(found) == page


# --- real storage ----------------------------------------------------------------------------------------------------


def test_a_folder_is_assessed_with_a_file_that_is_removed(tmp_path: Path, invoke: Invoke) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    ended = invoke("assess", str(folder), "--for", "vm-host", "--guests", "50", "--data", "64MiB", "--seconds", "1",
                   "--read-p99", "5s", "--write-p99", "5s", "--json")  # fmt: skip
    data = json.loads(ended.out)
    assert data["target"]["created"]
    assert 1.0 in [point["value"] for point in data["search"]["points"]]
    assert list(folder.iterdir()) == []


def test_a_device_is_not_written_without_consent(
    bench: Workbench, invoke: Invoke, content: Callable[[str], str]
) -> None:
    device = bench.loop()
    before = content(device)
    ended = invoke("assess", device, "--for", "postgres", "--seconds", "1")
    assert ended.status == 3
    assert "--erase" in ended.err
    assert content(device) == before


def test_a_device_is_read_without_consent(bench: Workbench, invoke: Invoke, content: Callable[[str], str]) -> None:
    device = bench.loop()
    before = content(device)
    ended = invoke(
        "assess", device, "--for", "video", "--streams", "1", "--bit-rate", "1Gbit/s", "--seconds", "1", "--json"
    )
    assert json.loads(ended.out)["search"]["points"]
    assert content(device) == before


@contextmanager
def limited(device: str, iops: int) -> Iterator[None]:
    """This process in a control group that reads and writes the device at this rate."""
    status = os.stat(device)
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    group = BLKIO / f"spindle-assess-{os.getpid()}"
    home = next(line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines() if ":blkio:" in line)
    group.mkdir()
    try:
        for direction in ("read", "write"):
            (group / f"blkio.throttle.{direction}_iops_device").write_text(f"{number} {iops}")
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (BLKIO / home.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


@pytest.mark.alone
@pytest.mark.skipif(not BLKIO.is_dir(), reason="needs the block throttle of cgroup v1")
def test_the_margin_of_ext4_on_a_throttled_device_is_that_of_the_throttle(bench: Workbench, need_root: None) -> None:
    """Three in five requests read: 300 reads a second are 500 requests, those of 16.7 guests."""
    device = bench.loop(size=256 << 20)
    bench.run("mkfs.ext4", "-q", device)
    folder = bench.mount(device)
    bounds = {"read_p99": "250ms", "write_p99": "250ms", "data": "100MiB", "seconds": 4.0}
    with limited(device, 300):
        found = spindle.assess(folder, "vm-host", guests=8, **bounds)  # type: ignore[arg-type]
    assert found.answer == "yes"
    assert found.margin.value == pytest.approx(500 / 30 / 8, rel=0.10)
    assert found.bottleneck is not None
    assert found.bottleneck.kind == "group-limit"
