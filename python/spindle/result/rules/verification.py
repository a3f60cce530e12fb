"""Checks that the target contains what was written to it."""

from __future__ import annotations

from spindle.base import units
from spindle.result.figures import BlockCheck, Verification
from spindle.result.record import Level, RunRecord, Verdict
from spindle.result.verification import fault_words

CHECK = "verify"


def verified(record: RunRecord) -> list[Verdict]:
    """No verdict if nothing was verified. A single wrong block is invalid."""
    seen = record.figures.verification
    if seen is None:
        return []
    back = seen.read_back
    numbers = {
        "block_bytes": float(seen.block_bytes),
        "checked": float(seen.during_load.blocks),
        "read_back": float(back.found.blocks if back is not None else 0),
        "wrong": float(seen.wrong),
    }
    if seen.wrong:
        return [
            Verdict(
                check=CHECK,
                level=Level.INVALID,
                evidence=_wrong(seen),
                advice="the target does not give back what was written to it: look at the kernel log (dmesg), cables, "
                "memory and firmware before any data is trusted to it; `spindle help verify` explains each kind",
                numbers={**numbers, **_kinds(seen.found)},
            )
        ]
    if back is not None and not back.complete:
        return [
            Verdict(
                check=CHECK,
                level=Level.WARN,
                evidence=f"{units.count(back.found.blocks)} of {units.count(back.expected)} blocks were read back when "
                "it was stopped; they are correct",
                advice="let it read back to the end",
                numbers=numbers,
            )
        ]
    if back is None and not seen.during_load.blocks and not seen.read_back_later:
        return [
            Verdict(
                check=CHECK,
                level=Level.WARN,
                evidence="nothing could be verified: no block was read that the run had written",
                advice="let the run, or a phase before it, write what it reads",
                numbers=numbers,
            )
        ]
    return [Verdict(check=CHECK, level=Level.OK, evidence=_right(seen), numbers=numbers)]


def _wrong(seen: Verification) -> str:
    parts = []
    if seen.during_load.wrong:
        parts.append(f"{_share(seen.during_load)} read in the load were wrong: {fault_words([seen.during_load])}")
    if seen.read_back is not None and seen.read_back.found.wrong:
        found = seen.read_back.found
        parts.append(f"{_share(found)} read back are wrong: {fault_words([found])}")
    return "; ".join(parts)


def _share(found: BlockCheck) -> str:
    return f"{units.count(found.wrong)} of {units.count(found.blocks)} blocks"


def _right(seen: Verification) -> str:
    parts = []
    size = units.size(seen.block_bytes)
    if seen.during_load.blocks:
        parts.append(f"{units.count(seen.during_load.blocks)} blocks of {size} read in the load")
    if seen.read_back is not None:
        back = seen.read_back
        parts.append(f"all {units.count(back.expected)} blocks of {size} that were written, read back {back.how},")
    if not parts:
        return "the written blocks are read back after a later phase"
    return f"{' and '.join(parts)} are correct"


def _kinds(found: list[BlockCheck]) -> dict[str, float]:
    kinds: dict[str, float] = {}
    for fault in (fault for checked in found for fault in checked.faults):
        kinds[fault.kind] = kinds.get(fault.kind, 0.0) + fault.blocks
    return kinds
