"""Standardising and its inverse: one pair, written and tested together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fssgd._descent.settings import Settings

Array = npt.NDArray[np.float64]
HUGE = 1e290  # what has grown past it counts as infinite


@dataclass(frozen=True, eq=False)
class Scaling:
    """The affine map ``z = (x - mean) / scale`` applied to each feature.

    Parameters
    ----------
    mean, scale : ndarray of shape (n_features,)
        In the units of the features. A constant column has scale 1.
    """

    mean: Array
    scale: Array

    @classmethod
    def of_columns(cls, mean: Array, variance: Array, settings: Settings) -> Scaling:
        """Choose the map for columns of this mean and population variance.

        The identity unless ``standardize``; without an intercept columns are not centred; a column
        of variance exactly 0 is constant and has scale 1.
        """
        if not settings.standardize:
            return cls(np.zeros(len(mean)), np.ones(len(mean)))
        scale = np.sqrt(variance)
        scale[scale == 0] = 1.0
        return cls(mean if settings.fit_intercept else np.zeros(len(mean)), scale)

    def unscale(self, weights: Array, level: Array) -> tuple[Array, Array]:
        """Take W of shape (n_features, n_outputs) and b to the user's units."""
        coef = weights / self.scale[:, None]
        if np.isfinite(coef).all():
            return coef, level - self.mean @ coef
        with np.errstate(over="ignore"):  # an unstable descent may overflow, but not to NaN
            return coef, np.clip(level, -HUGE, HUGE) - self.mean @ np.clip(coef, -HUGE, HUGE)

    def rescale(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Take coefficients and intercept in the user's units to W and b."""
        return coef * self.scale[:, None], intercept + self.mean @ coef
