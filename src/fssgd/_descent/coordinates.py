"""The coordinates in which a descent takes its steps, and the way to the user's units and back.

theta = (W, b - ybar) for features ``z = (x - mean) / scale`` and targets that are counted from their mean ybar, which
makes every number of a descent independent of the offset of y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._descent.settings import Settings
from fssgd._moments.moments import Moments

Array = npt.NDArray[np.float64]
HUGE = 1e290  # larger values of an unstable descent count as infinite


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The coordinates of one descent.

    Parameters
    ----------
    mean, scale : ndarray of shape (n_features,)
        Subtracted from, and divided by, the features, in their units. A constant column has scale 1.
    target_mean : ndarray of shape (n_outputs,)
        Value that b is counted from: the weighted mean of y, or zeros without an intercept.
    fit_intercept : bool
        Whether b is a parameter of the descent; then it comes last in theta.
    single_output : bool
        Whether y is 1-D, so that fitted attributes have no axis of outputs.
    """

    mean: Array
    scale: Array
    target_mean: Array
    fit_intercept: bool
    single_output: bool = False

    @classmethod
    def of_columns(
        cls, mean: Array, variance: Array, mean_y: Array, settings: Settings, *, single_output: bool = False
    ) -> Coordinates:
        """Choose the coordinates for data of these weighted means and population variances.

        Features stay as they are unless ``standardize``; without an intercept nothing is centred.
        """
        intercept = settings.fit_intercept
        scale = np.sqrt(variance) if settings.standardize else np.ones(len(mean))
        scale[scale == 0] = 1.0  # a constant column: 0 / 0 without it
        centred = settings.standardize and intercept
        return cls(
            mean if centred else np.zeros(len(mean)),
            scale,
            mean_y if intercept else np.zeros(len(mean_y)),
            intercept,
            single_output,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of theta, (n_parameters, n_outputs)."""
        return len(self.scale) + self.fit_intercept, len(self.target_mean)

    def split(self, theta: Any) -> tuple[Any, Any]:
        """Return W of shape (..., n_features, n_outputs) and the centred intercept of shape (..., n_outputs)."""
        if self.fit_intercept:
            return theta[..., :-1, :], theta[..., -1, :]
        return theta, np.zeros_like(theta[..., 0, :])

    def join(self, weights: Array, centred_intercept: Array) -> Array:
        """Return theta; the intercept is left out where it is no parameter."""
        return np.concatenate([weights, centred_intercept[None]]) if self.fit_intercept else weights

    def to_user(self, theta: Any) -> tuple[Any, Any]:
        """Return coefficients and intercepts in the user's units.

        Parameters
        ----------
        theta : ndarray of shape (..., n_parameters, n_outputs)

        Returns
        -------
        coef : ndarray of shape (..., n_features, n_outputs)
        intercept : ndarray of shape (..., n_outputs)
            Infinite, not NaN, where an unstable descent has overflowed; zeros without an intercept.
        """
        weights, centred_intercept = self.split(theta)
        coef = weights / self.scale[:, None]
        if not self.fit_intercept:
            return coef, centred_intercept
        intercept = centred_intercept + self.target_mean
        if np.isfinite(coef).all():
            return coef, intercept - self.mean @ coef
        with np.errstate(over="ignore"):  # inf - inf of two columns would be NaN
            return coef, np.clip(intercept, -HUGE, HUGE) - self.mean @ np.clip(coef, -HUGE, HUGE)

    def from_user(self, coef: Array, intercept: Array) -> Array:
        """Return theta for coefficients of shape (n_features, n_outputs) and intercepts of shape (n_outputs,)."""
        return self.join(coef * self.scale[:, None], (intercept - self.target_mean) + self.mean @ coef)

    def linear_to_user(self, directions: Array) -> Array:
        """Return what :meth:`to_user` makes of differences of theta, of shape (n_parameters, n): intercept first."""
        if not self.fit_intercept:
            return directions / self.scale[:, None]
        coef = directions[:-1] / self.scale[:, None]
        return np.vstack([directions[-1] - self.mean @ coef, coef])

    def as_fitted(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Give both the shapes of ``coef_`` and ``intercept_``, with any leading axes."""
        if self.single_output:
            return coef[..., 0], intercept[..., 0]
        return np.swapaxes(coef, -1, -2), intercept

    def moved_from(self, theta: Array, other: Coordinates) -> Array:
        """Return theta of other coordinates in these, which loses no digits to the user's units in between."""
        weights, centred_intercept = other.split(theta)
        moved = (self.mean - other.mean) @ (weights / other.scale[:, None])
        shifted = centred_intercept + (other.target_mean - self.target_mean) + moved
        return self.join(weights * (self.scale / other.scale)[:, None], shifted)

    def feature_means(self, moments: Moments) -> Array:
        """Return the means of z, of shape (n_features,): zeros for the data whose coordinates these are, if centred."""
        return (moments.mean_x - self.mean) / self.scale
