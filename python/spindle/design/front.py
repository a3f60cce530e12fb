"""The Pareto front: points that no other point beats in one objective without losing in another. Exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK = 256
"""Points that are compared with the front at once."""


def front(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True for each row that no other row dominates. Less is better in each column; equal rows are all kept.

    A row dominates another if it is at most as large in every column and smaller in one. Rows are taken in
    lexicographic order, so that a row can be dominated only by an earlier one (Kung, Luccio and Preparata 1975).
    """
    distinct, where = np.unique(points, axis=0, return_inverse=True)
    kept = np.zeros(len(distinct), dtype=bool)
    members = np.empty((0, points.shape[1]))
    for first in range(0, len(distinct), BLOCK):
        block = distinct[first : first + BLOCK]
        is_in = ~_dominated(block, members)
        block_kept = np.flatnonzero(is_in)
        rest = block[block_kept]
        among = ~_dominated_by_earlier(rest)
        kept[first + block_kept[among]] = True
        members = np.concatenate([members, rest[among]])
    found: NDArray[np.bool_] = kept[where.reshape(-1)]
    return found


def _dominated(block: NDArray[np.float64], members: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True for each row of the block that an earlier, different row of `members` dominates."""
    if not len(members):
        return np.zeros(len(block), dtype=bool)
    below = np.ones((len(block), len(members)), dtype=bool)
    for column in range(block.shape[1]):
        below &= members[None, :, column] <= block[:, None, column]
    return np.asarray(below.any(axis=1))


def _dominated_by_earlier(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The same within rows that are distinct and in lexicographic order."""
    below = np.tri(len(rows), k=-1, dtype=bool)
    for column in range(rows.shape[1]):
        below &= rows[None, :, column] <= rows[:, None, column]
    return np.asarray(below.any(axis=1))
