"""Numbers of steps k: which are valid, as floats with their parity, and some at a time.

Past 2^53 a float does not tell odd from even, and past 1e300 nothing changes any more: so k is kept as a float of at
most 1e300, or inf, beside its parity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
LARGEST_STEP = 1e300  # the largest finite k that is told from a smaller one
NUMBERS_AT_ONCE = 1 << 20  # held at a time while many k are asked for


@dataclass(frozen=True, eq=False)
class StepCounts:
    """One k or several.

    Parameters
    ----------
    values : float or ndarray of shape (n_k,)
    odd : bool or ndarray of shape (n_k,) of bool
    """

    values: Array | float
    odd: Flags | bool

    @classmethod
    def of(cls, k: Any) -> StepCounts:
        """Check what the user passed as k: one value as a float, an array-like as an array.

        Raises
        ------
        ValueError
            If k is not a non-negative integer or inf, or an array of them.
        """
        if np.ndim(k) == 0:
            _require_step_counts(k, [k])
            return cls(as_float(k), bool(k != np.inf and k % 2 == 1))
        if np.ndim(k) == 1:
            array = np.asarray(k)
            if array.dtype.kind in "iu" and (array >= 0).all():
                return cls(array.astype(np.float64), array % 2 == 1)
            if array.dtype.kind == "f" and ((array >= 0) & ((array == np.inf) | (array == np.floor(array)))).all():
                finite = array != np.inf
                odd = np.fmod(array, 2.0, where=finite, out=np.zeros(array.shape)) == 1.0
                return cls(np.where(finite, np.minimum(array, LARGEST_STEP), array), odd)
        values = list(k)  # Python's integers beyond 2^63, which no dtype of NumPy holds
        _require_step_counts(k, values)
        odd = np.array([value != np.inf and value % 2 == 1 for value in values], dtype=bool)
        return cls(np.array([as_float(value) for value in values]), odd)

    @property
    def any_infinite(self) -> bool:
        """Whether some k is inf."""
        return bool(np.isinf(self.values).any()) if isinstance(self.values, np.ndarray) else self.values == np.inf

    def column(self) -> Array:
        """Return k with a last axis of length 1, to go with modes."""
        return np.asarray(self.values)[..., None]

    def odd_column(self) -> Flags:
        """Return the parities with a last axis of length 1."""
        return np.asarray(self.odd)[..., None]

    def times(self, logs: Array) -> Array:
        """Return k logs, of shape (n_modes,) or (n_k, n_modes); 0 where either factor is."""
        return times(self.values[:, None] if isinstance(self.values, np.ndarray) else self.values, logs)

    def map(self, function: Callable[[StepCounts], Any], width: int) -> Any:
        """Return ``function`` of every k, some at a time: it holds ``width`` numbers for each of them."""
        if not isinstance(self.values, np.ndarray):
            return function(StepCounts(np.array([self.values]), np.array([self.odd])))[0]
        # a million k of a thousand modes each would take 8 GB at once
        parts = [function(part) for part in self._parts(max(1, NUMBERS_AT_ONCE // width))]
        return np.concatenate(parts) if parts else np.empty(0)

    def _parts(self, size: int) -> Iterator[StepCounts]:
        assert isinstance(self.values, np.ndarray)
        assert isinstance(self.odd, np.ndarray)
        for start in range(0, len(self.values), size):
            part = slice(start, start + size)
            yield StepCounts(self.values[part], self.odd[part])


def _require_step_counts(k: Any, values: list[Any]) -> None:
    for value in values:
        is_real = isinstance(value, int | float | np.integer | np.floating)
        if not (is_real and value >= 0 and (value == np.inf or value % 1 == 0)):
            raise ValueError(f"k must be a non-negative integer or inf, or an array of them; got {k!r}.")


def as_float(k: int | float) -> float:
    """Return k as a float, at most 1e300 unless it is inf: past that nothing changes, and products stay in range."""
    if k == np.inf:
        return np.inf
    return float(k) if k < LARGEST_STEP else LARGEST_STEP


def times(k: Array | float, logs: Array) -> Array:
    """Return k logs, but 0 where either factor is, though the other be infinite."""
    if isinstance(k, float) and 0.0 < k < np.inf:  # the one k of a fit, where np.where would be most of the time
        return k * logs
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where((logs == 0) | (np.asarray(k) == 0), 0.0, k * logs)


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
