"""Errors of a fleet: one line, which begins with the host."""

from __future__ import annotations

from spindle.base.errors import SpindleError


class HostError(SpindleError):
    """A host has no result. `exit_code`: 1 failed or lost, 2 usage, 3 refused for safety, as its agent ended.
    `reported`: its agent said so, and has put back what it changed."""

    def __init__(self, host: str, why: str, status: int = 1, *, reported: bool = False) -> None:
        super().__init__(f"{host}: {why}")
        self.host, self.why, self.reported = host, why, reported
        self.exit_code = status if status in (1, 2, 3) else 1
