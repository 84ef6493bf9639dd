"""What has to be known of the data before a descent begins: its scaling, its step, its tolerance.

While min(n_samples, n_features) is small all of it follows from the moments. Beyond that the columns are
measured one by one and the curvature is bounded from products with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fssgd._blocks import assert_values_finite, canonical, check_resolved
from fssgd._columns import column_statistics, curvature_bound
from fssgd._moments import Moments
from fssgd._path import GradientPath, Locate
from fssgd._problem import Rows
from fssgd._reference import Reference
from fssgd._scaling import Scaling
from fssgd._settings import Settings

Array = npt.NDArray[np.float64]
LIMIT = 4096


@dataclass(frozen=True, eq=False)
class Survey:
    """A descent's coordinates, and its geometry.

    Parameters
    ----------
    scaling : Scaling
    level : ndarray of shape (n_outputs,)
        What b is counted from.
    start : ndarray of shape (n_parameters, n_outputs)
        theta_0.
    reference : Reference
    curvature : float
        L, or an upper bound within a factor 1.12 of it.
    steepest : ndarray of shape (n_parameters,)
        Its eigenvector.
    path : GradientPath or None
        The closed form, where the data was small enough for one.
    rows : Rows or None
        The data, if there is more than its moments.
    """

    scaling: Scaling
    level: Array
    start: Array
    reference: Reference
    curvature: float
    steepest: Array
    path: GradientPath | None = None
    rows: Rows | None = None


def is_decomposable(X: Any) -> bool:
    """Whether the closed form is the default for X.

    The rows of a wide sparse matrix would have to be made dense, so they are stepped over.
    """
    return bool((X.shape[1] if sp.issparse(X) else min(X.shape)) <= LIMIT)


def survey_moments(
    moments: Moments,
    settings: Settings,
    locate: Locate | None,
    single: bool,
    rows: tuple[Any, Array, Array | None] | None = None,
) -> Survey:
    """Read everything off the moments; ``rows`` are X, y and the weights, if they are at hand."""
    path = GradientPath.of(moments, settings, start=locate, single=single)
    spectrum, data = path.spectrum, None
    if rows is not None:
        X, y, weight = rows
        if weight is not None and not weight.all():
            X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        data = Rows(X, y, weight, path.scaling, path.level, settings.fit_intercept)
    return Survey(
        path.scaling, path.level, spectrum.start, path.reference, spectrum.largest, spectrum.steepest, path, data
    )


def survey_rows(
    X: Any, y: Array, weight: Array | None, settings: Settings, locate: Locate, names: Any = None
) -> Survey:
    """Measure the columns, and bound the curvature by products with the rows."""
    X = canonical(X)
    kept = np.ones(len(y), dtype=bool) if weight is None else weight > 0
    if not kept.all():
        assert_values_finite(X[~kept], y[~kept])
        X, y, weight = X[kept], y[kept], weight[kept] if weight is not None else None
    of_x, of_y = column_statistics(X, weight), column_statistics(y, weight)
    mean, variance, constant = (np.concatenate(pair) for pair in zip(of_x, of_y, strict=True))
    check_resolved(mean, variance, constant, X, y, names)
    (mean, variance, _), (mean_y, variance_y, _) = of_x, of_y
    scaling, level = Scaling.of_columns(mean, variance, settings), mean_y if settings.fit_intercept else 0.0 * mean_y
    rows = Rows(X, y, weight, scaling, level, settings.fit_intercept)
    n_features, dtype = X.shape[1], X.dtype
    slope = np.linalg.norm(rows.backward(rows.targets)[:n_features].astype(np.float64))
    loss = float(variance_y.sum())
    if not settings.fit_intercept or loss == 0.0:
        loss += float(mean_y @ mean_y)
    penalty = np.full(n_features + settings.fit_intercept, 2.0 * settings.alpha)
    penalty[n_features:] = 0.0

    def hessian(vector: Array) -> Array:
        product = rows.backward(rows.forward(vector.astype(dtype)[:, None]))[:, 0]
        return np.asarray(2.0 * product + penalty * vector)

    curvature, steepest = curvature_bound(hessian, len(penalty))
    start = locate(scaling, level)
    reference = Reference(2.0 * float(slope), loss).checked(curvature)
    return Survey(scaling, level, start, reference, curvature, steepest, None, rows)
