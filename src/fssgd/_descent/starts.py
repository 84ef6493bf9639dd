"""Where a descent starts: at zero, at coefficients in the user's units, or where another descent has come to.

A start is a function of the scaling and of the level that b is counted from, as neither is known before the data is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._descent.coordinates import Scaling
from fssgd._descent.settings import Settings

Array = npt.NDArray[np.float64]
Start = Callable[[Scaling, Array], Array]  # to theta_0, of shape (n_parameters, n_outputs)


def at_zero(settings: Settings) -> Start:
    """Start at W = 0 and b = 0."""

    def start(scaling: Scaling, level: Array) -> Array:
        return _theta(np.zeros((len(scaling.scale), len(level))), -level, settings)

    return start


def at_coefficients(coef: Any, intercept: Any, settings: Settings, *, single_output: bool) -> Start:
    """Start at ``coef_init`` and ``intercept_init`` as the user gives them, None for zeros.

    Parameters
    ----------
    coef, intercept : array-like or None
        Of the shapes of ``coef_`` and ``intercept_``.
    settings : Settings
    single_output : bool
        Whether y is 1-D.

    Returns
    -------
    callable
        Raises ValueError if the shapes do not fit the data, or there is an intercept that is not fitted.
    """

    def start(scaling: Scaling, level: Array) -> Array:
        shape = len(scaling.scale), len(level)
        weights = _checked("coef_init", coef, shape[:1] if single_output else shape[::-1], shape)
        height = _checked("intercept_init", intercept, () if single_output else shape[1:], shape[1:])
        if height.any() and not settings.fit_intercept:
            raise ValueError("intercept_init was given, but fit_intercept=False: drop one of the two.")
        return _theta(*scaling.rescale(weights, height - level), settings)

    return start


def at_iterate(weights: Array, height: Array, level: Array, scaling: Scaling, settings: Settings) -> Start:
    """Start where another descent has come to, which loses no digits to the user's units.

    Parameters
    ----------
    weights, height : ndarray of shape (n_features, n_outputs), (n_outputs,)
        The iterate, b counted from ``level``.
    level : ndarray of shape (n_outputs,)
    scaling : Scaling
        That of the other descent.
    settings : Settings

    Returns
    -------
    callable
        Raises ValueError if the shapes do not fit the data.
    """

    def start(new: Scaling, new_level: Array) -> Array:
        shape = len(new.scale), len(new_level)
        if weights.shape != shape:
            raise ValueError(
                f"warm_start cannot go on from {weights.shape[0]} features and {weights.shape[1]} outputs to "
                f"{shape[0]} and {shape[1]}: fit a new estimator, or set warm_start=False."
            )
        moved = (new.mean - scaling.mean) @ (weights / scaling.scale[:, None])
        return _theta(weights * (new.scale / scaling.scale)[:, None], height + (level - new_level) + moved, settings)

    return start


def _theta(weights: Array, height: Array, settings: Settings) -> Array:
    return np.concatenate([weights, height[None]]) if settings.fit_intercept else weights


def _checked(name: str, value: Any, expected: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """A starting value of the shape the fitted attribute has, as (n_features, n_outputs) or (n_outputs,)."""
    if value is None:
        return np.zeros(shape)
    array = np.asarray(value, dtype=np.float64)
    if array.shape != expected or not np.isfinite(array).all():
        found = f"shape {array.shape}" if array.shape != expected else "a value that is not finite"
        raise ValueError(
            f"{name} has {found}: expected finite numbers of shape {expected}, that of the fitted attribute."
        )
    return array.T.reshape(shape)
