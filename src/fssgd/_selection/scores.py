"""Scores of a number of steps, in the form that :mod:`fssgd._selection.integer_search` minimises.

Folds: the mean of their errors. Generalised cross-validation: ``N = RSS_k / n`` over ``D = (1 - df(k) / n)^2``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fssgd._path.error_curve import ErrorCurve, extent
from fssgd._path.gradient_path import GradientPath
from fssgd._path.step_counts import StepCounts
from fssgd._selection.integer_search import Bounds

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeanError:
    """The mean over folds of their errors, to be searched."""

    curves: list[ErrorCurve]

    @property
    def rounding(self) -> float:
        """How far apart two values may lie and still be equal."""
        return float(np.mean([curve.rounding for curve in self.curves]))

    @property
    def alternates(self) -> bool:
        """Whether even and odd k have to be told apart."""
        return any(curve.alternates for curve in self.curves)

    @property
    def reach(self) -> float:
        """Largest k whose error is a number well within float64."""
        return min(curve.reach for curve in self.curves)

    def each(self, steps: StepCounts) -> Array:
        """Return the errors of each fold, of shape (n_folds, n_k)."""
        return np.array([curve.at(steps) for curve in self.curves])

    def bounds(self, knots: Array, odd: bool) -> Bounds:
        """As a score with the divisor 1."""
        bounds = [curve.bounds(knots, odd) for curve in self.curves]
        value, second_derivative_bound = (sum(parts) / len(self.curves) for parts in zip(*bounds, strict=True))
        return Bounds(value, np.ones_like(value), second_derivative_bound, np.zeros_like(second_derivative_bound))


@dataclass(frozen=True, eq=False)
class GcvScore:
    """The generalised cross-validation score of a path, to be searched: N = RSS_k / n and D = (1 - df(k) / n)^2."""

    path: GradientPath
    error: ErrorCurve

    @property
    def rounding(self) -> float:
        """How far apart two values of RSS_k / n may lie and still be equal."""
        return self.error.rounding

    @property
    def alternates(self) -> bool:
        """Whether even and odd k have to be told apart."""
        return self.error.alternates

    @property
    def reach(self) -> float:
        """Largest k whose error is a number well within float64."""
        return self.error.reach

    def bounds(self, knots: Array, odd: bool) -> Bounds:
        """As a score; ``D'' = 2 s'^2 + 2 s s''`` for s = 1 - df / n, from bounds on each."""
        value, second_derivative_bound = self.error.bounds(knots, odd)
        smoother, modes = self.path.smoother, self.error.modes
        # s is a sum of factors that fall with k, so it is bounded by its values at the ends
        sign = np.where((modes.filter.factors > 1.0) & odd, -1.0, 1.0)
        shares, rates = sign * smoother.fitted_shares / smoother.n_samples, modes.rates
        left = np.exp(modes.logs(knots))
        share = smoother.fixed_residual / smoother.n_samples + left @ shares
        low, high = extent(left)
        s, s_high = _extremes(low, high, shares)
        s, s_high = (smoother.fixed_residual / smoother.n_samples + bound for bound in (s, s_high))
        v, v_high = _extremes(low, high, -rates * shares)
        w, w_high = _extremes(low, high, rates**2 * shares)
        # s'^2 is smallest where s' is, unless it changes its sign in between: then it is 0 somewhere
        speed = np.where((v < 0) & (v_high > 0), 0.0, np.minimum(v**2, v_high**2))
        turn = np.minimum(np.minimum(s * w, s * w_high), np.minimum(s_high * w, s_high * w_high))
        return Bounds(value, share**2, second_derivative_bound, 2.0 * (speed + turn))


def _extremes(low: Array, high: Array, coefficients: Array) -> tuple[Array, Array]:
    """Bounds of a linear form of factors between low and high, both non-negative."""
    positive, negative = np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)
    return low @ positive + high @ negative, high @ positive + low @ negative
