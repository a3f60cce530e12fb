"""Percentiles of stored distributions: several are merged first, percentiles are never averaged."""

from __future__ import annotations

from collections.abc import Sequence

from spindle import _core


def percentiles(histograms: Sequence[str], wanted: Sequence[float]) -> list[int]:
    """Return latencies at ascending percentiles, ns; empty if the distributions are empty or one cannot be read."""
    try:
        return _core.histogram_percentiles(histograms, wanted)
    except ValueError:  # a record made by hand, or damaged
        return []
