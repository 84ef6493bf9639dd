"""What has to be known of the data before a descent begins: its scaling, its step, its tolerance.

While min(n_samples, n_features) is small all of it follows from the moments. Beyond that the columns are
measured one by one and the curvature is bounded from products with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._descent.coordinates import Scaling
from fssgd._descent.curvature_bound import curvature_bound
from fssgd._descent.settings import Settings
from fssgd._descent.starts import Start
from fssgd._descent.tolerance import ToleranceReference
from fssgd._moments.moments import Moments
from fssgd._path.gradient_path import GradientPath
from fssgd._rows.source import Source, WeightedRows

Array = npt.NDArray[np.float64]
LIMIT = 4096


@dataclass(frozen=True, eq=False)
class Preparation:
    """A descent's coordinates, and its geometry.

    Parameters
    ----------
    scaling : Scaling
    level : ndarray of shape (n_outputs,)
        What b is counted from.
    start : ndarray of shape (n_parameters, n_outputs)
        theta_0.
    reference : ToleranceReference
    curvature : float
        L, or an upper bound within a factor 1.12 of it.
    steepest : ndarray of shape (n_parameters,)
        Its eigenvector.
    path : GradientPath or None
        The closed form, where the data was small enough for one.
    rows : WeightedRows or None
        The data, if there is more than its moments.
    """

    scaling: Scaling
    level: Array
    start: Array
    reference: ToleranceReference
    curvature: float
    steepest: Array
    path: GradientPath | None = None
    rows: WeightedRows | None = None


def is_decomposable(source: Source) -> bool:
    """Whether the closed form is the default for this data."""
    return source.decomposition_size <= LIMIT


def prepare_from_moments(
    moments: Moments, settings: Settings, start: Start | None, single_output: bool, source: Source | None = None
) -> Preparation:
    """Read everything off the moments; ``source`` is the data they are of, if it is at hand."""
    path = GradientPath.of(moments, settings, start=start, single_output=single_output)
    spectrum = path.spectrum
    rows = None if source is None else source.rows(path.scaling, path.level, settings.fit_intercept)
    return Preparation(
        path.scaling, path.level, spectrum.start, path.reference, spectrum.largest, spectrum.steepest, path, rows
    )


def prepare_from_rows(source: Source, settings: Settings, start: Start, names: Any = None) -> Preparation:
    """Measure the columns, and bound the curvature by products with the rows."""
    columns, n_features, dtype = source.columns(names), source.shape[1], source.dtype
    mean, variance = columns.mean[:n_features], columns.variance[:n_features]
    mean_y, variance_y = columns.mean[n_features:], columns.variance[n_features:]
    scaling, level = Scaling.of_columns(mean, variance, settings), mean_y if settings.fit_intercept else 0.0 * mean_y
    rows = source.rows(scaling, level, settings.fit_intercept)
    _, slope = rows.squared_residual_and_gradient(
        np.zeros((n_features + settings.fit_intercept, len(level)), dtype=dtype)
    )
    loss = float(variance_y.sum())
    if not settings.fit_intercept or loss == 0.0:
        loss += float(mean_y @ mean_y)
    penalty = np.full(n_features + settings.fit_intercept, 2.0 * settings.alpha)
    penalty[n_features:] = 0.0

    def hessian(vector: Array) -> Array:
        product = rows.gram_matvec(vector.astype(dtype)[:, None])[:, 0]
        return np.asarray(2.0 * product + penalty * vector)

    curvature, steepest = curvature_bound(hessian, len(penalty))
    gradient = 2.0 * float(np.linalg.norm(slope[:n_features].astype(np.float64)))
    theta = start(scaling, level)
    reference = ToleranceReference(gradient, loss).require_in_range(curvature, theta, settings.fit_intercept)
    return Preparation(scaling, level, theta, reference, curvature, steepest, None, rows)
