"""`spindle monitor` as people and programs use it."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spindle.cli.main import invoke
from spindle.report.terminal.monitor.live import BARS, sparkline
from tests.workbench import Workbench

COMMAND = [sys.executable, "-m", "spindle.cli", "monitor"]


def run(*arguments: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=30, check=False, **more
    )


@pytest.fixture
def disk() -> str:
    """A disk that stays: loop devices come and go with other tests."""
    names = [name for name in os.listdir("/sys/class/block") if "!" not in name]
    if not names:
        pytest.skip("this machine has no block device")
    return min(names, key=lambda name: (name.startswith(("loop", "zram", "ram")), name))


def test_count_ends_it_and_a_pipe_gets_aligned_rows_and_the_summary(disk: str, tmp_path: Path) -> None:
    done = run(disk, "--interval", "0.1", "--count", "3", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "first at the start of this command (not at boot)" in lines[0]
    heads = [at for at, line in enumerate(lines) if line.startswith("Device ")]
    assert len(heads) == 4  # three reports, one summary
    for at in heads:
        assert lines[at + 1].startswith(disk)
        assert len(lines[at]) == len(lines[at + 1])
    assert "Summary of 3 intervals" in done.stdout
    assert "\x1b" not in done.stdout


def test_json_is_an_object_a_line_and_the_summary_as_the_last(disk: str, tmp_path: Path) -> None:
    done = run(disk, "-i", "0.1", "-n", "2", "--json", cwd=tmp_path)
    first, second, last = map(json.loads, done.stdout.splitlines())
    for report in (first, second):
        assert list(report["devices"]) == [disk]
        assert len(report["devices"][disk]) == 22
        assert 0.05 < report["elapsed_s"] < 5
    assert last["summary"]["intervals"] == 2
    assert set(last["summary"]["devices"][disk]["r/s"]) == {"mean", "max"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_with_a_summary_and_exit_status_0(disk: str, tmp_path: Path, number: int) -> None:
    process = subprocess.Popen(
        [*COMMAND, disk, "-i", "0.2"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    seen = ""
    while f"\n{disk} " not in seen:
        seen += process.stdout.readline()
    # An impatient second one does not cut the summary short: both are there when the program looks.
    for each in (signal.SIGSTOP, number, signal.SIGHUP, signal.SIGCONT):
        process.send_signal(each)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")
    assert "Summary of " in out
    assert f"{disk} mean" in out
    assert f"{disk} max" in out


def test_ctrl_c_before_the_first_report_says_so(disk: str, tmp_path: Path) -> None:
    process = subprocess.Popen([*COMMAND, disk, "-i", "600"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "before the first interval was over" in out


def test_the_file_has_units_in_its_header_and_a_row_at_once_for_each_report(disk: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    process = subprocess.Popen(
        [*COMMAND, disk, "-i", "0.2", "--cgroups", "0", "-o", "x.csv"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        reports = 0
        while reports < 3:
            reports += process.stdout.readline().startswith(disk)
            # While it runs: each report that was shown is in the file, and no part of a row.
            assert path.read_text().endswith("\n")
            assert path.read_text().count("\n") >= 1 + reports
    finally:
        process.kill()
        process.communicate()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    heads = list(rows[0])
    assert heads[:6] == ["time [UTC]", "elapsed [s]", "device", "cgroup", "procs r [tasks]", "procs b [tasks]"]
    assert {"cpu us [%]", "psi io some10 [%]", "r/s [1/s]", "rkB/s [KiB/s]", "aqu-sz [requests]"} <= set(heads)
    assert all(head.endswith("]") or head in ("device", "cgroup") for head in heads)
    assert len(rows) >= 3
    assert all(row["device"] == disk and float(row["elapsed [s]"]) > 0.05 for row in rows)
    assert all(row["procs r [tasks]"].isdigit() for row in rows)


def test_an_existing_file_is_never_overwritten(disk: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("measured yesterday\n")
    (tmp_path / "link.csv").symlink_to("elsewhere.csv")
    for name in ("x.csv", "link.csv", ".", "no/such/folder.csv", "/dev/null", "/proc/x.csv"):
        done = run(disk, "-n", "1", "-i", "0.1", "-o", name, cwd=tmp_path)
        assert done.returncode == (3 if name == "x.csv" else 2), name
        assert len(done.stderr.splitlines()) == 1
        assert done.stdout == ""
    assert (tmp_path / "x.csv").read_text() == "measured yesterday\n"
    assert not (tmp_path / "elsewhere.csv").exists()


def test_a_full_disk_ends_it_with_one_line(bench: Workbench, disk: str) -> None:
    folder = bench.folder / "small"
    folder.mkdir()
    bench.run("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder)
    bench.undo.callback(bench.run, "umount", "--lazy", folder, check=False)
    done = run(disk, "-i", "0.05", "-n", "200", "-o", "small/x.csv", cwd=bench.folder)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "--output small/x.csv: No space left on device" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuchdisk"],
        ["--interval", "0"],
        ["--interval", "-1"],
        ["--interval", "nan"],
        ["--interval", "inf"],
        ["--interval", "soon"],
        ["--interval", "1e9"],
        ["--count", "0"],
        ["--count", "x"],
        ["--cgroups", "-1"],
        ["--nosuch"],
        ["/dev/null"],
        ["\x1b[2J\n"],
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["monitor", *arguments, "-o", "x.csv"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("spindle: ")
    assert line.isprintable()
    assert not (tmp_path / "x.csv").exists()


def test_a_reader_that_goes_away_ends_it_quietly(disk: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, disk, "-i", "0.05"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(10) == 1
    assert process.stderr.read() == ""
    process.stderr.close()


def on_a_terminal(arguments: list[str], columns: int, awaited: Callable[[str], bool], **environment: str) -> str:
    """Output on a terminal of that width. Presses Ctrl-C when the awaited text has appeared; the program's exit
    status must be 0."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        os.execve(COMMAND[0], [*COMMAND, *arguments], {**os.environ, "TERM": "xterm", **environment})
    seen, end, pressed = b"", time.monotonic() + 15, False
    while True:
        if not pressed and (awaited(seen.decode(errors="ignore")) or time.monotonic() > end):
            os.write(terminal, b"\x03")
            pressed = True
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    return seen.decode()


@pytest.mark.parametrize("columns", [60, 100, 220])
def test_a_terminal_gets_a_live_view_with_curves_and_keeps_the_summary(disk: str, columns: int) -> None:
    seen = on_a_terminal([disk, "-i", "0.1"], columns, lambda seen: bool(set(seen) & set(BARS)))
    live, _, summary = seen.rpartition("\x1b[?25h")  # the cursor comes back when the view ends
    assert set(live) & set(BARS)
    assert "%util" in live or columns < 100
    assert "Summary of " in summary
    assert not set(summary) & set(BARS)


def test_a_curve_is_as_high_as_its_values() -> None:
    assert sparkline([0, 50, 100, None, 1], 100) == "▁▅█ ▁"
    assert sparkline([0, 0], 0) == "▁▁"


def test_a_dumb_terminal_gets_plain_rows(disk: str) -> None:
    seen = on_a_terminal([disk, "-i", "0.1"], 100, lambda seen: f"\n{disk} " in seen, TERM="dumb")
    assert "\x1b[?25" not in seen
    assert f"{disk} " in seen


# --- under a load ----------------------------------------------------------------------------------------------------

READER = (
    "import mmap, os, sys, time\nfd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)\nbuffer = mmap.mmap(-1, 65536)\n"
    "if len(sys.argv) > 2: open(sys.argv[2], 'w').write(str(os.getpid()))\n"
    "print(flush=True)\nwhile True: os.preadv(fd, [buffer], 0); time.sleep(0.005)"
)


def test_idle_devices_are_left_out_when_asked(bench: Workbench) -> None:
    busy, idle = bench.loop(), bench.loop()
    bench.python(READER, busy)
    both = run(busy, idle, "-i", "0.3", "-n", "1", "--json", cwd=bench.folder)
    one = run(busy, idle, "-i", "0.3", "-n", "1", "--json", "--active", cwd=bench.folder)
    names = [os.path.basename(device) for device in (busy, idle)]
    assert list(json.loads(both.stdout.splitlines()[0])["devices"]) == names
    assert list(json.loads(one.stdout.splitlines()[0])["devices"]) == names[:1]


def counted(device: str, group: Path) -> None:
    """v1 counts a disk once it has a limit (since Linux 6.10): here one that nothing reaches."""
    limits = group / "blkio.throttle.read_bps_device"
    if limits.exists():
        number = Path("/sys/class/block", os.path.basename(device), "dev").read_text().strip()
        limits.write_text(f"{number} {1 << 50}")


@pytest.mark.alone
def test_the_io_of_a_control_group_is_reported_under_its_name(bench: Workbench) -> None:
    from spindle.host.devices import HERE
    from spindle.monitor.cgroups import hierarchy

    found = hierarchy(HERE)
    if found is None:
        pytest.skip("needs a cgroup hierarchy that counts I/O")
    group = found.root / f"spindle-monitor-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"needs the right to make a control group: {error.strerror}")
    device = bench.loop()
    try:
        if not any((group / name).exists() for name in ("io.stat", "blkio.throttle.io_serviced")):
            pytest.skip("needs the io controller in new groups")
        counted(device, group)
        process = bench.python(READER, device, str(group / "cgroup.procs"))
        done = run(device, "-i", "0.5", "-n", "8", "--json", cwd=bench.folder)
        process.kill()
        process.wait()
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)
    # The reader takes its time to start; the last interval in which it read is a whole one.
    reports = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
    found_in = [
        (report, rate) for report in reports for rate in report["cgroups"] if rate["cgroup"] == f"/{group.name}"
    ]
    assert not any(report["cgroups_uncounted"] for report in reports)
    _, rates = found_in[-1]
    name = os.path.basename(device)
    assert rates["device"] == name
    assert rates["r/s"] > 10
    assert rates["rkB/s"] == pytest.approx(rates["r/s"] * 64, rel=0.01)
    # The two are not read at the same moment: over all intervals that matters little.
    of_group = sum(rates["rkB/s"] for _, rates in found_in)
    of_device = sum(report["devices"][name]["rkB/s"] for report, _ in found_in)
    assert of_group == pytest.approx(of_device, rel=0.2)


def test_a_device_that_comes_and_goes_is_reported(bench: Workbench) -> None:
    image = bench.image()
    device = bench.loop(image)
    name = os.path.basename(device)
    process = subprocess.Popen(
        [*COMMAND, device, "--json", "-i", "0.2"], cwd=bench.folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["appeared"] == []
        bench.exchange(device, bench.image())
        events = []
        for _ in range(15):
            events.extend(json.loads(process.stdout.readline())["appeared"])
        assert events == [name]
    finally:
        process.kill()
        process.communicate()
