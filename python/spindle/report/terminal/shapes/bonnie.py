"""bonnie++'s table: block output, rewrite, block input and seeks of a target, in KiB/s, with CPU shares and latencies.

Phases of a bonnie workload have their columns by their names. For other runs, a sequential writer fills the first, a
sequential reader the third, random requests the last; the rest stays empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spindle.base import units
from spindle.report.terminal.style import Style
from spindle.result.record import PhasesRecord, RunRecord
from spindle.result.workload import Sequential, WorkloadStream

_WIDTH = 12
"""Width of a figure and its CPU share: bonnie++'s five digits of KiB/s are too few for today's drives."""


def _over(*titles: tuple[str, int]) -> str:
    """Return a line of the head: each title centred over its columns."""
    return "".join(f" {title:-^{_WIDTH * columns - 1}}" for title, columns in titles)


HEAD = (
    f"{'':19}{_over(('Sequential Output', 3), ('Sequential Input', 2), ('Random', 1))}",
    f"{'':19}{_over(*((title, 1) for title in ('Per Chr', 'Block', 'Rewrite', 'Per Chr', 'Block', 'Seeks')))}",
    f"Machine        Size{5 * '   K/sec %CP'}    /sec %CP",
)
PHASES = ("putc", "write", "rewrite", "getc", "read", "seeks")
_OF_PHASE = {"block-write": "write", "rewrite": "rewrite", "block-read": "read", "seeks": "seeks"}
"""Phases of the preset -> the names in imported results."""

NAMES_HEAD = (
    f"{'':19}{_over(('Sequential Create', 3), ('Random Create', 3))}",
    f"{'':19}{_over(*((title, 1) for title in 2 * ('Create', 'Stat', 'Delete')))}",
    f"              files{6 * '    /sec %CP'}",
)
NAMES = tuple(f"{order}-{what}" for order in ("sequential", "random") for what in ("create", "stat", "delete"))


@dataclass
class _Line:
    """One target: phase -> (figure, share of a CPU in %, worst latency in ns)."""

    size_bytes: int
    files: int = 0
    phases: dict[str, tuple[float, float, int]] = field(default_factory=dict)


def page(runs: Sequence[RunRecord]) -> list[str]:
    """Return a line for each target; of several runs of one phase, the last."""
    lines: dict[str, _Line] = {}
    for run in runs:
        line = lines.setdefault(run.target.place, _Line(run.target.size_bytes))
        named = run.workload.name if run.workload.name in NAMES else None
        share = 100 * (run.figures.cpu.user_ns + run.figures.cpu.system_ns) / max(run.figures.elapsed_ns, 1)
        for spec, stream in zip(run.workload.streams, run.figures.streams, strict=False):
            phase = named or _phase(run.workload.name, spec)
            ops = [op for _, op in stream.ops()]
            if phase is None or not ops:
                continue
            worst = max(op.latency.max_ns for op in ops)
            if named:
                line.files = max(line.files, max(op.requests for op in ops))
            line.phases[phase] = (_rate(phase, spec, run), share, worst)
    found: list[str] = []
    for name, line in lines.items():
        if not line.phases.keys() <= set(NAMES):
            figures = "".join(f" {_figure(of, line):>7}{_share(of, line):>4}" for of in PHASES)
            found += [*HEAD, f"{name[:14]:<14}{_size(line.size_bytes):>5}{figures}".rstrip(), _latencies(PHASES, line)]
        if line.phases.keys() & set(NAMES):
            figures = "".join(f" {_figure(of, line):>7}{_share(of, line):>4}" for of in NAMES)
            found += [*NAMES_HEAD, f"{name[:12]:<12}{line.files:>7}{figures}".rstrip(), _latencies(NAMES, line)]
    return found or [*HEAD, "no operation of bonnie was completed"]


def phases_page(record: PhasesRecord, _style: Style) -> list[str]:
    """Return the table of the phases of a bonnie workload."""
    return page(record.runs)


def _phase(name: str, stream: WorkloadStream) -> str | None:
    if name in _OF_PHASE:
        return _OF_PHASE[name]
    if not stream.only_data:
        return None
    if not isinstance(stream.pattern, Sequential):
        return "seeks"
    if stream.mix.rewrite == 1:
        return "rewrite"
    return {0.0: "read", 1.0: "write"}.get(stream.mix.of_calls)


def _rate(phase: str, spec: WorkloadStream, run: RunRecord) -> float:
    """Return bonnie++'s rate: chunks over the whole time with the final fsync; a rewritten chunk counts once."""
    stream = next(each for each in run.figures.streams if each.name == spec.name)
    seconds = max(stream.measured_ns, 1) / 1e9
    if phase in NAMES:
        return stream.requests / seconds
    chunks = [op for name, op in stream.ops() if name == "read" or not spec.mix.rewrite]
    if phase == "seeks":
        return sum(op.requests for op in chunks) / seconds
    return sum(op.bytes for op in chunks) / 1024 / seconds


def _figure(phase: str, line: _Line) -> str:
    known = line.phases.get(phase)
    if known is None:
        return ""
    return f"{known[0]:.1f}" if phase == "seeks" and known[0] < 1000 else f"{known[0]:.0f}"


def _share(phase: str, line: _Line) -> str:
    known = line.phases.get(phase)
    return "" if known is None else f"{known[1]:.0f}"


def _latencies(phases: Sequence[str], line: _Line) -> str:
    return f"{'Latency':<19}{''.join(f'{_latency(phase, line):>{_WIDTH}}' for phase in phases)}".rstrip()


def _latency(phase: str, line: _Line) -> str:
    known = line.phases.get(phase)
    return "" if known is None else units.duration(known[2]).replace(" ", "")


def _size(size: int) -> str:
    if size >= 10 << 30:
        return f"{size >> 30}G"
    return f"{size >> 20}M"
