"""Properties of durability tests: bases of the generated types of `result.journal`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spindle.result import journal


class Plan:
    """Sums of a plan."""

    @property
    def size_bytes(self: journal.Plan) -> int:  # type: ignore[misc]
        """Bytes of all regions."""
        return self.workers * self.region_blocks * self.block_bytes


class DurabilityFigures:
    """Rates of a test."""

    @property
    def syncs_per_s(self: journal.DurabilityFigures) -> float:  # type: ignore[misc]
        """Syncs a second."""
        return self.syncs / self.elapsed_ns * 1e9 if self.elapsed_ns else 0.0
