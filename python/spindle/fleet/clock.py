"""Offsets of clocks, as NTP estimates them: of several round trips the shortest counts (RFC 5905, section 10)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClockOffset:
    """A host's clock less this machine's, both monotonic, ns."""

    offset_ns: int
    error_ns: int
    """The largest error: half of the round trip, if all of it was on one way."""

    def there(self, here_ns: int) -> int:
        """This machine's time on the host's clock."""
        return here_ns + self.offset_ns

    def here(self, there_ns: int) -> int:
        """The host's time on this machine's clock."""
        return there_ns - self.offset_ns


def offset_of(trips: list[tuple[int, int, int]]) -> ClockOffset:
    """From round trips of (sent here, read there, received here), ns; at least one."""
    sent, there, received = min(trips, key=lambda trip: trip[2] - trip[0])
    return ClockOffset(there - (sent + received) // 2, -(-(received - sent) // 2))
