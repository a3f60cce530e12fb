"""bonnie++'s table: block output, rewrite, block input and seeks of a target, in KiB/s, with CPU shares and latencies.

A run of sequential writes fills the first, sequential reads the third, random requests the last; what no run measured
stays empty. Rewriting is a phase of its own in bonnie++ (read, change, write back) that no single stream does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spindle.report.document.traits import place
from spindle.result import units
from spindle.result.record import RunRecord
from spindle.result.workload import Sequential, WorkloadStream

HEAD = (
    "                    ------Sequential Output------ --Sequential Input- --Random-",
    "                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--",
    "Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP",
)
PHASES = ("putc", "write", "rewrite", "getc", "read", "seeks")


@dataclass
class _Line:
    """One target: phase -> (figure, share of a CPU in %, worst latency in ns)."""

    size_bytes: int
    phases: dict[str, tuple[float, float, int]] = field(default_factory=dict)


def page(runs: Sequence[RunRecord]) -> list[str]:
    """A line for each target; of several runs of one phase, the last."""
    lines: dict[str, _Line] = {}
    for run in runs:
        line = lines.setdefault(place(run.target), _Line(run.target.size_bytes))
        elapsed = max(run.figures.elapsed_ns, 1)
        share = 100 * (run.figures.cpu.user_ns + run.figures.cpu.system_ns) / elapsed
        for spec, stream in zip(run.workload.streams, run.figures.streams, strict=False):
            phase = _phase(spec)
            ops = [op for _, op in stream.ops()]
            if phase is None or not ops:
                continue
            figure = stream.iops if phase == "seeks" else stream.bytes_per_s / 1024
            line.phases[phase] = (figure, share, max(op.latency.max_ns for op in ops))
    found = list(HEAD)
    for name, line in lines.items():
        figures = "".join(f"{_figure(name_of, line):>6}{_share(name_of, line):>4}" for name_of in PHASES)
        found.append(f"{name[:14]:<14}{_size(line.size_bytes):>5}{figures}".rstrip())
        found.append(f"{'Latency':<19}{''.join(f'{_latency(phase, line):>10}' for phase in PHASES)}".rstrip())
    return found


def _phase(stream: WorkloadStream) -> str | None:
    if not isinstance(stream.pattern, Sequential):
        return "seeks"
    return {0.0: "read", 1.0: "write"}.get(stream.mix.write)


def _figure(phase: str, line: _Line) -> str:
    known = line.phases.get(phase)
    if known is None:
        return ""
    return f"{known[0]:.1f}" if phase == "seeks" and known[0] < 1000 else f"{known[0]:.0f}"


def _share(phase: str, line: _Line) -> str:
    known = line.phases.get(phase)
    return "" if known is None else f"{known[1]:.0f}"


def _latency(phase: str, line: _Line) -> str:
    known = line.phases.get(phase)
    return "" if known is None else units.duration(known[2]).replace(" ", "")


def _size(size: int) -> str:
    if size >= 10 << 30:
        return f"{size >> 30}G"
    return f"{size >> 20}M"
