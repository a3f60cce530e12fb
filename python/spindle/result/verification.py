"""What was found when written blocks were looked at again: the Rust core's `VerificationFigures`, field by field.

The shape is defined once, in `crates/measure/src/verification.rs`; a test holds this mirror to it. Times are ns, sizes
are bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from spindle.result import units


class FaultPlace(Struct, frozen=True, kw_only=True):
    """One block that is wrong."""

    file: int
    """Its number among the target's files."""
    offset: int
    """First byte of the block in it."""
    what: str
    """What it is, for people."""


class Fault(Struct, frozen=True, kw_only=True):
    """Faults of one kind."""

    kind: str
    """`never-written`, `zeroed`, `stale`, `torn`, `misplaced`, `corrupt` or `unreadable`."""
    blocks: int
    first: list[FaultPlace]
    """The first of them."""


class Checked(Struct, frozen=True, kw_only=True):
    """What was found in some blocks."""

    blocks: int
    """That were judged, right or wrong."""
    unknown: int
    """That were read and not judged: nobody knows what they should hold."""
    raced: int
    """That were being written meanwhile and were neither the old nor the new."""
    faults: list[Fault]

    @property
    def wrong(self) -> int:
        """Blocks that are wrong."""
        return sum(fault.blocks for fault in self.faults)


class ReadBack(Struct, frozen=True, kw_only=True):
    """Everything that was written, read back after the load."""

    expected: int
    """Blocks whose content is known."""
    complete: bool
    direct: bool
    """Read past the page cache; otherwise what it held was dropped before."""
    elapsed_ns: int
    found: Checked

    @property
    def how(self) -> str:
        """Why it was not the page cache that answered."""
        return "past the page cache" if self.direct else "after the page cache was dropped"


class Verification(Struct, frozen=True, kw_only=True):
    """Blocks that were checked, and what was wrong with them."""

    block_bytes: int
    run: str
    """The run's number in each block."""
    waited: int
    """Writes that had to wait until another one to the same block was done."""
    during: Checked
    """By the reads of the load."""
    read_back: ReadBack | None = None
    """None: there was nothing, or it was not done."""
    read_back_later: bool = False
    """It is left to the end of a later phase, with what that one writes."""

    @property
    def found(self) -> list[Checked]:
        """During the load, and afterwards."""
        return [self.during, *([self.read_back.found] if self.read_back is not None else [])]

    @property
    def wrong(self) -> int:
        """Findings of blocks that are wrong; one found by several reads counts as often."""
        return sum(found.wrong for found in self.found)


class StateCheck(Struct, frozen=True, kw_only=True):
    """A target held against a state that an earlier run saved."""

    target: str
    state: str
    """The file."""
    run: str
    block_bytes: int
    read_back: ReadBack

    @property
    def sound(self) -> bool:
        """Whether all of it was looked at and is right."""
        return self.read_back.complete and not self.read_back.found.wrong


def read_back_from_json(text: str | bytes) -> ReadBack:
    """Read the core's figures."""
    return msgspec.json.decode(text, type=ReadBack)


def fault_words(found: Iterable[Checked]) -> str:
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
