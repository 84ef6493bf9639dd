"""Sums of powers ``f(k) = sum_j c_j a_j^(2k)`` with c_j >= 0: F - F_min and ||grad F||^2 after k steps.

Such a sum is convex in k: it falls for ever, or falls and then rises. So the first integer k at which
it is small enough, and the k at which it turns, are found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fssgd._path.step_counts import as_float, first_integer, times

Array = npt.NDArray[np.float64]


def log_factors(steps: Array) -> Array:
    """Return ``log |1 - x|`` for x = eta h >= 0, exactly 0 at x = 2 and -inf at x = 1."""
    with np.errstate(divide="ignore"):
        over = steps > 1.0
        if not over.any():  # eta <= 1 / L: log1p knows slow modes (x = 1e-17) to all their digits, log(1 - x) to none
            return np.log1p(-steps)
        # both branches of np.where are computed: each gets a harmless argument where the other one counts
        return np.where(over, np.log(np.where(over, steps - 1.0, 1.0)), np.log1p(-np.minimum(steps, 1.0)))


@dataclass(frozen=True, eq=False)
class PowerSum:
    """f(k), for non-negative coefficients c_j and log |a_j|."""

    coefficients: Array
    logs: Array

    @classmethod
    def of(cls, coefficients: Array, logs: Array) -> PowerSum:
        """Leave out the modes of coefficient 0, which must not grow."""
        # an unstable step on data without any gradient along the steepest direction: 0 times inf would be NaN
        sums = cls(coefficients, logs)
        if not sums.grows:
            return sums
        kept = coefficients > 0
        return cls(coefficients[kept], logs[kept])

    def at(self, k: int | float) -> float:
        """Return f(k); inf where it overflows."""
        if k == 0:
            return float(self.coefficients.sum())
        k = as_float(k)
        if k == np.inf:  # only modes that do not move are left: null directions, or eta h = 2 exactly
            return np.inf if self.grows else float(self.coefficients[self.logs == 0].sum())
        if self.grows:  # entering errstate costs more than the sum, and a stable step cannot overflow
            with np.errstate(over="ignore"):
                return float(self.coefficients @ np.exp(2.0 * k * self.logs))
        return float(self.coefficients @ np.exp(2.0 * k * self.logs))

    @cached_property
    def grows(self) -> bool:
        """Whether some |a_j| > 1."""
        return bool(self.logs.max(initial=-1.0) > 0)

    def turn(self) -> int | float:
        """Return the smallest k at which f stops falling; inf if it falls for ever."""
        if not self.grows:
            return np.inf
        largest = float(self.logs.max())  # powers are taken relative to it, so that none overflows
        # f(k + 1) - f(k) as one sum: of growing terms the sign is decided by the largest, without inf - inf
        with np.errstate(over="ignore"):
            changes = self.coefficients * np.expm1(2.0 * self.logs)

        def rises(k: int) -> bool:
            return float(changes @ np.exp(2.0 * times(as_float(k), self.logs - largest))) >= 0

        return first_integer(rises)

    def first_below(self, bound: float) -> int | float:
        """Return the first k >= 0 with f(k) <= bound; inf if there is none."""
        if self.at(0) <= bound:
            return 0
        if self.at(1) <= bound:
            return 1
        turn = self.turn()
        if self.at(turn) > bound:
            return np.inf
        if np.isfinite(turn):  # an unstable step: f falls until then, and only there can it be small enough
            return first_integer(lambda k: self.at(k) <= bound, 1, int(turn))
        # A slow mode (eta h = 1e-12) takes 1e13 steps, and doubling up to them would evaluate f forty times. Each mode
        # alone must be below the bound, which k is at least; it suffices that each is below its share of the bound.
        falling = self.logs < 0
        coefficients, logs = self.coefficients[falling], 2.0 * self.logs[falling]
        room = (bound - float(self.coefficients[~falling].sum())) / len(coefficients)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            needed = np.fmax.reduce(np.log(bound / coefficients) / logs, initial=1.0)
            enough = np.fmax.reduce(np.log(room / coefficients) / logs, initial=1.0) if room > 0 else np.inf
        # one step of slack for the rounding of the quotients; below what null modes add up to there is no room at all
        low = max(1, int(needed) - 1) if np.isfinite(needed) else 1
        high = int(enough) + 1 if np.isfinite(enough) else None
        return first_integer(lambda k: self.at(k) <= bound, low, high)
