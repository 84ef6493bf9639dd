"""diagnose: the condition number of the data, its factors, and the steps it leads to.

The causes of the condition number of the raw descent are removed one after the other:

    L / mu = (raw / centred) (centred / standardised) (standardised) = offset x scale x collinearity.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from fssgd._descent.settings import Settings, as_float64
from fssgd._insight.advice import advice_for
from fssgd._insight.blame import columns_to_blame
from fssgd._insight.diagnosis import Diagnosis
from fssgd._moments.moments import Moments
from fssgd._path.gradient_path import GradientPath

LARGEST_RESOLVED = 1e12  # condition number up to which second moments tell the small eigenvalues


def diagnose(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    learning_rate: float | Literal["auto"] = "auto",
    tol: float = 1e-8,
    standardize: bool = False,
    fit_intercept: bool = True,
    alpha: float = 0.0,
) -> Diagnosis:
    """Say why gradient descent is slow on this data, which columns are to blame, and what to do.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or Moments
        The data, or :class:`~fssgd.Moments` of it.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Not with Moments.
    sample_weight : array-like of shape (n_samples,), default=None
        Not with Moments.
    learning_rate : float or "auto", default="auto"
        The fixed step in question, in 1 / (units of the Hessian of F). It belongs to the coordinates that
        ``standardize`` chooses: what is said of the standardised data beside the raw is at its own automatic step.
    tol : float, default=1e-8
        The tolerance that steps are counted to, as for :class:`~fssgd.LinearRegressorGD`.
    standardize : bool, default=False
        Describe the descent on the data as it is, beside the standardised, or the standardised alone.
    fit_intercept : bool, default=True
        As for :class:`~fssgd.LinearRegressorGD`.
    alpha : float >= 0, default=0.0
        As for :class:`~fssgd.LinearRegressorGD`.

    Returns
    -------
    Diagnosis

    Raises
    ------
    ValueError
        If the data or a parameter is not usable.
    TypeError
        If y is missing, or given beside Moments.

    Notes
    -----
    Arrays are read again for a QR factorisation where second moments do not resolve the smallest eigenvalues. For
    files that means ``Moments.from_table(..., accurate=True)``.

    References
    ----------
    Belsley, D. A., Kuh, E. and Welsch, R. E. (1980). Regression Diagnostics. Wiley. :doi:`10.1002/0471725153`

    Polyak, B. T. (1963). Gradient methods for the minimisation of functionals. USSR Computational
    Mathematics and Mathematical Physics 3(4), 864-878. :doi:`10.1016/0041-5553(63)90382-3`

    Examples
    --------
    >>> import numpy as np
    >>> from fssgd import diagnose
    >>> x = np.arange(100, step=0.1)
    >>> found = diagnose(x[:, None], x + 20 * np.sin(x / 10) + 15, learning_rate=1e-4, tol=1e-6)
    >>> print(found.advice[0])
    standardize=True brings the condition number from 1.33e+04 to 1 and the steps to tol=1e-06 from 174,690 to 1.
    >>> print(found.blame[1])
    'x0' is far from 0: its mean is 1.73 standard deviations away
    """
    settings = Settings(learning_rate, bool(standardize), bool(fit_intercept), alpha)
    if not (isinstance(tol, Real) and 0 <= tol < np.inf):
        raise ValueError(f"tol must be a non-negative number, got {tol!r}.")
    tol = as_float64("tol", tol)
    if isinstance(X, Moments):
        if y is not None or sample_weight is not None:
            raise TypeError("Moments have y and the weights in them: call diagnose(moments), or diagnose(X, y).")
        return _diagnosis(X, settings, tol)
    if y is None:
        raise TypeError("diagnose needs y: call diagnose(X, y), or diagnose(moments) with fssgd.Moments.")
    found = _diagnosis(Moments.from_arrays(X, y, sample_weight), settings, tol)
    # a direction that seems null may be one that the rounding of second moments hides
    lost = [one for one in (found, found.standardized) if one is not None and one.null_directions]
    if found.accurate or (found.condition_number < LARGEST_RESOLVED and not lost):
        return found
    return _diagnosis(Moments.from_arrays(X, y, sample_weight, accurate=True), settings, tol)


def _diagnosis(moments: Moments, settings: Settings, tol: float) -> Diagnosis:
    path = GradientPath.of(moments, settings)
    if settings.standardize:
        return _described(path, path, tol, 1.0, None)
    standardized_path = GradientPath.of(moments, replace(settings, standardize=True, learning_rate="auto"))
    centred = path
    if settings.fit_intercept:  # the same moments about means of 0: no offsets, the scales as they are
        mean = np.concatenate([np.zeros(moments.n_features), moments.mean_y])
        centred = GradientPath.of(replace(moments, sums=replace(moments.sums, mean=mean)), path.settings)
    standardized = _described(standardized_path, standardized_path, tol, 1.0, None)
    return _described(path, standardized_path, tol, _condition(centred, standardized_path), standardized)


def _described(
    path: GradientPath, standardized_path: GradientPath, tol: float, centred: float, standardized: Diagnosis | None
) -> Diagnosis:
    """Describe a descent; ``centred`` is its condition number without the offsets of the columns."""
    condition, collinearity = _condition(path, standardized_path), standardized_path.spectrum.condition_number
    factors = {"offset": 1.0, "scale": 1.0, "collinearity": collinearity}
    if path is not standardized_path:
        factors["scale"] = centred / collinearity
        factors["offset"] = condition / centred if centred < np.inf else 1.0
    h = path.eigenvalues[path.eigenvalues > 0]
    low, high = (float(h.min()), float(h.max())) if len(h) else (0.0, 0.0)
    best = 2.0 / (low + high) if high > 0 else 1.0
    described = Diagnosis(
        n_samples=path.moments.n_samples,
        n_features=path.moments.n_features,
        standardize=path.settings.standardize,
        fit_intercept=path.settings.fit_intercept,
        alpha=float(path.settings.alpha),
        eigenvalue_range=(low, high),
        null_directions=_null_directions(path),
        condition_number=condition,
        condition_factors=factors,
        learning_rate=path.learning_rate,
        max_learning_rate=2.0 / high if high > 0 else np.inf,
        best_learning_rate=best,
        tol=float(tol),
        steps=path.steps_to(tol),
        best_steps=path.with_step(best).steps_to(tol),
        steps_known=not path.unresolved or path.steps_to(tol) < np.inf,
        blame=columns_to_blame(path, standardized_path, factors),
        standardized=standardized,
        accurate=path.moments.accurate,
    )
    return replace(described, advice=advice_for(described))


def _condition(path: GradientPath, standardized_path: GradientPath) -> float:
    """Condition number; inf if more directions seem null than when standardised, which changes the rank of no data."""
    return path.spectrum.condition_number if _null_directions(path) <= _null_directions(standardized_path) else np.inf


def _null_directions(path: GradientPath) -> int:
    return path.moments.n_features + path.settings.fit_intercept - int((path.eigenvalues > 0).sum())
