"""The loss as a quadratic in the eigenbasis of its Hessian.

F is a quadratic of theta = (W, b), so with H = V diag(h) V' and gamma = V' grad F(theta_0)

    F(theta) = F_min + sum_j ||gamma_j + h_j v_j' (theta - theta_0)||^2 / (2 h_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """F seen from ``start``, one row an eigenvector.

    Parameters
    ----------
    eigenvalues : ndarray of shape (n_modes,)
        h_j >= 0; exactly 0 where the data does not reach. Modes in the null space may be absent.
    vectors : ndarray of shape (n_parameters, n_modes)
        v_j, the intercept last.
    curvature : ndarray of shape (n_modes,)
        v_j' M v_j, the part of h_j that comes from the data and not from the penalty.
    pull : ndarray of shape (n_modes, n_outputs)
        ``-v_j' grad F`` at theta = 0; exactly 0 where h_j is.
    coordinates : ndarray of shape (n_modes, n_outputs)
        v_j' theta_0.
    start : ndarray of shape (n_parameters, n_outputs)
        theta_0, with b counted from the mean of y if there is an intercept.
    outside : ndarray of shape (n_parameters, n_outputs) or None
        The part of theta_0 that no mode describes and no step moves; None where there is a mode for every parameter.
    minima : ndarray of shape (n_outputs,)
        F_min of each output; rounding may take it a little below 0.
    accurate : bool
        Whether it comes from the triangular factor of accurate moments.
    unresolved : float
        Norm of the gradient at theta_0 along the directions whose curvature is lost in the rounding of second moments,
        where it is more than that rounding explains. They count as null, and a descent may still have to follow them.
    """

    eigenvalues: Array
    vectors: Array
    curvature: Array
    pull: Array
    coordinates: Array
    start: Array
    outside: Array | None
    minima: Array
    accurate: bool
    unresolved: float = 0.0

    @cached_property
    def gradient(self) -> Array:
        """gamma_j, of shape (n_modes, n_outputs); exactly 0 where h_j is."""
        return np.asarray(self.eigenvalues[:, None] * self.coordinates - self.pull)

    @property
    def starts_apart(self) -> bool:
        """Whether the start is along b alone and b is a mode of its own: then no rotation rounds weights by it."""
        # V (V' theta_0) would leave eps |b_0| in every weight, and b starts at minus a mean of y of any size
        return not (self.start[:-1].any() or self.vectors[:-1, -1:].any())

    @property
    def minimum(self) -> float:
        """F_min, which rounding may take a little below 0."""
        return float(self.minima.sum())

    @property
    def largest(self) -> float:
        """L = lambda_max(H); 0 if F is constant."""
        return float(self.eigenvalues.max(initial=0.0))

    @property
    def condition_number(self) -> float:
        """Ratio of the largest to the smallest eigenvalue that is not null."""
        # null directions have no gradient, so no descent follows them: dependent columns do not count
        positive = self.eigenvalues[self.eigenvalues > 0]
        return float(positive.max() / positive.min()) if len(positive) else 1.0

    @property
    def steepest(self) -> Array:
        """Eigenvector of L, of shape (n_parameters,)."""
        return self.vectors[:, int(np.argmax(self.eigenvalues))]

    @property
    def limit(self) -> Array:
        """Where a stable descent leads, of shape (n_parameters, n_outputs)."""
        h = self.eigenvalues[:, None]
        # in the null space the limit is where the descent started: the nearest of all minima
        return self.position(np.divide(self.pull, h, out=self.coordinates.copy(), where=h > 0))

    def position(self, coordinates: Array) -> Array:
        """Return theta from its coordinates in the eigenbasis, both with any leading axes."""
        theta = self.vectors @ coordinates
        return theta if self.outside is None else self.outside + theta
