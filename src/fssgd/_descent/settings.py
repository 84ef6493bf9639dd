"""The step and the objective of a descent, as the user sets them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

TINIEST, LARGEST = float(np.finfo(np.float64).smallest_subnormal), float(np.finfo(np.float64).max)


def rounding_of_limit(n_parameters: int) -> float:
    """Return how far eta L may be from 2, by the rounding of L, and still be at the limit of stability."""
    return 8.0 * n_parameters * float(np.finfo(np.float64).eps)


def as_float64(name: str, value: Any) -> float:
    """Return a real number as a float; raise a ValueError if float64 has no room for it, or rounds it to 0."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) or (number == 0.0 and value != 0):
        raise ValueError(
            f"{name}, given as {type(value).__name__}, is {'above' if number else 'below'} what float64 holds: "
            f"expected a number between {TINIEST:.0e} and {LARGEST:.1e}."
        )
    return number


@dataclass(frozen=True)
class Settings:
    """Step and objective of a descent; see :class:`~fssgd.LinearRegressorGD` for their meaning."""

    learning_rate: float | Literal["auto"] = "auto"
    standardize: bool = True
    fit_intercept: bool = True
    alpha: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a step or a penalty that describes no descent."""
        rate, alpha = self.learning_rate, self.alpha
        if rate != "auto" and not (isinstance(rate, Real) and 0 < rate < np.inf):
            raise ValueError(f"learning_rate must be a positive number or 'auto', got {self.learning_rate!r}.")
        if not (isinstance(alpha, Real) and 0 <= alpha < np.inf):
            raise ValueError(f"alpha must be a non-negative number, got {self.alpha!r}.")
        if rate != "auto":
            object.__setattr__(self, "learning_rate", as_float64("learning_rate", rate))
        object.__setattr__(self, "alpha", as_float64("alpha", alpha))

    def penalty(self, n_features: int) -> npt.NDArray[np.float64]:
        """Return the penalty on each parameter, of shape (n_parameters,): alpha on W, 0 on b."""
        penalty = np.full(n_features + self.fit_intercept, self.alpha)
        penalty[n_features:] = 0.0
        return penalty

    def step(self, largest: float) -> float:
        """Return the step: as given, or 1 / L, or 1 where F is constant."""
        if self.learning_rate != "auto":
            return self.learning_rate
        return 1.0 / largest if largest > 0 else 1.0
