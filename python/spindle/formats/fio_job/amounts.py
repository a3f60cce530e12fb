"""Amount that one clone does before it ends by itself, as fio 3.33 counts it (backend.c: do_io, keep_running).

fio goes in rounds. A round begins at the start of the region and ends with it, or, where the engine queues requests,
after `size` bytes (bytes_issued counts FIO_Q_QUEUED alone). There are `loops` rounds, and more of them as long as
`io_size` is not moved and at least one largest request of it is left.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_ROUNDS = 1 << 16


@dataclass(frozen=True)
class Rounds:
    """Bounds of a clone; sizes in bytes."""

    request: int
    """Size of the requests, if it is fixed; 1: the rest at an end is not rounded."""
    largest: int
    """Size of the largest request."""
    capacity: int | None
    """Requests of a round up to the end of the region; None: it has none."""
    size: int
    """Bytes of a round."""
    io_size: int
    """0: not given."""
    loops: int
    queued: bool = True
    """The engine queues requests: `size` ends a round."""
    only_one: bool = False
    """fio does not count requests that other threads submit, and ends after the first round."""
    trims_first: bool = False
    """Trims count towards `io_size` as well when fio decides about another round."""

    def requests(self) -> int:
        """Requests in all rounds."""
        limit = self._whole((self.io_size or self.size) * self.loops)
        done = 0
        if self.only_one:
            return self._round(limit)
        for _ in range(min(self.loops, MOST_ROUNDS)):
            done += self._round(limit - done)
        if self.loops > MOST_ROUNDS:
            return min(limit, done // MOST_ROUNDS * self.loops)
        if not self.io_size:
            return done
        one = self._round(limit)
        if one:  # whole rounds at once: an io_size of a terabyte may take a million of them
            done += max(self.io_size // (self.request * (1 + self.trims_first)) - done - one, 0) // one * one
        counted = self.request * (2 if self.trims_first else 1)
        while self.io_size - done * counted >= self.largest and (more := self._round(limit - done)):
            done += more
        return done

    def _round(self, left: int) -> int:
        whole = self._whole(self.size) if self.queued else left
        return max(min(whole if self.capacity is None else min(whole, self.capacity), left), 0)

    @property
    def several(self) -> bool:
        """True if there is more than one round."""
        return self.loops > 1 or self.io_size > self.size

    @property
    def ends_at_capacity(self) -> bool:
        """True if a round ends because there is no further request, not because of its bytes."""
        limit = self._whole((self.io_size or self.size) * self.loops)
        whole = self._whole(self.size) if self.queued else limit
        return self.capacity is not None and self.capacity < min(whole, limit)

    @property
    def ends_by_size(self) -> bool:
        """A round ends because of its bytes, before the end of the region."""
        return self.capacity is not None and self.queued and self._whole(self.size) < self.capacity

    def _whole(self, size: int) -> int:
        return -(-size // self.request)
