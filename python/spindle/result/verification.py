"""Words for the results of verification, and the check against a saved state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from spindle.base import units
from spindle.result.figures import BlockCheck, FaultPlace, ReadBack


class StateCheck(Struct, frozen=True, kw_only=True):
    """A check of a target against the state that an earlier run saved."""

    target: str
    state: str
    """The file."""
    run: str
    block_bytes: int
    read_back: ReadBack

    @property
    def sound(self) -> bool:
        """True if all of it was checked and is correct."""
        return self.read_back.complete and not self.read_back.found.wrong


def fault_words(found: Iterable[BlockCheck]) -> str:
    """`2 torn (first at byte 8192), 1 stale (at byte 0)`: counts by kind with their first places."""
    blocks: Counter[str] = Counter()
    first: dict[str, FaultPlace] = {}
    for fault in (fault for checked in found for fault in checked.faults):
        blocks[fault.kind] += fault.blocks
        for place in fault.first:
            earliest = first.get(fault.kind)
            if earliest is None or (place.file, place.offset) < (earliest.file, earliest.offset):
                first[fault.kind] = place
    return ", ".join(f"{units.count(count)} {kind}{_at(first.get(kind), count)}" for kind, count in blocks.items())


def _at(place: FaultPlace | None, count: int) -> str:
    if place is None:
        return ""
    file = f" of file {place.file}" if place.file else ""
    return f" ({'the first ' if count > 1 else ''}at byte {place.offset}{file})"
