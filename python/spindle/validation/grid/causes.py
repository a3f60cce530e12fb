"""Why a point differs: the mechanisms that the simulator lacks, each with its sign in the figures."""

from __future__ import annotations

from spindle.validation.grid.bitmaps import BitmapPoint
from spindle.validation.grid.buffered import BufferedPoint
from spindle.validation.grid.outcomes import PointOutcomes
from spindle.validation.grid.points import Point

RETRIED = "not as many reads find no free request (REQ_NOWAIT), which md repeats through the stripe cache page by page"
ROWS = "md's thread handles rows of the stripe cache at other moments, so that other ones become one request"
TURNS = "md's thread waits for another drive, so that the drives have fewer or more writes at a time"
PAUSES = "writers' pauses are one level of dirty pages, so that other pages are dirty when the flusher comes"
UNKNOWN = "unknown"


def direct(both: PointOutcomes) -> str:
    """The mechanism behind a difference of direct I/O."""
    point, fast, exact = both.point, both.fast, both.exact
    assert isinstance(point, Point)
    parity = point.level in ("raid5", "raid6")
    if parity and abs(exact.at_drives["reads"] - fast.at_drives["reads"]) > 100 * point.drives:
        return RETRIED
    return UNKNOWN


def buffered(both: PointOutcomes) -> str:
    """The mechanism behind a difference of buffered I/O."""
    point = both.point
    assert isinstance(point, BufferedPoint)
    if not point.operation.endswith("write"):
        return UNKNOWN
    if point.level in ("raid5", "raid6"):
        return ROWS
    return TURNS if point.level.startswith("raid10") else PAUSES


def bitmaps(both: PointOutcomes) -> str:
    """The mechanism behind a difference of writes to an array, with a bitmap or without."""
    point, fast, exact = both.point, both.fast, both.exact
    assert isinstance(point, BitmapPoint)
    if point.level in ("raid5", "raid6") and abs(fast.at_drives["writes"] / exact.at_drives["writes"] - 1) > 0.05:
        return ROWS
    return UNKNOWN
