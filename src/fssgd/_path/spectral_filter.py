"""The spectral filter of gradient descent: what k steps do along one eigenvector of the Hessian.

A step multiplies what is left along an eigenvector of the Hessian, of eigenvalue h, by 1 - eta h. So the
iterates are the limit seen through a filter, and ``phi_k(h) = (1 - (1 - eta h)^k) / h`` is how far along
the gradient at the start they have come: eta k for small h, 1 / h once settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fssgd._descent.settings import rounding_of_limit
from fssgd._path.power_sums import log_factors
from fssgd._path.step_counts import StepCounts

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Filter:
    """The factors of a descent with a fixed step.

    Parameters
    ----------
    eigenvalues : ndarray of shape (n_modes,)
        h_j >= 0.
    learning_rate : float
        eta.
    n_parameters : int
        How many numbers the rounding of L comes from.
    """

    eigenvalues: Array
    learning_rate: float
    n_parameters: int

    @cached_property
    def largest_factor(self) -> float:
        """Return eta L; within rounding of 2 it is 2, the limit of stability itself."""
        # learning_rate=2 / L, computed by the user from an L of his own, must not diverge by the rounding of ours
        x = self.learning_rate * float(self.eigenvalues.max(initial=0.0))
        return 2.0 if abs(x - 2.0) <= rounding_of_limit(self.n_parameters) else x

    @cached_property
    def factors(self) -> Array:
        """x_j = eta h_j, 2 within rounding of 2."""
        largest = self.largest_factor
        if not largest < 1e300:  # a step of 1e200 on columns of 1e60: eta h would overflow, and 1 - inf is no factor
            return np.clip(self.eigenvalues, 0.0, 1e300 / self.learning_rate) * self.learning_rate
        steps = self.learning_rate * self.eigenvalues
        if largest > 1.5:  # every mode at the limit, not only the first: columns scaled alike share their eigenvalue
            steps[np.abs(steps - 2.0) <= rounding_of_limit(self.n_parameters)] = 2.0
        return steps

    @cached_property
    def logs(self) -> Array:
        """log |1 - eta h_j|."""
        return log_factors(self.factors)

    @cached_property
    def inverses(self) -> Array:
        """1 / h_j, and 0 in the null space, where the gradient is 0 too."""
        h = self.eigenvalues
        return np.divide(1.0, h, out=np.zeros_like(h), where=h > 0)

    @property
    def stable(self) -> bool:
        """Whether eta <= 2 / L."""
        return self.largest_factor <= 2.0

    @property
    def at_limit(self) -> bool:
        """Whether eta is 2 / L, to rounding."""
        return self.largest_factor == 2.0

    @property
    def alternates(self) -> bool:
        """Whether some factor 1 - eta h_j is negative, so that odd and even k differ."""
        return self.largest_factor > 1.0

    def values(self, steps: StepCounts) -> Array:
        """phi_k(h_j), of shape (n_modes,) or (n_k, n_modes)."""
        return self.values_and_residual_factors(steps)[0]

    def residual_factors(self, steps: StepCounts) -> Array:
        """(1 - eta h_j)^k, of the shape of :meth:`values`."""
        return self.values_and_residual_factors(steps)[1]

    def values_and_residual_factors(self, steps: StepCounts) -> tuple[Array, Array]:
        """Both, which have k log |1 - eta h_j| in common."""
        with np.errstate(invalid="ignore", over="ignore"):
            # powers by logarithms: k reaches 1e300, and for a slow mode 1 - a^k would cancel where expm1 does not
            logs = steps.times(self.logs)
            reached, left = -np.expm1(logs), np.exp(logs)
            if self.alternates:  # eta > 1 / L: the sign of an odd power, which the logarithm has lost
                negative = (self.factors > 1.0) & steps.odd_column()
                reached, left = np.where(negative, 1.0 + left, reached), np.where(negative, -left, left)
            return np.asarray(reached * self.inverses), left
