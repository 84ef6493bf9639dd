"""Why a descent is slow: the eigenvalues of its Hessian, and the columns they come from.

The condition number of the raw descent is taken apart by taking its causes away one after the other:

    L / mu = (raw / centred) (centred / standardised) (standardised) = offset x scale x collinearity.

A column is to blame for a factor of 10 or more: by its variance against the intercept's curvature, by
(1 + (mean / standard deviation)^2)^2, which is what the offset of one column alone multiplies the condition number
by, or by its variance inflation factor H_jj (H^-1)_jj after standardising.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fssgd._findings import Blame, Diagnosis
from fssgd._moments import Moments
from fssgd._path import GradientPath
from fssgd._settings import Settings

Array = npt.NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
RESOLVED = 1e12  # condition number up to which second moments tell the small eigenvalues
WORTH_BLAME = 10.0
PARTNER = 0.5  # of the largest partial correlation


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
    if not (isinstance(tol, (int, float)) and 0 <= tol < np.inf):
        raise ValueError(f"tol must be a non-negative number, got {tol!r}.")
    if isinstance(X, Moments):
        if y is not None or sample_weight is not None:
            raise TypeError("Moments have y and the weights in them: call diagnose(moments), or diagnose(X, y).")
        return _diagnosis(X, settings, tol)
    if y is None:
        raise TypeError("diagnose needs y: call diagnose(X, y), or diagnose(moments) with fssgd.Moments.")
    found = _diagnosis(Moments.from_arrays(X, y, sample_weight), settings, tol)
    if found.accurate or found.condition_number < RESOLVED:
        return found
    return _diagnosis(Moments.from_arrays(X, y, sample_weight, accurate=True), settings, tol)


def _diagnosis(moments: Moments, settings: Settings, tol: float) -> Diagnosis:
    path = GradientPath.of(moments, settings)
    if settings.standardize:
        return _described(path, path, tol, 1.0, None)
    even = GradientPath.of(moments, replace(settings, standardize=True, learning_rate="auto"))
    centred = path
    if settings.fit_intercept:
        mean = np.concatenate([np.zeros(moments.n_features), moments.mean_y])
        centred = GradientPath.of(replace(moments, sums=replace(moments.sums, mean=mean)), path.settings)
    return _described(path, even, tol, _condition(centred, even), _described(even, even, tol, 1.0, None))


def _described(
    path: GradientPath, even: GradientPath, tol: float, centred: float, standardized: Diagnosis | None
) -> Diagnosis:
    """Describe a descent; ``even`` is the standardised one, ``centred`` the condition number without offsets."""
    condition, settled = _condition(path, even), even.spectrum.condition_number
    factors = {"offset": 1.0, "scale": 1.0, "collinearity": settled}
    if path is not even:
        factors["scale"] = centred / settled
        factors["offset"] = condition / centred if centred < np.inf else 1.0
    h = path.eigenvalues[path.eigenvalues > 0]
    low, high = (float(h.min()), float(h.max())) if len(h) else (0.0, 0.0)
    best = 2.0 / (low + high) if high > 0 else 1.0
    return Diagnosis(
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
        best_steps=replace(path, learning_rate=best).steps_to(tol),
        blame=(*_constant(path), *_scale(path, factors), *_offset(path, factors), *_collinearity(even)),
        standardized=standardized,
        accurate=path.moments.accurate,
    )


def _condition(path: GradientPath, even: GradientPath) -> float:
    """Condition number; inf if more directions seem null than when standardised, which changes the rank of no data."""
    return path.spectrum.condition_number if _null_directions(path) <= _null_directions(even) else np.inf


def _null_directions(path: GradientPath) -> int:
    return path.moments.n_features + path.settings.fit_intercept - int((path.eigenvalues > 0).sum())


def _names(moments: Moments) -> list[str]:
    names = moments.feature_names
    return [f"x{j}" for j in range(moments.n_features)] if names is None else list(names)


def _worst_first(names: list[str], reason: Any, values: Array, weights: Array) -> list[Blame]:
    """One Blame for each column whose weight is worth it, heaviest first."""
    order = [j for j in np.argsort(-weights, kind="stable") if weights[j] >= WORTH_BLAME]
    return [Blame((names[j],), reason, float(values[j])) for j in order]


def _constant(path: GradientPath) -> list[Blame]:
    moments = path.moments
    if not path.settings.fit_intercept:  # then a constant column is an intercept
        return []
    names = _names(moments)
    return [Blame((names[j],), "constant", float(moments.mean_x[j])) for j in np.flatnonzero(moments.variance_x == 0)]


def _scale(path: GradientPath, factors: dict[str, float]) -> list[Blame]:
    """Columns whose curvature is far from the intercept's, or without one from the middle of the columns."""
    moments, curvature = path.moments, path.moments.variance_x
    if not path.settings.fit_intercept:
        curvature = curvature + moments.mean_x**2
    seen = curvature > 0
    if factors["scale"] < WORTH_BLAME or not seen.any():
        return []
    middle = 1.0 if path.settings.fit_intercept else float(np.median(curvature[seen]))
    apart = np.exp(np.abs(np.log(np.where(seen, curvature / middle, 1.0))))
    return _worst_first(_names(moments), "scale", np.sqrt(curvature), apart)


def _offset(path: GradientPath, factors: dict[str, float]) -> list[Blame]:
    """Columns far from 0, where that matters: raw, or without an intercept to centre them by."""
    moments, fit_intercept = path.moments, path.settings.fit_intercept
    matters = factors["offset"] if fit_intercept else path.spectrum.condition_number
    if matters < WORTH_BLAME or moments.n_features == 1 and not fit_intercept:
        return []
    spread = np.sqrt(moments.variance_x)
    ratio = np.divide(moments.mean_x, spread, out=np.zeros_like(spread), where=spread > 0)
    return _worst_first(_names(moments), "offset", ratio, (1.0 + ratio**2) ** 2)


def _collinearity(path: GradientPath) -> list[Blame]:
    """Columns of a standardised descent that others determine, each group of columns once."""
    p, spectrum = path.moments.n_features, path.spectrum
    if path.moments.n_samples <= p and not path.settings.alpha:  # then any column is determined by the others
        return []
    reached = spectrum.eigenvalues > 0
    vectors, h = spectrum.vectors[:p, reached], spectrum.eigenvalues[reached]
    null = np.eye(p) - vectors @ vectors.T  # projects on what is determined exactly
    inverse = (vectors / h) @ vectors.T
    moments = path.moments
    empty = (moments.variance_x == 0) & (path.settings.fit_intercept | (moments.mean_x == 0))
    exact = (null.diagonal() > np.sqrt(EPS)) & ~empty
    inflation = np.where(exact, np.inf, inverse.diagonal() * ((vectors * h) @ vectors.T).diagonal())
    inflation[empty] = 0.0
    names, found, seen = _names(path.moments), [], set()
    for j in np.argsort(-inflation, kind="stable"):
        if inflation[j] < WORTH_BLAME:
            break
        shared = null if exact[j] else inverse
        others = (exact if exact[j] else ~empty) & (np.arange(p) != j)
        if not others.any():
            continue
        together = np.zeros(p)  # partial correlations, but for a factor of column j
        together[others] = np.abs(shared[j, others]) / np.sqrt(shared.diagonal()[others])
        partners = [i for i in np.argsort(-together, kind="stable") if together[i] >= PARTNER * together.max()]
        group = frozenset([int(j), *map(int, partners)])
        if group not in seen:
            seen.add(group)
            found.append(Blame((names[j], *(names[i] for i in partners)), "collinearity", float(inflation[j])))
    return found
