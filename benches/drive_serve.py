"""A served drive in real time against the simulator's figure of the same closed loop.

    python benches/drive_serve.py [--models HDS725050KLA360,service] [--through file,loop,nbd] [--depths 1,8,32]
                                  [--tools spindle,fio] [--seconds 20] [--spin 200us] [--json]

`spindle drive serve` shows a modelled drive, and random reads of 4 KiB run on it, 1 to 32 outstanding. The model named
`service` is a plain service time of 1 ms.

| through | way of a request |
|---|---|
| `file` | io_uring (Spindle) or libaio (fio), the kernel's FUSE, the server |
| `loop` | the same, with a loop device on the file (`--direct-io=on`, root) |
| `nbd` | fio's NBD engine, a Unix socket, the server |

| tool | requests | model's figure |
|---|---|---|
| `spindle` | a fixed number, as many as the model serves in `--seconds` | the same requests from the same seed |
| `fio` | random ones for `--seconds`, after a ramp of 1 s | a run of ten minutes of the model |

So Spindle's difference has no part of chance in the places that are read; fio's has, about 0.4 / sqrt(requests) of the
rate at depth 1. fio waits for the last requests of a run, which costs it a little at depth 32.

Goal: every rate within 3 % of the model's; the exit status is 1 if one is not. A drive whose requests take less than
`SHORTEST_S` is printed without a goal: the way through kernel and server, which is not the model's, is more than
that share. On a busy machine, run all of it with `chrt --fifo 1`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import spindle
from spindle.result.record import RunRecord

GOAL = 0.03
SHORTEST_S = 2e-3
"""Mean latency from which on the goal holds: 3 % of it is 60 us, about what the way through FUSE takes."""
SIZE = "4KiB"
SERVICE = "service"
SERVICE_KEYS = {"service": "1ms", "queue_depth": "32"}
SERVICE_SIZE = "1GiB"
MODELS = ["HDS725050KLA360", SERVICE]
THROUGH = ["file", "loop", "nbd"]
TOOLS = ["spindle", "fio"]
DEPTHS = [1, 2, 4, 8, 16, 32]
LONG_S = 600


@dataclass(frozen=True)
class Row:
    """Rates in requests per second; lateness of the server's completions in nanoseconds."""

    model: str
    through: str
    tool: str
    depth: int
    expected: float
    measured: float
    late_p50_ns: int
    late_p99_ns: int

    @property
    def difference(self) -> float:
        """Relative to the model."""
        return self.measured / self.expected - 1

    @property
    def has_goal(self) -> bool:
        """False if a request is shorter than the way to the server allows."""
        return self.depth / self.expected >= SHORTEST_S

    @property
    def is_missed(self) -> bool:
        """True if the goal holds and is missed."""
        return self.has_goal and abs(self.difference) > GOAL


def machine_of(model: str, folder: Path) -> Path:
    """The drive in a machine of its own, without an elevator: what the server's queue is."""
    keys = {**SERVICE_KEYS, "capacity": SERVICE_SIZE} if model == SERVICE else {"model": model}
    lines = [f"{key} = {value if value.isdecimal() else json.dumps(value)}" for key, value in keys.items()]
    path = folder / f"{model}.toml"
    path.write_text("[queue]\nscheduler = 'none'\n\n[[drive]]\n" + "\n".join(lines) + "\n")
    return path


def served_by_spindle(target: Path, depth: int, **end: object) -> float:
    """Random reads by Spindle's engine on a file or device, or by the simulator on a machine."""
    keys = {"workers": 1, "depth": depth, "write_fraction": 0, "size": SIZE, **end}
    record = spindle.run("randomio", target, **keys).record
    assert isinstance(record, RunRecord)
    read = record.figures.streams[0].read
    assert read is not None
    return read.iops


def served_by_fio(through: str, where: str, size: int, depth: int, seconds: int) -> float:
    """Random reads by fio."""
    place = ["--ioengine=nbd", f"--uri=nbd+unix:///?socket={where}"]
    if through != "nbd":
        place = ["--ioengine=libaio", "--direct=1", f"--filename={where}"]
    command = [
        "fio", "--name=load", *place, f"--size={size}", "--rw=randread", f"--bs={SIZE.removesuffix('iB')}",
        f"--iodepth={depth}", f"--runtime={seconds}", "--time_based", "--ramp_time=1s", "--norandommap",
        "--output-format=json",
    ]  # fmt: skip
    with tempfile.NamedTemporaryFile("r") as found:  # its NBD engine prints to stdout
        done = subprocess.run([*command, f"--output={found.name}"], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"drive_serve: `{' '.join(command)}` failed ({done.returncode}): {done.stderr.strip()}")
        return float(json.load(found)["jobs"][0]["read"]["iops"])


class Served:
    """`spindle drive serve` as a process of its own."""

    def __init__(self, model: str, through: str, spin: str, folder: Path) -> None:
        place = folder / "disk.sock" if through == "nbd" else folder / "mount"
        if through != "nbd":
            place.mkdir()
        keys = [f"--key={key}={value}" for key, value in SERVICE_KEYS.items()] if model == SERVICE else []
        size = ["--size", SERVICE_SIZE] if model == SERVICE else []
        command = [sys.executable, "-m", "spindle.cli", "drive", "serve", model, *keys, *size]
        command += ["--nbd" if through == "nbd" else "--file", str(place), "--spin", spin, "--json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()  # MODEL, N bytes: WHERE
        self.where = str(place if through == "nbd" else place / "disk")
        if not line.rstrip().endswith(self.where):
            self._process.wait()
            sys.exit(f"drive_serve: the server did not begin: {line}{self._process.stderr.read()}")
        self.bytes = int(line.rpartition(" bytes:")[0].rpartition(" ")[2])

    def end(self) -> dict[str, Any]:
        """End it; its figures."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        out, err = self._process.communicate()
        if self._process.returncode:
            sys.exit(f"drive_serve: the server failed ({self._process.returncode}): {err.strip()}")
        return dict(json.loads(out))


@contextlib.contextmanager
def target_of(through: str, served: Served) -> Iterator[str]:
    """The target of the tools: file, loop device or socket."""
    if through != "loop":
        yield served.where
        return
    command = ["losetup", "--find", "--show", "--direct-io=on", served.where]
    device = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def measure(model: str, through: str, tool: str, depth: int, options: argparse.Namespace) -> Row:
    """One tool on a server of its own, beside the model."""
    with tempfile.TemporaryDirectory(prefix="spindle-serve-") as name:
        folder = Path(name)
        machine = machine_of(model, folder)
        expected = served_by_spindle(machine, depth, seconds=LONG_S)
        requests = max(depth, round(expected * options.seconds))
        if tool == "spindle":
            expected = served_by_spindle(machine, depth, requests=requests)
        served = Served(model, through, options.spin, folder)
        try:
            with target_of(through, served) as where:
                if tool == "spindle":
                    measured = served_by_spindle(Path(where), depth, requests=requests)
                else:
                    measured = served_by_fio(through, where, served.bytes, depth, options.seconds)
        finally:
            late = served.end()["lateness"]
    return Row(model, through, tool, depth, expected, measured, late["p50_ns"], late["p99_ns"])


def line_of(row: Row) -> str:
    """A row of the table of docs/explanation/drives.md."""
    cells = [
        f"`{SERVICE}`, 1 ms" if row.model == SERVICE else row.model,
        row.through,
        row.tool,
        str(row.depth),
        f"{row.expected:.1f}",
        f"{row.measured:.1f}",
        f"{row.difference:+.2%}".replace("%", " %") + (" (missed)" if row.is_missed else ""),
        f"{row.late_p50_ns / 1e3:.0f} us",
        f"{row.late_p99_ns / 1e3:.0f} us",
    ]
    return f"| {' | '.join(cells)} |"


def chosen(text: str, known: list[str] | None = None) -> list[str]:
    """Words between commas, each of them known."""
    words = text.split(",")
    if known is not None and (wrong := [word for word in words if word not in known]):
        sys.exit(f"drive_serve: {wrong[0]}: is none of {', '.join(known)}")
    return words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="names of the catalogue, or `service`")
    parser.add_argument("--through", default=",".join(THROUGH))
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--depths", default=",".join(map(str, DEPTHS)))
    parser.add_argument("--seconds", type=int, default=20, help="length of each run")
    parser.add_argument("--spin", default="200us", help="as of `spindle drive serve`")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ways, tools = chosen(options.through, THROUGH), chosen(options.tools, TOOLS)
    if "fio" in tools and shutil.which("fio") is None:
        sys.exit("drive_serve: needs fio (apt install fio), or `--tools spindle`")
    if "loop" in ways and os.geteuid() != 0:
        sys.exit("drive_serve: needs root for the loop device, or `--through file,nbd`")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("drive_serve: stopped"))
    if not options.json:
        print("| model | through | tool | depth | model, IOPS | measured | difference | late p50 | late p99 |")
        print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for model in chosen(options.models):
        for through in ways:
            for tool in tools:
                if (through, tool) == ("nbd", "spindle"):
                    continue  # Spindle's engine reads files and devices
                for depth in map(int, chosen(options.depths)):
                    rows.append(measure(model, through, tool, depth, options))
                    if not options.json:
                        print(line_of(rows[-1]), flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    missed = sum(row.is_missed for row in rows)
    with_goal = sum(row.has_goal for row in rows)
    print(f"{with_goal - missed} of {with_goal} rates within {GOAL:.0%} of the model", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
