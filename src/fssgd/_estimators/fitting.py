"""One descent from prepared data to the fitted attributes of an estimator.

While min(n_samples, n_features) is small all that a descent needs follows from the moments. Beyond that the columns
are measured one by one and the curvature is bounded from products with the rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from fssgd._descent.coordinates import Coordinates
from fssgd._descent.curvature_bound import curvature_bound
from fssgd._descent.settings import Settings, as_float64
from fssgd._descent.starts import Start, at_zero
from fssgd._descent.tolerance import ToleranceReference
from fssgd._estimators.messages import accuracy_message, convergence_message, divergence_error
from fssgd._moments.moments import Moments
from fssgd._path.gradient_path import GradientPath
from fssgd._rows.source import Source, WeightedRows
from fssgd._support.words import column_names
from fssgd.backends import Backend, Monitor, Problem, Solution, Status
from fssgd.backends._solution_check import checked_solution

Array = npt.NDArray[np.float64]
MAX_DECOMPOSITION_SIZE = 4096
HALF_THE_DIGITS = 1e-8


@dataclass(frozen=True, eq=False)
class Preparation:
    """What has to be known of the data before a descent takes its first step.

    Parameters
    ----------
    settings : Settings
    coordinates : Coordinates
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

    settings: Settings
    coordinates: Coordinates
    start: Array
    reference: ToleranceReference
    curvature: float
    steepest: Array
    path: GradientPath | None = None
    rows: WeightedRows | None = None

    def problem(self, max_iter: float, tol: float | None, dtype: Any) -> Problem:
        """Return the problem that a backend solves."""
        eps, tol = float(np.finfo(dtype).eps), None if tol is None else as_float64("tol", tol)
        return Problem(
            start=self.start,
            learning_rate=self.settings.step(self.curvature),
            max_iter=max_iter if max_iter == np.inf else int(max_iter),
            threshold=None if tol is None else self.reference.threshold(tol, self.curvature, eps),
            alpha=self.settings.alpha,
            fit_intercept=self.settings.fit_intercept,
            curvature=self.curvature,
            target_size=float(np.sqrt(self.reference.loss)),
            dtype=np.dtype(dtype),
            rows=self.rows,
            path=self.path,
        )


def is_decomposable(source: Source) -> bool:
    """Whether the closed form is the default for this data."""
    return source.decomposition_size <= MAX_DECOMPOSITION_SIZE


def prepare_from_moments(
    moments: Moments,
    settings: Settings,
    start: Start = at_zero,
    *,
    single_output: bool | None = None,
    source: Source | None = None,
) -> Preparation:
    """Prepare a descent by a decomposition; ``source`` is the data of the moments, if it is at hand."""
    path = GradientPath.of(moments, settings, start=start, single_output=single_output)
    spectrum, coordinates = path.spectrum, path.coordinates
    rows = None if source is None else source.rows(coordinates)
    return Preparation(
        settings, coordinates, spectrum.start, path.reference, spectrum.largest, spectrum.steepest, path, rows
    )


def prepare_from_rows(source: Source, settings: Settings, start: Start, names: Any = None) -> Preparation:
    """Prepare a descent by the statistics of each column, and products with the rows for the bound on L."""
    columns, p, dtype = source.columns(names), source.shape[1], source.dtype
    mean_y, variance_y = columns.mean[p:], columns.variance[p:]
    coordinates = Coordinates.of_columns(
        columns.mean[:p], columns.variance[:p], mean_y, settings, single_output=source.single_output
    )
    rows, penalty = source.rows(coordinates), settings.penalty(p)
    _, gradient = rows.squared_residual_and_gradient(np.zeros(coordinates.shape, dtype=dtype))

    def hessian(vector: Array) -> Array:
        product = rows.gram_matvec(vector.astype(dtype)[:, None])[:, 0]
        return np.asarray(2.0 * (product + penalty * vector))

    curvature, steepest = curvature_bound(hessian, len(penalty))
    cross = gradient[:p].astype(np.float64)
    reference = ToleranceReference.of(cross, variance_y, mean_y, settings.fit_intercept)
    theta = start(coordinates)
    reference.require_in_range(curvature, theta, coordinates)
    return Preparation(settings, coordinates, theta, reference, curvature, steepest, None, rows)


def never_stop(k: int, theta: Any) -> bool:
    """Monitor a descent that nobody watches."""
    return False


def fit_descent(
    model: Any,
    preparation: Preparation,
    problem: Problem,
    backend: Backend,
    monitor: Monitor = never_stop,
    tol: float | None = None,
) -> None:
    """Let the backend solve the problem, and give the estimator its fitted attributes.

    Parameters
    ----------
    model : estimator
    preparation : Preparation
    problem : Problem
        From :meth:`Preparation.problem`.
    backend : Backend
    monitor : callable, default=never_stop
    tol : float, default=None
        As the user gave it, for messages.

    Raises
    ------
    DivergenceError
        If the loss rose by more than rounding explains.
    ValueError
        If the coefficients leave the range of the dtype, or the backend of another package returned something wrong.

    Warns
    -----
    ConvergenceWarning, LinAlgWarning
        As :meth:`fssgd.LinearRegressorGD.fit_moments` says.
    """
    solution = backend.solve(problem, monitor)
    if not type(backend).__module__.startswith("fssgd."):
        solution = checked_solution(solution, problem, backend.name)
    if solution.status is Status.DIVERGED:
        feature = _steepest_feature(model, preparation)
        raise divergence_error(
            problem, solution, feature, exact=preparation.path is not None, standardize=preparation.settings.standardize
        )
    with np.errstate(over="ignore"):
        fitted = fitted_attributes(preparation.coordinates, solution.theta, problem.dtype)
    if not (np.isfinite(fitted["coef_"]).all() and np.isfinite(fitted["intercept_"]).all()):
        raise ValueError(
            f"Coefficients leave the range of {problem.dtype}: change the units of X or y, or give X as float64."
        )
    fitted |= {
        "n_iter_": solution.n_iter,
        "loss_": solution.loss,
        "learning_rate_": problem.learning_rate,
        "converged_": solution.status is Status.CONVERGED,
        "backend_": backend.name,
    }
    for name, value in fitted.items():
        setattr(model, name, value)
    model._iterate = np.asarray(solution.theta, dtype=np.float64), preparation.coordinates
    _keep_path(model, solution, preparation, problem)
    if solution.status is Status.MAX_ITER and tol is not None:
        text = convergence_message(problem, solution, solution.path or preparation.path, tol)
        warnings.warn(text, ConvergenceWarning, stacklevel=4)
    if problem.rows is None and solution.path is not None:
        rounding = solution.path.rounding_at(solution.n_iter)
        if rounding > HALF_THE_DIGITS:
            warnings.warn(accuracy_message(rounding, solution.n_iter), LinAlgWarning, stacklevel=4)


def fitted_attributes(coordinates: Coordinates, theta: Any, dtype: Any) -> dict[str, Any]:
    """Return what an estimator that stopped at theta has: coefficients and coordinates."""
    theta = np.asarray(theta, dtype=np.result_type(theta, np.float64))  # extended precision stays until it is unscaled
    coef, intercept = coordinates.as_fitted(*coordinates.to_user(theta))
    weights, centred_intercept = coordinates.split(theta)
    weights, level = coordinates.as_fitted(weights, centred_intercept + coordinates.target_mean)
    return {
        "coef_": np.ascontiguousarray(coef, dtype=dtype),
        "intercept_": intercept.astype(dtype)[()],
        "scaled_coef_": np.ascontiguousarray(weights, dtype=np.float64),
        "scaled_intercept_": level.astype(np.float64)[()],
        "mean_": coordinates.mean,
        "scale_": coordinates.scale,
    }


def _keep_path(model: Any, solution: Solution, preparation: Preparation, problem: Problem) -> None:
    """Keep what other iterates can be computed from: moments and settings, or the losses that were recorded."""
    for name in ("moments_", "_path", "_path_of", "_loss_curve"):  # of an earlier fit
        vars(model).pop(name, None)
    if solution.loss_curve is not None:
        model._loss_curve = solution.loss_curve
    if solution.path is not None:
        model.moments_, model._path = solution.path.moments, solution.path
        model._path_of = replace(solution.path.settings, learning_rate=problem.learning_rate), preparation.start


def _steepest_feature(model: Any, preparation: Preparation) -> str:
    """Return the name of the parameter with the largest entry in the steepest direction."""
    names = [*column_names(getattr(model, "feature_names_in_", None), model.n_features_in_), "intercept"]
    return names[int(np.argmax(np.abs(preparation.steepest)))]
