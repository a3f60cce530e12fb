"""How many pieces go to a worker at a time.

Sending a chunk costs some milliseconds, so it has the work of 1000 short simulations, which take a second, or is all
there is. It is larger while much is left (guided self-scheduling: Polychronopoulos and Kuck 1987), but never so large
that a killed worker costs much. How long a piece takes is learnt from those before it: the first chunks have one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")

LEAST_S = 1.0
"""The least work of a chunk, unless threads would be idle."""
MOST_S = 10.0
"""The most work that a killed worker costs."""
MOST_PIECES = 20_000
QUEUED = 2
"""Chunks of each thread that are sent: while one is computed, the next is there."""
_WEIGHT = 0.3
"""Weight of a new time in the mean."""


def pieces_of_chunk(left: int, threads: int, sent: int, piece_s: float | None) -> int:
    """Pieces of the next chunk. `left`: pieces that were not sent; `sent`: chunks at work; `piece_s`: time of a piece;
    None: unknown."""
    if piece_s is None:
        return 1
    idle = max(1, threads - sent)
    even = math.ceil(left / idle)
    guided = math.ceil(left / (2 * max(1, threads)))
    least = math.ceil(LEAST_S / max(piece_s, 1e-9))
    most = max(1, math.floor(MOST_S / max(piece_s, 1e-9)))
    return max(1, min(even, max(least, guided), most, MOST_PIECES))


@dataclass
class Waiting(Generic[Item]):
    """Pieces that were not sent, by kind, and the time that one of each kind takes."""

    kind_of: Callable[[Item], str]
    _of_kind: dict[str, deque[Item]] = field(default_factory=dict)
    _piece_s: dict[str, float] = field(default_factory=dict)

    def add(self, items: Sequence[Item]) -> None:
        """Add pieces behind those that wait."""
        for item in items:
            self._of_kind.setdefault(self.kind_of(item), deque()).append(item)

    def __len__(self) -> int:
        return sum(map(len, self._of_kind.values()))

    def next(self, threads: int, sent: int) -> list[Item]:
        """The pieces of the next chunk, all of the kind that was asked for first. Some are sent without workers too: a
        cluster that starts workers for what waits would have no reason to otherwise."""
        if sent >= QUEUED * max(1, threads):
            return []
        for kind, items in self._of_kind.items():
            if items:
                count = pieces_of_chunk(len(items), threads, sent, self._piece_s.get(kind))
                return [items.popleft() for _ in range(min(count, len(items)))]
        return []

    def took(self, kind: str, seconds: float, count: int) -> None:
        """Note the time of a chunk."""
        each, known = seconds / count, self._piece_s.get(kind)
        self._piece_s[kind] = each if known is None else (1 - _WEIGHT) * known + _WEIGHT * each

    def seconds_left(self, sent: Iterable[Sequence[Item]]) -> float | None:
        """Work that is left with the chunks `sent`, s; None: unknown."""
        total = 0.0
        counts: dict[str, int] = {kind: len(items) for kind, items in self._of_kind.items() if items}
        for some in sent:
            kind = self.kind_of(some[0])
            counts[kind] = counts.get(kind, 0) + len(some)
        for kind, count in counts.items():
            if kind not in self._piece_s:
                return None
            total += count * self._piece_s[kind]
        return total
