"""Differences between the sides of a comparison: workload, target, settings, environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from spindle.base import units
from spindle.result.record import ImportedRecord, Record, RunRecord
from spindle.result.target import Target
from spindle.stats.cases import jobs_of
from spindle.stats.trial import Side, Trial

MOST_SHOWN = 12
"""Most differences of one kind that are shown."""

_HEADS = {
    "length": "Lengths differ: ",
    "setting": "Settings differ: ",
    "environment": "Machines differ: ",
    "tool": "Versions differ: ",
}
_MACHINE = ("kernel.release", "cpu.model", "cpu.online", "cpu.governor", "memory.total_bytes", "machine.product")
"""The parts of the environment that affect figures."""


@dataclass(frozen=True)
class SideDifference:
    """One thing that differs between two sides."""

    kind: str
    """`workload`, `length` (of the run), `target`, `setting`, `environment` or `tool`."""
    name: str
    a: str
    b: str
    side: str
    """Label of the side that differs from the first."""


@dataclass(frozen=True)
class Likeness:
    """Everything that is equal, and everything that differs."""

    same_workload: bool
    same_target: bool
    differing: list[SideDifference]

    @property
    def words(self) -> list[str]:
        """Lines that a reader must know before the figures."""
        lines = []
        if not self.same_workload:
            lines.append("Not the same workload: " + _listed(self.differing, "workload"))
        if not self.same_target:
            lines.append("Not the same target: " + _listed(self.differing, "target"))
        for kind, head in _HEADS.items():
            if any(each.kind == kind for each in self.differing):
                lines.append(head + _listed(self.differing, kind))
        return lines


def of(sides: Sequence[Side]) -> Likeness:
    """Compare the sides with the first: the names of every trial, and one whole record of each side in detail."""
    first, differing = sides[0], list[SideDifference]()
    for other in sides[1:]:
        for kind in ("workload", "target"):
            a, b = _names(first, kind), _names(other, kind)
            if a != b and not (kind == "workload" and _same_jobs(_record(first), _record(other))):
                differing.append(SideDifference(kind, kind, ", ".join(a) or "-", ", ".join(b) or "-", other.label))
        one, two = _record(first), _record(other)
        if isinstance(one, RunRecord) and isinstance(two, RunRecord):
            # These trials of campaign slices may differ in factors whose levels both sides have.
            differing += [each for each in _between(one, two, other.label) if _shown(each, first, other)]
    kinds = {each.kind for each in differing}
    return Likeness("workload" not in kinds, "target" not in kinds, differing)


def _same_jobs(a: Record | None, b: Record | None) -> bool:
    """fio's JSON does not name its job file: jobs with equal names count as equal."""
    if isinstance(a, ImportedRecord) == isinstance(b, ImportedRecord) or a is None or b is None:
        return False
    return bool(jobs_of(a)) and jobs_of(a) == jobs_of(b)


def _names(side: Side, kind: str) -> list[str]:
    return sorted({getattr(trial, kind) for trial in side.trials})


def _record(side: Side) -> Record | None:
    chosen = min(side.trials, key=_cell)
    return chosen.load() if chosen.load is not None else None


def _cell(trial: Trial) -> list[tuple[str, str]]:
    return sorted(trial.cell.items())


def _shown(differing: SideDifference, a: Side, b: Side) -> bool:
    """One name on each side shows what the details of a single pair of trials cannot."""
    return (
        differing.kind not in ("workload", "target")
        or len(_names(a, differing.kind)) == len(_names(b, differing.kind)) == 1
    )


def _between(a: RunRecord, b: RunRecord, side: str) -> Iterator[SideDifference]:
    asked_a, asked_b = (_flat(msgspec.to_builtins(each.workload)) for each in (a, b))
    alone = len(a.workload.streams) == len(b.workload.streams) == 1
    for name in [*asked_a, *(name for name in asked_b if name not in asked_a)]:
        if name.rpartition(".")[2] in ("seed", "about", "name", "table", "source"):
            continue
        if asked_a.get(name) != asked_b.get(name):
            kind = "length" if name == "ramp_ns" or "end." in name else "workload"
            yield SideDifference(
                kind,
                name.replace("streams.0.", "") if alone else name,
                _text(asked_a.get(name)),
                _text(asked_b.get(name)),
                side,
            )
    for name, one, two in _targets(a.target, b.target):
        if one != two:
            yield SideDifference("target", name, one, two, side)
    # A simulated machine has no settings: its file says what differs.
    simulated = any(each.target.traits.is_modelled and not each.target.traits.has_kernel for each in (a, b))
    for name in () if simulated else sorted(a.settings.before.keys() | b.settings.before.keys()):
        was, now = a.settings.before.get(name), b.settings.before.get(name)
        if was != now:
            yield SideDifference("setting", name, _text(was), _text(now), side)
    elsewhere_a, elsewhere_b = _flat(a.environment), _flat(b.environment)
    modelled = a.target.traits.is_modelled and b.target.traits.is_modelled  # the computing machine does not matter
    for name in () if modelled else _MACHINE:
        if elsewhere_a.get(name) != elsewhere_b.get(name):
            yield SideDifference("environment", name, _text(elsewhere_a.get(name)), _text(elsewhere_b.get(name)), side)
    if a.tool != b.tool:
        yield SideDifference("tool", a.tool.name, a.tool.version, b.tool.version, side)


def _targets(a: Target, b: Target) -> Iterator[tuple[str, str, str]]:
    """The compared properties in words; sizes to the byte, as rounded ones could look equal."""
    yield "kind", a.kind, b.kind
    one, two = (units.size(each.size_bytes) if each.size_bytes is not None else "-" for each in (a, b))
    if one == two:
        one, two = _text(a.size_bytes), _text(b.size_bytes)
    yield "size", one, two


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted names."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not items:
        return {prefix: value}
    found: dict[str, Any] = {}
    for name, part in items:
        found |= _flat(part, f"{prefix}.{name}" if prefix else str(name))
    return found


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


def _listed(differing: Sequence[SideDifference], kind: str) -> str:
    chosen = [each for each in differing if each.kind == kind]
    several = len({each.side for each in differing}) > 1
    parts = [f"{each.name} {each.a} against {each.b}{f' ({each.side})' if several else ''}" for each in chosen]
    more = f"; and {len(parts) - MOST_SHOWN} more" if len(parts) > MOST_SHOWN else ""
    return "; ".join(parts[:MOST_SHOWN]) + more
