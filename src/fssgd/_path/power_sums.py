"""Sums of powers ``f(k) = sum_j c_j a_j^(2k)`` with c_j >= 0, which is what F - F_min and ||grad F||^2 are.

Such a sum is convex in k: it falls for ever, or falls and then rises. So the first integer k at which
it is small enough, and the k at which it turns, are found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
LARGEST_STEP = 1e300  # the largest finite k that is told from a smaller one
CHUNK = 1 << 20  # numbers held at a time while many k are asked for


def log_factors(steps: Array) -> Array:
    """Return ``log |1 - x|`` for x = eta h >= 0, exactly 0 at x = 2 and -inf at x = 1."""
    with np.errstate(divide="ignore"):
        over = steps > 1.0
        if not over.any():
            return np.log1p(-steps)
        return np.where(over, np.log(np.where(over, steps - 1.0, 1.0)), np.log1p(-np.minimum(steps, 1.0)))


@dataclass(frozen=True, eq=False)
class PowerSum:
    """f(k), for non-negative coefficients c_j and log |a_j|."""

    coefficients: Array
    logs: Array

    @classmethod
    def of(cls, coefficients: Array, logs: Array) -> PowerSum:
        """Leave out the modes of coefficient 0, which must not grow."""
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
        if k == np.inf:
            return np.inf if self.grows else float(self.coefficients[self.logs == 0].sum())
        if self.grows:
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
        if np.isfinite(turn):
            return first_integer(lambda k: self.at(k) <= bound, 1, int(turn))
        # each mode alone must be below the bound; it suffices that each is below its share of it
        falling = self.logs < 0
        coefficients, logs = self.coefficients[falling], 2.0 * self.logs[falling]
        room = (bound - float(self.coefficients[~falling].sum())) / len(coefficients)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            needed = np.fmax.reduce(np.log(bound / coefficients) / logs, initial=1.0)
            enough = np.fmax.reduce(np.log(room / coefficients) / logs, initial=1.0) if room > 0 else np.inf
        low = max(1, int(needed) - 1) if np.isfinite(needed) else 1
        high = int(enough) + 1 if np.isfinite(enough) else None
        return first_integer(lambda k: self.at(k) <= bound, low, high)


def first_integer(holds: Callable[[int], bool], low: int = 0, high: int | None = None) -> int | float:
    """Return the first integer >= low from which ``holds`` is true; doubling, then bisection.

    inf if it does not hold at 1e300 either, past which k no longer changes anything.
    """
    if holds(low):
        return low
    if high is None or not holds(high):
        step = 1
        while not holds(low + step):
            if low > LARGEST_STEP:
                return np.inf
            low, step = low + step, 2 * step
        high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def times(k: Array | float, logs: Array) -> Array:
    """Return k logs, but 0 where either factor is, though the other be infinite."""
    if isinstance(k, float) and 0.0 < k < np.inf:
        return k * logs
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where((logs == 0) | (np.asarray(k) == 0), 0.0, k * logs)


def as_float(k: int | float) -> float:
    """Return k as a float, at most 1e300 unless it is inf: past that nothing changes, and products stay in range."""
    if k == np.inf:
        return np.inf
    return float(k) if k < LARGEST_STEP else LARGEST_STEP


def as_steps(k: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return k as floats, and which are odd: past 2^53 a float no longer tells."""
    if np.ndim(k) == 1:
        array = np.asarray(k)
        if array.dtype.kind in "iu" and (array >= 0).all():
            return array.astype(np.float64), array % 2 == 1
        if array.dtype.kind == "f" and ((array >= 0) & ((array == np.inf) | (array == np.floor(array)))).all():
            return np.where(array == np.inf, array, np.minimum(array, LARGEST_STEP)), np.fmod(
                array, 2.0, where=array != np.inf, out=np.zeros(array.shape)
            ) == 1.0
    values: list[Any] = [k] if np.ndim(k) == 0 else list(k)
    if not all(map(_is_step, values)):
        raise ValueError(f"k must be an integer >= 0 or inf, or an array of them; got {k!r}.")
    odd = [value != np.inf and value % 2 == 1 for value in values]
    return np.array([as_float(value) for value in values]), np.array(odd, dtype=bool)


def over_steps(k: Any, each: Callable[[Array, npt.NDArray[np.bool_]], Any], width: int) -> Any:
    """Call ``each`` with float k and their parities, some at a time: it holds ``width`` numbers for each of them."""
    ks, odd = as_steps(k)
    size = max(1, CHUNK // width)
    parts = [each(ks[i : i + size], odd[i : i + size]) for i in range(0, len(ks), size)]
    result = np.concatenate(parts) if parts else np.empty(0)
    return result[0] if np.ndim(k) == 0 else result


def _is_step(k: Any) -> bool:
    return isinstance(k, int | float | np.integer | np.floating) and bool(k >= 0 and (k == np.inf or k % 1 == 0))
