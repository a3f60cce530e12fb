"""Number of trials that a question needs, and the smallest difference that a number of trials detects.

Power of the two-sided t test from the noncentral t distribution (Cohen, Statistical Power Analysis, 1988, ch. 2). Noise
and differences are relative: 0.03 is 3 %. On the scale of logarithms, where ratios are compared, a difference of x is
log(1 + x).
"""

from __future__ import annotations

import math

from spindle.stats.arrangement import ENOUGH_BLOCKS, FEWEST_BLOCKS, doubt, usual_widening

MOST = 100_000
"""A practical limit on trials."""
ASSURANCE = 0.8
"""A noise estimated from few trials is replaced by its upper limit with this probability."""


def trials_needed(
    difference: float,
    noise: float,
    *,
    power: float = 0.9,
    confidence: float = 0.95,
    comparisons: int = 1,
    noise_freedom: float | None = None,
    blocks: bool = False,
) -> int | None:
    """Trials of each alternative that detect a true difference with probability `power`; None: more than `MOST`.

    `noise` is the relative standard deviation of a trial: of trials in randomised blocks that of a trial within its
    block. `noise_freedom`: degrees of freedom of the estimate (trials less groups), None: it is known. The fewer, the
    more trials are needed, as a few trials often agree by chance (upper confidence limit of the standard deviation:
    Kieser and Wassmer, Biometrical J. 38 (1996) 941-949). `comparisons` share the error probability (Bonferroni).
    `blocks`: trials are compared as pairs, which estimate their noise with half the degrees of freedom; few blocks need
    a stricter test (`arrangement.doubt`). Raises ValueError for a difference of 0, or noise, power or confidence out of
    range.
    """
    _check(noise, power, confidence, comparisons)
    if difference <= -1 or difference == 0:
        raise ValueError(f"difference {difference} is not above -1 or is 0")
    shift = abs(math.log1p(difference))
    spread = sure_noise(noise, noise_freedom)
    if spread == 0:
        return 2
    if _power(shift / spread, MOST, confidence, comparisons, blocks) < power:
        return None
    low, high = 1, 2
    while _power(shift / spread, high, confidence, comparisons, blocks) < power:
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        enough = _power(shift / spread, middle, confidence, comparisons, blocks) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def detectable(
    trials: int,
    noise: float,
    *,
    power: float = 0.9,
    confidence: float = 0.95,
    comparisons: int = 1,
    blocks: bool = False,
) -> float | None:
    """Smallest relative difference that `trials` of each alternative detect with probability `power`; None: a single
    trial detects none.
    """
    _check(noise, power, confidence, comparisons)
    if trials < 2:
        return None
    if noise == 0:
        return 0.0
    low, high = 0.0, 1.0
    while _power(high, trials, confidence, comparisons, blocks) < power:
        low, high = high, 2 * high
        if high > 1e6:
            return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _power(middle, trials, confidence, comparisons, blocks) >= power else (middle, high)
        )
    return math.expm1(high * noise) if high * noise < 700 else None


def sure_noise(noise: float, freedom: float | None) -> float:
    """Upper limit of the true standard deviation with probability `ASSURANCE`."""
    if freedom is None or noise == 0:
        return noise
    from scipy.special import chdtri

    return noise * math.sqrt(freedom / float(chdtri(freedom, ASSURANCE)))


def _power(shift: float, trials: int, confidence: float, comparisons: int, blocks: bool) -> float:
    """Power of the t test with `trials` on each side, in pairs or not; `shift` in standard deviations of a trial."""
    from scipy.special import nctdtr, stdtrit

    freedom = trials - 1 if blocks else 2 * (trials - 1)
    if freedom < 1 or (blocks and trials < FEWEST_BLOCKS):
        return 0.0
    allowed = (1 - confidence) / comparisons / 2
    if blocks:
        allowed /= doubt(trials) if trials < ENOUGH_BLOCKS else 1.0
    critical = float(stdtrit(freedom, 1 - allowed))
    if blocks and trials >= ENOUGH_BLOCKS:
        critical *= math.sqrt(usual_widening(trials))
    centre = shift * math.sqrt(trials / 2)
    if centre > 30:  # beyond what nctdtr computes, and certain
        return 1.0 if centre > 2 * critical else float(centre > critical)
    return 1.0 - float(nctdtr(freedom, centre, critical))


def _check(noise: float, power: float, confidence: float, comparisons: int) -> None:
    if not (noise >= 0 and math.isfinite(noise)):
        raise ValueError(f"noise {noise} is not a standard deviation")
    for name, share in (("power", power), ("confidence", confidence)):
        if not 0 < share < 1:
            raise ValueError(f"{name} {share} is not between 0 and 1")
    if comparisons < 1:
        raise ValueError(f"{comparisons} comparisons")
