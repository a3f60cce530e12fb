"""Noise as benchmarks have it: neighbours in time resemble each other, and some trials are wild."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def autoregressive(n: int, rho: float, seed: int | np.random.Generator, burn: int = 100) -> NDArray[np.float64]:
    """AR(1) with standard deviation 1."""
    from scipy.signal import lfilter

    draw = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    shocks = draw.standard_normal(n + burn) * np.sqrt(1 - rho**2)
    found: NDArray[np.float64] = lfilter([1.0], [1.0, -rho], shocks)[burn:]
    return found
