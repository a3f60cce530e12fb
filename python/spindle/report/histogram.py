"""Percentiles of stored distributions: of several together they are those of the whole, never means of percentiles."""

from __future__ import annotations

from collections.abc import Sequence

from spindle import _core


def percentiles(histograms: Sequence[str], wanted: Sequence[float]) -> list[int]:
    """Latencies at ascending percentiles, ns; empty if the distributions hold nothing or one cannot be read."""
    try:
        return _core.histogram_percentiles(histograms, wanted)
    except ValueError:  # a record made by hand, or damaged
        return []
