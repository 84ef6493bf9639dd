"""Where a descent starts: at zero, at coefficients in the user's units, or where another descent has stopped.

A start is a function of the coordinates, which are not known before the data is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._descent.coordinates import Coordinates

Array = npt.NDArray[np.float64]
Start = Callable[[Coordinates], Array]  # to theta_0, of shape (n_parameters, n_outputs)


def at_zero(coordinates: Coordinates) -> Array:
    """Start at W = 0 and b = 0."""
    n_features, n_outputs = len(coordinates.scale), len(coordinates.target_mean)
    return coordinates.join(np.zeros((n_features, n_outputs)), -coordinates.target_mean)


def at_coefficients(coef: Any, intercept: Any) -> Start:
    """Start at ``coef_init`` and ``intercept_init`` as the user gives them, None for zeros.

    Parameters
    ----------
    coef, intercept : array-like or None
        Of the shapes of ``coef_`` and ``intercept_``.

    Returns
    -------
    callable
        Raises ValueError if the shapes do not fit the data, or there is an intercept that is not fitted.
    """

    def start(coordinates: Coordinates) -> Array:
        single, shape = coordinates.single_output, (len(coordinates.scale), len(coordinates.target_mean))
        weights = _of_shape("coef_init", coef, shape[:1] if single else shape[::-1], shape)
        level = _of_shape("intercept_init", intercept, () if single else shape[1:], shape[1:])
        if level.any() and not coordinates.fit_intercept:
            raise ValueError("intercept_init was given, but fit_intercept=False: drop one of the two.")
        return coordinates.from_user(weights, level)

    return start


def at_iterate(theta: Array, coordinates: Coordinates) -> Start:
    """Start where another descent has stopped.

    Parameters
    ----------
    theta : ndarray of shape (n_parameters, n_outputs)
    coordinates : Coordinates
        Those of the other descent.

    Returns
    -------
    callable
        Raises ValueError if the shapes do not fit the data.
    """

    def start(new: Coordinates) -> Array:
        before, after = ((len(one.scale), len(one.target_mean)) for one in (coordinates, new))
        if before != after:
            raise ValueError(
                f"warm_start cannot continue from {before[0]} features and {before[1]} outputs to {after[0]} and "
                f"{after[1]}: fit a new estimator, or set warm_start=False."
            )
        return new.moved_from(theta, coordinates)

    return start


def _of_shape(name: str, value: Any, expected: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Return a starting value, given in the shape of the fitted attribute, in ``shape``."""
    if value is None:
        return np.zeros(shape)
    array = np.asarray(value, dtype=np.float64)
    if array.shape != expected or not np.isfinite(array).all():
        found = f"shape {array.shape}" if array.shape != expected else "a value that is not finite"
        raise ValueError(
            f"{name} has {found}: expected finite numbers of shape {expected}, that of the fitted attribute."
        )
    return array.T.reshape(shape)
