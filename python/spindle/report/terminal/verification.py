"""Results of a verification: counts by kind and the first places."""

from __future__ import annotations

from collections.abc import Sequence

from spindle.base import units
from spindle.report.terminal.style import Style
from spindle.result.figures import BlockCheck
from spindle.result.record import Level, RunRecord
from spindle.result.rules.verification import CHECK
from spindle.result.verification import StateCheck

FIRST = 3
"""Places shown of each kind; the JSON has ten."""


def right(runs: Sequence[RunRecord], style: Style) -> list[str]:
    """Return how much was checked, if all of it is right; the verdicts report the rest."""
    verdicts = [verdict for run in runs for verdict in run.verdicts if verdict.check == CHECK]
    seen = [run.figures.verification for run in runs if run.figures.verification is not None]
    during = sum(each.during_load.blocks * each.block_bytes for each in seen)
    backs = [(each.block_bytes, each.read_back) for each in seen if each.read_back is not None]
    parts = [f"{units.size(during)} read in the load"] if during else []
    if backs:
        how = " or ".join(sorted({back.how for _, back in backs}))
        size = sum(block_bytes * back.expected for block_bytes, back in backs)
        parts.append(f"{units.size(size)} that were written, read back {how}")
    if not parts or any(verdict.level is not Level.OK for verdict in verdicts):
        return []
    return [*style.wrap(f"{'; '.join(parts)}: no block is wrong", first="verified: "), ""]


def page(record: RunRecord, style: Style) -> list[str]:
    """Return lines below the figures of a run; nothing if nothing was wrong."""
    seen = record.figures.verification
    if seen is None or not seen.wrong:
        return []
    lines = _faults("wrong blocks read in the load", seen.during_load, style)
    if seen.read_back is not None:
        lines += _faults("wrong blocks read back", seen.read_back.found, style)
    return [*lines, ""]


def state_page(check: StateCheck, style: Style) -> list[str]:
    """Return the page of a check against a saved state."""
    back = check.read_back
    size = units.size(check.block_bytes)
    seconds = back.elapsed_ns / 1e9
    rate = back.found.blocks * check.block_bytes / seconds if seconds else 0.0
    lines = style.headline(f"{check.target} against {check.state}")
    lines += style.wrap(
        f"{units.count(back.found.blocks)} of {units.count(back.expected)} blocks of {size} read back {back.how} in "
        f"{units.seconds(seconds)} ({units.rate(rate)}); run {check.run}"
    )
    if back.found.wrong:
        lines += ["", *_faults("wrong blocks", back.found, style)]
    elif back.complete:
        lines.append("all of them are right")
    if not back.complete:
        lines.append("stopped before the end")
    return lines


def _faults(title: str, found: BlockCheck, style: Style) -> list[str]:
    if not found.wrong:
        return []
    lines = [f"{title}: {units.count(found.wrong)} of {units.count(found.blocks)}"]
    width = max(len(fault.kind) for fault in found.faults)
    for fault in found.faults:
        first = [
            f"byte {place.offset}{_file(place.file)}: {place.description.removeprefix(fault.kind + ': ')}"
            for place in fault.first[:FIRST]
        ]
        lines += _list(f"  {fault.kind:<{width}}  {fault.blocks:>8}  ", first)
    return lines


def _list(head: str, entries: Sequence[str]) -> list[str]:
    return [(head if index == 0 else " " * len(head)) + entry for index, entry in enumerate(entries)]


def _file(number: int) -> str:
    return f" of file {number}" if number else ""
