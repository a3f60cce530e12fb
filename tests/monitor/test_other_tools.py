"""iostat and vmstat themselves: on the very same files, and beside the monitor under a real load."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spindle.monitor import DISK, between
from tests.monitor.moments import sample
from tests.workbench import Workbench

COMMAND = [sys.executable, "-m", "spindle.cli", "monitor"]
TOOL_ENVIRONMENT = {**os.environ, "LC_ALL": "C", "S_COLORS": "never"}

# In a mount namespace of its own: mounts files of the test over the kernel's, starts the tool, and replaces their
# content when the tool has read the first file once (its access time shows it).
IN_A_NAMESPACE = """
import json, os, subprocess, sys, time
plan = json.load(sys.stdin)
folder = plan["folder"]
subprocess.run(["mount", "-t", "tmpfs", "-o", "strictatime", "tmpfs", folder], check=True)
for at, (path, texts) in enumerate(plan["files"].items()):
    with open(f"{folder}/{at}", "w") as file:
        file.write(texts[0])
    subprocess.run(["mount", "--bind", f"{folder}/{at}", path], check=True)
os.utime(f"{folder}/0", (0, 0))
tool = subprocess.Popen(plan["tool"])
end = time.monotonic() + 10
while os.stat(f"{folder}/0").st_atime_ns == 0 and tool.poll() is None and time.monotonic() < end:
    time.sleep(0.005)
time.sleep(0.2)
for at, texts in enumerate(plan["files"].values()):
    with open(f"{folder}/{at}", "w") as file:
        file.write(texts[1])
sys.exit(tool.wait(10))
"""


def on_these_files(folder: Path, files: dict[str, tuple[str, str]], tool: list[str]) -> str:
    """Output of a tool that reads the first texts, then the second, in place of the kernel's files."""
    folder.mkdir()
    plan = {"folder": str(folder), "files": files, "tool": tool}
    done = subprocess.run(
        ["timeout", "30", "unshare", "--mount", "--propagation", "private", sys.executable, "-c", IN_A_NAMESPACE],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        check=False,
        env=TOOL_ENVIRONMENT,
    )
    if "unshare" in done.stderr:
        pytest.skip("needs mount namespaces")
    assert done.returncode == 0, done.stderr
    return done.stdout


def need(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def iostat_rows(text: str, device: str) -> list[dict[str, float]]:
    """The rows of a device, by the headings of their blocks."""
    rows, heads = [], []
    for line in text.splitlines():
        parts = line.split()
        if parts and parts[0] == "Device":
            heads = parts[1:]
        elif parts and parts[0] == device:
            rows.append(dict(zip(heads, map(float, parts[1:]), strict=True)))
    return rows


PAIRS = {
    "a mixed load": (
        "100 10 8000 500 200 20 16000 900 0 1000 1500 5 1 4000 60 7 40",
        "317 63 25123 911 263 61 20801 1517 2 1757 2611 9 2 12011 103 10 49",
    ),
    "one slow request": ("0 0 0 0 7 0 56 0 0 0 0 0 0 0 0 0 0", "1 0 8 997 7 0 56 0 0 996 997 0 0 0 0 0 0"),
    "nothing": ("5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5", "5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5"),
    "large counters": (
        "9007199254740993 18014398509481985 72057594037927937 4294000000 1 1 8 1 0 4294960000 4294000000 0 0 0 0 0 0",
        "9007199254749993 18014398509482985 72057594037999937 4294001234 1 1 8 1 9 4294960777 4294004321 0 0 0 0 0 0",
    ),
    "times that wrap at 32 bits": (
        "1000 0 8000 4294967000 1000 0 8000 4294967290 0 4294967200 4294967000 0 0 0 0 0 0",
        "1500 0 12000 204 1001 0 8008 3 1 504 1704 0 0 0 0 0 0",
    ),
}


@pytest.mark.usefixtures("need_root")
@pytest.mark.parametrize("pair", PAIRS)
def test_iostat_prints_the_same_digits_for_the_same_counters(tmp_path: Path, pair: str) -> None:
    need("iostat")
    device = next(name for name in sorted(os.listdir("/sys/block")) if "!" not in name)
    before, after = PAIRS[pair]
    text = on_these_files(
        tmp_path / "files",
        {
            f"/sys/block/{device}/stat": (before + "\n", after + "\n"),
            "/proc/uptime": ("1000.00 500.00\n", "1001.25 501.00\n"),
        },
        ["iostat", "-x", "-y", "-d", "1", "1", device],
    )
    (theirs,) = iostat_rows(text, device)
    ours = between(sample(f"7 0 {device} {before}", 1000.0), sample(f"7 0 {device} {after}", 1001.25)).disks[device]
    assert {name: f"{value:.2f}" for name, value in ours.columns().items()} == {
        name: f"{value:.2f}" for name, value in theirs.items()
    }


@pytest.mark.usefixtures("need_root")
def test_vmstat_prints_the_same_for_the_same_counters(tmp_path: Path) -> None:
    need("vmstat")
    rest = "\nintr 5000 1 2\nctxt 9000\nbtime 1700000000\nprocesses 100\nprocs_running {}\nprocs_blocked {}\n"
    before = "cpu  1000 50 300 8000 600 10 20 70 0 0\ncpu0 1000 50 300 8000 600 10 20 70 0 0" + rest.format(3, 1)
    after = "cpu  1213 67 331 8499 722 13 31 99 0 0\ncpu0 1213 67 331 8499 722 13 31 99 0 0" + rest.format(4, 2)
    text = on_these_files(tmp_path / "files", {"/proc/stat": (before, after)}, ["vmstat", "-n", "1", "2"])
    lines = [line.split() for line in text.splitlines()]
    theirs = dict(zip(lines[1], map(int, lines[-1]), strict=True))
    ours = between(sample("", 0, before), sample("", 1, after)).host
    names = ("r", "b", "us", "sy", "id", "wa", "st")
    assert {name: round(ours[name] or 0) for name in names} == {name: theirs[name] for name in names}


# --- beside each other ----------------------------------------------------------------------------------------------

LOAD = """
[global]
filename={device}
direct=1
group_reporting
[reads]
rw=randread
bs=4k
iodepth=4
ioengine=libaio
number_ios=1500
rate_iops=700
[writes]
rw=write
bs=32k
ioengine=psync
fdatasync=16
number_ios=300
rate_iops=150
[discards]
rw=randtrim
bs=64k
ioengine=psync
number_ios=60
rate_iops=40
"""


def totals(rows: list[dict[str, float]], seconds: list[float]) -> dict[str, float]:
    """Amounts done over several intervals, worked out from their columns. They do not depend on where
    one interval ended and the next began."""
    found = {}
    for letter in "rwd":
        found[f"{letter} requests"] = sum(row[f"{letter}/s"] * s for row, s in zip(rows, seconds, strict=True))
        found[f"{letter} KiB"] = sum(row[f"{letter}kB/s"] * s for row, s in zip(rows, seconds, strict=True))
        found[f"{letter} merged"] = sum(row[f"{letter}rqm/s"] * s for row, s in zip(rows, seconds, strict=True))
        found[f"{letter} ms"] = sum(
            row[f"{letter}_await"] * row[f"{letter}/s"] * s for row, s in zip(rows, seconds, strict=True)
        )
        found[f"{letter} KiB by size"] = sum(
            row[f"{letter}areq-sz"] * row[f"{letter}/s"] * s for row, s in zip(rows, seconds, strict=True)
        )
        found[f"{letter} merged by share"] = sum(
            row[f"{letter}/s"] * s * row[f"%{letter}rqm"] / max(100 - row[f"%{letter}rqm"], 1e-9)
            for row, s in zip(rows, seconds, strict=True)
        )
    found["flushes"] = sum(row["f/s"] * s for row, s in zip(rows, seconds, strict=True))
    found["flush ms"] = sum(row["f_await"] * row["f/s"] * s for row, s in zip(rows, seconds, strict=True))
    found["queue s"] = sum(row["aqu-sz"] * s for row, s in zip(rows, seconds, strict=True))
    found["busy s"] = sum(row["%util"] * s / 100 for row, s in zip(rows, seconds, strict=True))
    return found


def started(command: list[str], out: Path) -> subprocess.Popen[bytes]:
    with out.open("xb") as file:
        return subprocess.Popen(command, stdout=file, env=TOOL_ENVIRONMENT)


def wait_for(intervals: int, ours: Path, theirs: Path, name: str) -> None:
    """Wait until both have reported `intervals` more intervals."""

    def reported() -> tuple[int, int]:
        return ours.read_text().count("\n"), len([line for line in theirs.read_text().splitlines() if name in line])

    begun, end = reported(), time.monotonic() + 30
    while any(now < then + intervals for now, then in zip(reported(), begun, strict=True)):
        assert time.monotonic() < end, "no more reports"
        time.sleep(0.05)


@pytest.mark.alone
def test_beside_iostat_under_a_real_load_every_column_agrees(bench: Workbench) -> None:
    """Both watch an idle device, on which then a load of a fixed number of requests begins and ends; so both must
    account for exactly that load, whatever their phases."""
    for tool in ("iostat", "fio"):
        need(tool)
    device = bench.loop(size=64 << 20)
    name = os.path.basename(device)
    job = bench.new_path("job")
    job.write_text(LOAD.format(device=device))
    counters = Path(f"/sys/block/{name}/stat")
    ours, theirs = bench.new_path("ours"), bench.new_path("theirs")
    watchers = [
        started([*COMMAND, device, "--json", "--cgroups", "0"], ours),
        started(["iostat", "-x", "-y", "-d", "1", "600", name], theirs),
    ]
    try:
        wait_for(1, ours, theirs, name)
        before = list(map(int, counters.read_text().split()))
        subprocess.run(["fio", "--minimal", str(job)], check=True, capture_output=True, cwd=bench.folder, timeout=60)
        after = list(map(int, counters.read_text().split()))
        wait_for(2, ours, theirs, name)
        watchers[0].send_signal(signal.SIGINT)
        assert watchers[0].wait(10) == 0
    finally:
        for watcher in watchers:
            watcher.kill()
            watcher.wait()
    lines = [json.loads(line) for line in ours.read_text().splitlines()]
    assert list(lines.pop()) == ["summary"]
    our_rows = [line["devices"][name] for line in lines]
    their_rows = iostat_rows(theirs.read_text(), name)
    assert set(our_rows[0]) == set(their_rows[0]) == {column.name for column in DISK}
    mine = totals(our_rows, [line["elapsed_s"] for line in lines])
    other = totals(their_rows, [1.0] * len(their_rows))
    kernel = dict(zip(range(17), (new - old for old, new in zip(before, after, strict=True)), strict=True))
    assert mine["r requests"] == pytest.approx(kernel[0], abs=0.5)
    assert mine["w requests"] == pytest.approx(kernel[4], abs=0.5)
    assert mine["d requests"] == pytest.approx(kernel[11], abs=0.5)
    assert mine["flushes"] == pytest.approx(kernel[15], abs=0.5)
    assert mine["r requests"] >= 1500
    assert mine["flushes"] >= 10
    if other["busy s"] > len(their_rows):
        # The kernel's time of use went back, as it may with several processors; iostat takes that for wrapping.
        del mine["busy s"]
    for what, value in mine.items():
        # iostat's clock has ticks of 10 ms, and its intervals are not exactly the second assumed here: 2 %. Awaits are
        # rounded to 0.005 ms, over some 2 000 requests; queue and share of time to 0.005 and 0.005 %.
        slack = {"ms": 0.006 * 2000, "s": 0.005 * len(their_rows) + 0.005}.get(what.split()[-1], 1.0)
        assert value == pytest.approx(other[what], rel=0.02, abs=slack), f"{what}: {value} against {other[what]}"
