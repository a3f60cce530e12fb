"""Garbage in the kernel's files gives `unknown`, never an error."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spindle.host.devices import DevNumber
from spindle.host.outputs import Output
from spindle.library.kinds import KINDS
from spindle.monitor import Interval, Summary, between
from spindle.monitor.cgroups import CgroupIo, parse_v1, parse_v2
from spindle.monitor.disks import parse
from spindle.report.terminal.monitor import CsvFile, JsonLines, Rows
from spindle.report.terminal.monitor.live import LiveView

GOOD = "8 0 sda 100 0 800 50 0 0 0 0 0 40 50 0 0 0 0 0 0"
GARBAGE = [
    "",
    "\n\n\n",
    "\0\0\0",
    "x" * 10_000_000,
    "9" * 10_000_000,
    "8 0 sda " + "7" * 10_000_000,
    "8 0 sda",
    "8 0 sda " + "x " * 17,
    "8 0 sda " + "-1 " * 17,
    "8 0 sda " + "1e3 " * 17,
    "8 0 sda " + "\u0661 " * 17,  # a digit to Python, no digit of the kernel's
    "8 0 sda " + "\u00b2 " * 17,
    "8 0 sda " + f"{1 << 64} " * 17,
    "8 0 sda " + f"{(1 << 64) - 1} " * 17,
    "8 0 sda " + "nan " * 17,
    "8 0 sda 100 0 800 50 0 0 0 0 0 40",
    "a b sda " + "1 " * 17,
    "\ufffd\u202e\x1b[2J " * 20,
    "cpu\nprocs_running\nprocs_blocked x\n",
    "cpu  1 2 x 4\nprocs_running -4\nprocs_blocked \u0663\n",
    "cpu  " + f"{(1 << 64) - 1} " * 10,
    "some avg10=x total=y\nfull avg10=nan total=inf\n",
    "some avg10=1e999 total=99999999999999999999999\nfull\n",
    "some avg10== total==\n=",
]


def shown(interval: Interval, folder: Path) -> str:
    """Output of every view; JSON must parse."""
    out = io.StringIO()
    summary = Summary()
    summary.add(interval)
    with redirect_stdout(out):
        for view in (
            Rows(active_only=False, most_cgroups=5),
            JsonLines(active_only=False),
            LiveView(active_only=False, most_cgroups=5),
        ):
            mark = out.tell()
            view.begin(1.0, {})
            view.show(interval)
            view.end(summary)
            view.close()
            if isinstance(view, JsonLines):
                for line in out.getvalue()[mark:].splitlines():
                    json.loads(line, parse_constant=pytest.fail)
    path = folder / f"{len(list(folder.iterdir()))}.csv"
    file = CsvFile(Output(path, KINDS["recording"], "--output"))
    file.add(interval)
    file.close()
    return out.getvalue() + path.read_text()


def both_ways(tree: Any, name: str, good: str, text: str, folder: Path) -> list[str]:
    """Output for garbage after good text, and for good text after garbage."""
    pages = []
    for texts in ((good, text), (text, good), (text, text)):
        sampler = tree.sampler("sda")
        samples = []
        for content in texts:
            tree.proc(name, content)
            samples.append(sampler.take())
        pages.append(shown(between(*samples), folder))
    return pages


@pytest.mark.parametrize("name", ["diskstats", "stat", "pressure/io"])
@pytest.mark.parametrize("text", GARBAGE, ids=[str(at) for at in range(len(GARBAGE))])
def test_garbage_in_any_file_is_unknown_and_no_error(tree: Any, tmp_path: Path, name: str, text: str) -> None:
    tree.disk("sda", "8:0")
    tree.stats(GOOD)
    good = (tree.machine.proc / name).read_text()
    pages = both_ways(tree, name, good, text, tmp_path)
    if not text.startswith(f"8 0 sda {(1 << 64) - 1}") and not text.startswith("cpu  1844"):
        assert "unknown" in pages[0]


@pytest.mark.parametrize("name", ["diskstats", "stat", "pressure/io", "self/mountinfo"])
def test_a_missing_file_is_unknown_and_no_error(tree: Any, tmp_path: Path, name: str) -> None:
    tree.disk("sda", "8:0")
    tree.stats(GOOD)
    sampler = tree.sampler("sda")
    first = sampler.take()
    tree.proc("stat", "cpu 200 0 60 900 60 0 0 0\nprocs_running 2\nprocs_blocked 1\n")
    (tree.machine.proc / name).unlink()
    interval = between(first, tree.sampler("sda", cgroups=True).take())
    assert ("unknown" in shown(interval, tmp_path)) == (name != "self/mountinfo")


@pytest.mark.parametrize("text", ["", "x", "\0", "-1", "9" * 100_000, "7" * 4000, "\u0663"])
@pytest.mark.parametrize("name", ["dev", "size", "diskseq", "partition"])
def test_garbage_in_sysfs_is_no_error(tree: Any, tmp_path: Path, name: str, text: str) -> None:
    place = tree.disk("sda", "8:0", diskseq=1)
    tree.stats(GOOD)
    sampler = tree.sampler("sda")
    everything = tree.sampler()
    (place / name).write_text(text)
    shown(between(sampler.take(), sampler.take()), tmp_path)
    shown(between(everything.take(), everything.take()), tmp_path)


words = st.sampled_from(
    [
        "8:0",
        "8 0 sda",
        "cpu",
        "some",
        "full",
        "avg10=",
        "total=",
        "rbytes=",
        "rios=",
        "Read",
        "8:0 Write",
        "\n",
        " ",
        "=",
    ]
) | st.text(max_size=8)
texts = st.lists(words | st.integers(-5, 1 << 70).map(str), max_size=40).map(" ".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, texts, texts, texts)
def test_random_texts_are_never_an_error(tree: Any, tmp_path: Path, one: str, two: str, three: str, four: str) -> None:
    if not (tree.machine.sys / "class/block/sda").exists():
        tree.disk("sda", "8:0")
    samples = []
    for diskstats, rest in ((one, two), (three, four)):
        for name, text in (("diskstats", diskstats), ("stat", rest), ("pressure/io", rest)):
            (tree.machine.proc / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        samples.append(tree.sampler("sda").take())
    shown(between(*samples), tmp_path)
    parse_v1(one, two)
    parse_v2(three)


def test_a_damaged_line_leaves_the_other_devices_alone() -> None:
    found = parse(f"{GOOD}\n8 16 sdb 1 2 x 4 5 6 7 8 9 10 11\n{GOOD.replace('8 0 sda', '8 32 sdc')}\n")
    assert found["sdb"].counters is None
    assert found["sda"].counters == found["sdc"].counters is not None


def test_correct_lines_of_damaged_group_files_are_read() -> None:
    sda, sdb = DevNumber(8, 0), DevNumber(8, 16)
    v2 = "8:16 8:0 rbytes=4096 wbytes=x rios=1 wios=2 dbytes=0 dios=0 cost.usage=7\n"
    assert parse_v2(v2) == {sdb: CgroupIo(), sda: CgroupIo(reads=1, read_bytes=4096, writes=2)}
    serviced = "8:0 Read 3\n8:0 Write 4\n8:0 Sync 7\n8:0 Discard 1\n8:0 Total 8\nTotal 8\n8:0 Read\nx Read 4\n"
    size = "8:0 Read 300\n8:0 Write 400\n8:0 Discard 4096\n"
    assert parse_v1(serviced, size) == {sda: CgroupIo(3, 300, 4, 400, 1, 4096)}


def test_groups_of_a_partition_are_those_of_its_disk_and_disks_that_v1_does_not_count_are_named(tree: Any) -> None:
    tree.disk("sda", "8:0")
    tree.disk("sda1", "8:1", parent="sda")
    tree.disk("sdb", "8:16")
    tree.disk("sdc", "8:32")
    numbers = ("0 sda", "1 sda1", "16 sdb", "32 sdc")
    sda, sda1, sdb, sdc = (GOOD.replace("0 sda", number) for number in numbers)
    tree.stats(sda, sda1, sdb, sdc)
    root = tree.machine.sys / "fs/cgroup/blkio"
    (root / "a").mkdir(parents=True)
    (root / "blkio.throttle.io_serviced").write_text("8:0 Read 0\n8:0 Write 0\nTotal 0\n")
    tree.proc("self/mountinfo", "30 20 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n")
    sampler = tree.sampler("sda1", "sdb", "sdc", cgroups=True)
    first = sampler.take()
    (root / "a/blkio.throttle.io_serviced").write_text("8:0 Read 3\nTotal 3\n")
    (root / "a/blkio.throttle.io_service_bytes").write_text("8:0 Read 12288\nTotal 12288\n")
    tree.stats(sda, sda1, sdb.replace(" 100 ", " 103 "), sdc)
    interval = between(first, sampler.take())
    assert [(rates.group, rates.device) for rates in interval.cgroups or []] == [("/a", "sda")]
    assert interval.uncounted == ["sdb"]  # sdc did nothing
    out = io.StringIO()
    with redirect_stdout(out):
        Rows(active_only=False, most_cgroups=5).show(interval)
    assert "no control group is counted on sdb: " in out.getvalue()


def test_a_groups_name_does_not_reach_the_terminal_as_it_is(tree: Any, tmp_path: Path) -> None:
    tree.disk("sda", "8:0")
    tree.stats(GOOD)
    root = tree.machine.sys / "fs/cgroup"
    group = root / "evil\x1b[2J\n"
    group.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu io memory\n")
    tree.proc("self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    sampler = tree.sampler("sda", cgroups=True)
    first = sampler.take()
    (group / "io.stat").write_text("8:0 rbytes=4096 rios=1\n")
    interval = between(first, sampler.take())
    assert interval.cgroups is not None
    assert interval.cgroups[0].group == "/evil\x1b[2J\n"
    out = io.StringIO()
    with redirect_stdout(out):
        Rows(active_only=False, most_cgroups=5).show(interval)
    assert "/evil?[2J? on sda" in out.getvalue()
    assert sys.stdout is not out
