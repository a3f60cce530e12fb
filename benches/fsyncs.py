"""fsyncs on ext4 and XFS, simulated and under the lab's kernel: rows for docs/explanation/simulator.md.

    python benches/fsyncs.py

Needs the lab (`make lab`) and spindle-agent (`make agent`); about two minutes.
"""

from __future__ import annotations

from spindle import _core
from spindle.formats import agent
from spindle.lab import load
from spindle.lab.assembly import setup_of
from spindle.result.figures import Figures
from spindle.result.record import RunRecord
from spindle.run.resolve import resolve_text
from spindle.run.simulate import read_figures

LEVELS = {"single": 1, "raid0": 4, "raid1": 2, "raid10": 4, "raid5": 4}
"""Level -> drives."""
LOADS = {
    "1 writer, direct": "write_fraction = 1\n",
    "8 writers, direct": "write_fraction = 1\nworkers = 8\n",
    "16 workers, 30 % writes, page cache": "write_fraction = 0.3\nworkers = 16\ndirect = false\n",
}
MOUNT = {"ext4": "noinit_itable,no_prefetch_block_bitmaps"}
"""The kernel reads the bitmaps of a new ext4 and zeroes its tables of inodes in the background; the model does not."""
RAMP_S = 20
"""Until then the drives write what mkfs and the test file have left in their caches."""


def main() -> None:
    """Print a row for each machine and load."""
    print("| level | file system | load | fsyncs/s, lab | simulator | mean fsync, lab | simulator |")
    print("|---|---|---|---|---|---|---|")
    for level, drives in LEVELS.items():
        for kind in ("ext4", "xfs"):
            for name, lines in LOADS.items():
                row(level, drives, kind, name, lines)


def row(level: str, drives: int, kind: str, name: str, lines: str) -> None:
    """Print one row."""
    array = "" if level == "single" else f"[array]\nlevel = '{level}'\ndata_offset = '1MiB'\n"
    mount = f"mount = '{MOUNT[kind]}'\n" if kind in MOUNT else ""
    text = f"{array}[filesystem]\ntype = '{kind}'\n{mount}[[drive]]\nmodel = 'WD10EACS'\ncount = {drives}\n"
    machine = _core.Machine.parse(text, level)
    workload = f"seconds = 20\nramp = '{RAMP_S}s'\nsize = '4KiB'\npattern = 'uniform'\nfsync_every = 1\n{lines}"
    [simulated] = _core.simulate_many([(machine, _core.Workload.parse(workload, name, "fsyncs"))], threads=1)
    ways = [under_the_kernel(machine, workload), read_figures(simulated).run]
    (lab_rate, lab_ms), (rate, ms) = (fsyncs(of) for of in ways)
    print(
        f"| {level} | {kind} | {name} | {lab_rate:.1f} | {100 * (rate / lab_rate - 1):+.0f} % | {lab_ms:.1f} ms "
        f"| {100 * (ms / lab_ms - 1):+.0f} % |",
        flush=True,
    )


def under_the_kernel(machine: _core.Machine, workload: str) -> Figures:
    """The figures of the lab."""
    resolved = resolve_text(workload, "fsyncs", "fsyncs")
    done = load.carry_out(load.Task(machine, setup_of(machine), "fsyncs", resolved.text, ()))
    record = agent.read(done.document, "the lab's result", preflight={})
    assert isinstance(record, RunRecord)
    return record.figures


def fsyncs(figures: Figures) -> tuple[float, float]:
    """fsyncs in a second, and their mean latency in ms."""
    stream = figures.streams[0]
    assert stream.fsync is not None
    return stream.fsync.requests / (stream.measured_ns / 1e9), stream.fsync.latency.mean_ns / 1e6


if __name__ == "__main__":
    main()
