"""A Gaussian process over a space of settings: the expected value at each point, and how uncertain that is.

The covariance of two trials is the sum of six parts: a product over all axes (Matern 5/2 on the whole distance), a sum
over the axes (Matern 5/2 on each alone: most settings act by themselves), what trials of the same settings have in
common and no others (values are rough: neighbours differ by more than a smooth curve says), what all trials of one
block have in common,
what similar settings in one block have in common (on a modelled machine they meet the same requests, so their errors
are alike and a repetition in the same block says nothing new), and the noise of a trial.

Lengths, sizes and noise are the most probable ones (Rasmussen and Williams, Gaussian Processes for Machine Learning,
2006, chapters 4 and 5), with weak priors on their logarithms so that few trials suffice. Words on an axis are equally
far from each other (Hutter et al., LION 5, 2011).

Where a model of the target expects values, the process is of the difference to it; the model's differences between
points may be too large or too small by a factor, too (Kennedy and O'Hagan, Biometrika 87 (2000) 1-13).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from threadpoolctl import ThreadpoolController

from spindle.search.space import Numbers, Point, Space

_ROOT_5 = math.sqrt(5)
_PRIORS = {"length": (math.log(0.7), 1.0), "whole": (-0.7, 1.0), "alone": (-0.7, 1.0), "rough": (-1.5, 1.0),
           "block": (-2.5, 1.0), "alike": (-2.5, 1.0), "noise": (-1.5, 1.2)}  # fmt: skip
"""Mean and deviation of each logarithm; sizes are relative to the spread of the values."""
_PARTS = len(_PRIORS) - 1
_JITTER = 1e-8
_FACTOR = 0.2
"""Standard deviation of the factor on a model's differences, about 1."""
_STEPS = 60
"""Most steps of the fit: it always ends."""

_BLAS = ThreadpoolController()
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Matrices are small: on a busy machine the threads of BLAS wait for each other longer than they compute. On one
    thread sums do not depend on the number of cores, either.
    """
    limited: Callable[_P, _R] = _BLAS.wrap(limits=1, user_api="blas")(function)
    return limited


Mean = Callable[[Sequence[Point]], Numbers]
"""Expectation of a model."""


def nothing(points: Sequence[Point]) -> Numbers:
    """No model."""
    return np.zeros(len(points))


@dataclass(frozen=True)
class Process:
    """A fitted process."""

    space: Space
    points: Sequence[Point]
    lengths: Numbers
    """The distance on each axis over which values resemble each other; the whole axis is 1."""
    whole: float
    alone: float
    rough: float
    block: float
    alike: float
    own: float
    """Standard deviations of the parts, in the unit of the values; `own`: the noise of a trial by itself."""
    _mean: float
    _weights: Numbers
    _factor: tuple[Numbers, bool]
    _expected: Mean
    _middle: float
    """Expectation of the model, in the mean over the trials."""

    @property
    def noise(self) -> float:
        """Standard deviation of a trial beside those of other settings in its block."""
        return math.hypot(self.alike, self.own)

    @_one_thread
    def at(self, points: Sequence[Point]) -> tuple[Numbers, Numbers]:
        """Expected values and their standard errors, without block and noise."""
        across = self._signal(points, self.points)
        expected = self._expected(points)
        mean: Numbers = expected + self._mean + across @ self._weights
        own = self.whole**2 + self.alone**2 + self.rough**2 + (_FACTOR * (expected - self._middle)) ** 2
        variance = own - np.einsum("ij,ji->i", across, cho_solve(self._factor, across.T))
        error: Numbers = np.sqrt(np.maximum(variance, 1e-18))
        return mean, error

    @_one_thread
    def contrast(self, these: Sequence[Point], those: Sequence[Point]) -> tuple[float, float]:
        """Expected mean over `these` less that over `those`, and its standard error."""
        points = [*these, *those]
        share = np.concatenate([np.full(len(these), 1 / len(these)), np.full(len(those), -1 / len(those))])
        across = share @ self._signal(points, self.points)
        spread = float(share @ self._signal(points, points) @ share)
        variance = spread - float(across @ cho_solve(self._factor, across))
        return float(share @ self._expected(points) + across @ self._weights), math.sqrt(max(variance, 0.0))

    def _signal(self, these: Sequence[Point], those: Sequence[Point]) -> Numbers:
        scaled = self.space.distances(these, those) / (self.lengths**2)[:, None, None]
        total = scaled.sum(axis=0)
        found: Numbers = self.whole**2 * _matern(total) + self.alone**2 * _matern(scaled).mean(axis=0)
        found += self.rough**2 * (total == 0)
        return found + _scaled(self._expected(these) - self._middle, self._expected(those) - self._middle)


@_one_thread
def fitted(
    space: Space, points: Sequence[Point], values: Sequence[float], blocks: Sequence[int], expected: Mean = nothing
) -> Process:
    """Fit a process to trials: their points, values and blocks. At least one trial. `expected`: by a model."""
    before = expected(points)
    raw = np.asarray(values, dtype=np.float64) - before
    mean, spread = float(raw.mean()), float(raw.std()) or 1.0
    y = (raw - mean) / spread
    squares = space.distances(points, points)
    together = np.equal.outer(np.asarray(blocks), np.asarray(blocks)).astype(np.float64)
    middle = float(before.mean())
    target = _Posterior(squares, together, _scaled(before - middle, before - middle) / spread**2, y)
    found = minimize(
        target, target.start, jac=True, method="L-BFGS-B", bounds=target.bounds, options={"maxiter": _STEPS}
    ).x
    lengths, (whole, alone, rough, block, alike, own) = np.exp(found[:-_PARTS]), np.exp(found[-_PARTS:])
    covariance, _ = target.covariance(found)
    factor = cho_factor(covariance, lower=True)
    weights = cho_solve(factor, y)
    return Process(
        space=space,
        points=list(points),
        lengths=lengths,
        whole=float(whole) * spread,
        alone=float(alone) * spread,
        rough=float(rough) * spread,
        block=float(block) * spread,
        alike=float(alike) * spread,
        own=float(own) * spread,
        _mean=mean,
        _weights=weights / spread,
        _factor=(factor[0] * spread, True),
        _expected=expected,
        _middle=middle,
    )


def _scaled(these: Numbers, those: Numbers) -> Numbers:
    """Covariance by the factor on a model's differences."""
    found: Numbers = _FACTOR**2 * np.outer(these, those)
    return found


class _Posterior:
    """Negative logarithm of the posterior density of the parameters, and its gradient."""

    def __init__(self, squares: Numbers, together: Numbers, given: Numbers, y: Numbers) -> None:
        """`given`: a part of the covariance without parameters."""
        self._squares, self._together, self._given, self._y = squares, together, given, y
        names = ["length"] * len(squares) + list(_PRIORS)[1:]
        self.start = np.asarray([_PRIORS[name][0] for name in names])
        self._deviations = np.asarray([_PRIORS[name][1] for name in names])
        self.bounds = [(mean - 5.0, mean + 5.0) for mean in self.start]

    def covariance(self, parameters: Numbers) -> tuple[Numbers, Numbers]:
        """The covariance of the trials, and its derivative by each parameter."""
        lengths, sizes = np.exp(parameters[:-_PARTS]), np.exp(2 * parameters[-_PARTS:])
        whole, alone, rough, block, alike, own = sizes
        scaled = self._squares / (lengths**2)[:, None, None]
        total = scaled.sum(axis=0)
        near, one = _matern(total), np.eye(len(self._y))
        product, each = whole * near, alone * _matern(scaled).mean(axis=0)
        same = rough * (total == 0)
        common, similar = block * self._together, alike * self._together * near
        found = self._given + product + each + same + common + similar + (own + _JITTER) * one
        steep = (whole + alike * self._together) * _slope(total)
        by_length = scaled * (steep[None, :, :] + alone * _slope(scaled) / len(scaled))
        by_size = 2 * np.stack([product, each, same, common, similar, own * one])
        return found, np.concatenate([by_length, by_size])

    def __call__(self, parameters: Numbers) -> tuple[float, Numbers]:
        covariance, derivatives = self.covariance(parameters)
        try:
            factor = cho_factor(covariance, lower=True)
        except np.linalg.LinAlgError:
            return 1e25, np.zeros_like(parameters)
        weights = cho_solve(factor, self._y)
        inverse = cho_solve(factor, np.eye(len(self._y)))
        away = (parameters - self.start) / self._deviations
        value = 0.5 * self._y @ weights + np.log(np.diag(factor[0])).sum() + 0.5 * away @ away
        inner = inverse - np.outer(weights, weights)
        gradient: Numbers = 0.5 * np.einsum("ij,kji->k", inner, derivatives) + away / self._deviations
        return float(value), gradient


def _matern(squares: Numbers) -> Numbers:
    """Matern 5/2 of squared distances."""
    reach = _ROOT_5 * np.sqrt(squares)
    found: Numbers = (1 + reach + reach**2 / 3) * np.exp(-reach)
    return found


def _slope(squares: Numbers) -> Numbers:
    """Derivative by the logarithm of a length, over the squared distance on its axis."""
    reach = _ROOT_5 * np.sqrt(squares)
    found: Numbers = (5 / 3) * (1 + reach) * np.exp(-reach)
    return found
