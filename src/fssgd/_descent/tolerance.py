"""What a tolerance is relative to, and whether float64 or float32 can hold the squares of the gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fssgd._descent.coordinates import Coordinates
from fssgd._moments.moments import Moments

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
LARGEST_SQUARE = {"float64": 1e302, "float32": 1e32}  # with room for sums of squares
SQUARED_GRADIENTS = {"float64": (1e-290, 1e290), "float32": (1e-22, 1e30)}  # with room for what tol asks for


@dataclass(frozen=True, eq=False)
class ToleranceReference:
    """What tolerances are relative to; neither number depends on where a descent starts.

    Parameters
    ----------
    gradient : float
        G = ||grad F|| at W = 0 and the best constant b (b = 0 without an intercept).
    loss : float
        F there. For constant targets, where it would be 0, their mean square.
    """

    gradient: float
    loss: float

    @classmethod
    def of(cls, cross: Array, variance_y: Array, mean_y: Array, fit_intercept: bool) -> ToleranceReference:
        """Compute both.

        Parameters
        ----------
        cross : ndarray of shape (n_features, n_outputs)
            Weighted means of the products of z and y, both centred if there is an intercept: half of -grad F.
        variance_y, mean_y : ndarray of shape (n_outputs,)
        fit_intercept : bool
        """
        loss = float(variance_y.sum())
        if not fit_intercept or loss == 0.0:
            loss += float(mean_y @ mean_y)
        return cls(2.0 * math.sqrt(np.vdot(cross, cross)), loss)

    @classmethod
    def of_moments(cls, moments: Moments, coordinates: Coordinates) -> ToleranceReference:
        """Compute both from the moments of the data."""
        cross = moments.scatter_xy / moments.weight_sum
        if not coordinates.fit_intercept:
            cross = cross + np.outer(moments.mean_x, moments.mean_y)
        cross = cross / coordinates.scale[:, None]
        return cls.of(cross, moments.variance_y, moments.mean_y, coordinates.fit_intercept)

    def require_in_range(
        self, curvature: float, start: Array, coordinates: Coordinates, dtype: str = "float64"
    ) -> None:
        """Raise a ValueError if squares of gradients leave the range in which steps can be taken.

        Parameters
        ----------
        curvature : float
            L, of which the square of the gradient is about L F.
        start : ndarray of shape (n_parameters, n_outputs)
            theta_0, where it is at most ``2 L (sqrt(F_ref) + sqrt(L / 2) ||W|| + ||b||)^2``.
        coordinates : Coordinates
        dtype : {"float64", "float32"}
        """
        size, (low, high) = curvature * self.loss, SQUARED_GRADIENTS[dtype]
        if not (size == 0.0 and (curvature == 0.0 or self.loss == 0.0) or low < size < high):
            raise ValueError(
                f"The square of the gradient, about {size:.0e}, comes too close to the limits of {dtype} to descend "
                "by: change the units of X or y, use standardize=True, or pass X as float64."
            )
        weights, intercept = coordinates.split(start)
        far = math.sqrt(curvature / 2.0 * np.vdot(weights, weights)) + math.sqrt(np.vdot(intercept, intercept))
        if not far * far * max(2.0 * curvature, 1.0) < LARGEST_SQUARE[dtype]:
            raise ValueError(
                f"The descent starts too far away: with residuals of about {far:.0e}, of which {dtype} cannot hold the "
                "loss or the square of its gradient. Start closer (coef_init, intercept_init, warm_start), or change "
                "the units of X or y."
            )

    def threshold(self, tol: float, curvature: float, eps: float = EPS) -> float:
        """Return the gradient norm at which tol is met: at least what the dtype resolves."""
        return max(tol * self.gradient, 100.0 * eps * math.sqrt(2.0 * curvature * self.loss))
