"""How much one clone does before it ends by itself, as fio 3.33 counts it (backend.c: do_io, keep_running).

fio goes in rounds. A round begins at the start of the region and ends with it, or after `size` bytes. There are `loops`
rounds, and more of them as long as `io_size` is not moved and at least one largest request of it is left.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_ROUNDS = 1 << 16


@dataclass(frozen=True)
class Rounds:
    """What bounds a clone; sizes in bytes."""

    request: int
    """Size of a request, if they have one; 1: what is left at an end is not rounded."""
    largest: int
    """Size of the largest request."""
    capacity: int | None
    """Requests of a round up to the end of the region; None: it has none."""
    size: int
    """Bytes of a round."""
    io_size: int
    """0: not given."""
    loops: int

    def requests(self) -> int:
        """In all rounds."""
        limit = self._whole((self.io_size or self.size) * self.loops)
        done = 0
        for _ in range(min(self.loops, MOST_ROUNDS)):
            done += self._round(limit - done)
        if self.loops > MOST_ROUNDS:
            return min(limit, done // MOST_ROUNDS * self.loops)
        if not self.io_size:
            return done
        one = self._round(limit)
        if one:  # whole rounds at once: an io_size of a terabyte may take a million of them
            done += max(self.io_size // self.request - done - one, 0) // one * one
        while self.io_size - done * self.request >= self.largest and (more := self._round(limit - done)):
            done += more
        return done

    def _round(self, left: int) -> int:
        whole = self._whole(self.size)
        return max(min(whole if self.capacity is None else min(whole, self.capacity), left), 0)

    def _whole(self, size: int) -> int:
        return -(-size // self.request)
