"""What a tolerance is relative to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fssgd._descent.coordinates import Scaling
from fssgd._moments.moments import Moments

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
FARTHEST = {"float64": 1e302, "float32": 1e32}  # with room for sums of squares
RANGES = {"float64": (1e-290, 1e290), "float32": (1e-22, 1e30)}  # with room for the square of what tol asks for


@dataclass(frozen=True, eq=False)
class ToleranceReference:
    """What tolerances are relative to; neither depends on where a descent starts.

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
    def of(cls, moments: Moments, scaling: Scaling, fit_intercept: bool) -> ToleranceReference:
        """Read G and F off the moments."""
        slope = moments.scatter_xy / moments.weight_sum
        loss, level = float(moments.variance_y.sum()), float(moments.mean_y @ moments.mean_y)
        if not fit_intercept:
            slope = slope + np.outer(moments.mean_x, moments.mean_y)
        if not fit_intercept or loss == 0.0:
            loss += level
        slope = slope / scaling.scale[:, None]
        return cls(2.0 * math.sqrt(np.vdot(slope, slope)), loss)

    def require_in_range(
        self, curvature: float, start: Array, fit_intercept: bool, dtype: str = "float64"
    ) -> ToleranceReference:
        """Return self, or raise if squares of gradients leave the range in which steps are taken.

        Parameters
        ----------
        curvature : float
            L, of which the square of the gradient is about L F.
        start : ndarray of shape (n_parameters, n_outputs)
            theta_0, where it is at most ``2 L (sqrt(F_ref) + sqrt(L / 2) ||W|| + ||b||)^2``.
        fit_intercept : bool
        dtype : {"float64", "float32"}
        """
        size, (low, high) = curvature * self.loss, RANGES[dtype]
        if not (size == 0.0 and (curvature == 0.0 or self.loss == 0.0) or low < size < high):
            raise ValueError(
                f"The square of the gradient, about {size:.0e}, comes too close to the limits of {dtype} to descend "
                "by: change the units of X or y, use standardize=True, or pass X as float64."
            )
        n_weights = len(start) - fit_intercept
        weights, intercept = start[:n_weights], start[n_weights:]
        far = math.sqrt(curvature / 2.0 * np.vdot(weights, weights)) + math.sqrt(np.vdot(intercept, intercept))
        if not far * far * max(2.0 * curvature, 1.0) < FARTHEST[dtype]:
            raise ValueError(
                f"The descent starts too far away: with residuals of about {far:.0e}, of which {dtype} cannot hold the "
                "loss or the square of its gradient. Start closer (coef_init, intercept_init, warm_start), or change "
                "the units of X or y."
            )
        return self

    def threshold(self, tol: float, curvature: float, eps: float = EPS) -> float:
        """Return the gradient norm at which tol is met: at least what the dtype resolves."""
        return max(tol * self.gradient, 100.0 * eps * math.sqrt(2.0 * curvature * self.loss))
