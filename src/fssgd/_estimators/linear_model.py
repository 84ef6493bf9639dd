"""The base class of both estimators: predictions, path, summary and files of a fitted linear model."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from numbers import Integral, Rational
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from fssgd._descent.coordinates import Coordinates
from fssgd._descent.settings import Settings, as_float64
from fssgd._estimators.model_file import ARRAYS, read_model, write_model
from fssgd._insight.summary import Summary, summarise
from fssgd._moments.checks import as_floats, check_arrays, check_weight, dtypes_read, within_float64
from fssgd._path.gradient_path import GradientPath
from fssgd._rows.arrays import ArraySource
from fssgd._rows.dask_arrays import check_shape, dask_array, example_of, gathered, predict_lazily
from fssgd._support.optional import is_dask
from fssgd._support.saved_files import why
from fssgd._support.sklearn_private import validate_parameter_constraints

Array = npt.NDArray[np.float64]
CURVE_LIMIT = 10**6
SAVED = (*ARRAYS, "n_iter", "learning_rate", "loss", "converged", "backend")


class _NoMomentsError(ValueError, AttributeError):
    """A method has nothing to go on from; as NotFittedError does, it passes for a missing attribute."""


class after_closed_form:  # noqa: N801 - a decorator
    """Method that a model which keeps no moments of its data does not have."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        """Bind the method, or say what to do instead."""
        if model is None:
            return self.method
        if hasattr(model, "coef_") and not hasattr(model, "moments_"):
            raise _NoMomentsError(
                f"{self.method.__name__} cannot continue from a model that keeps no moments of its data (backend "
                f"{model.backend_!r}, or loaded from JSON): fit with backend='spectral', or begin a new estimator."
            )
        return MethodType(self.method, model)


def check_features(model: Any, X: Any, *, reset: bool) -> None:
    """Learn, or compare, number and names of the columns of a Dask collection."""
    validate_data(model, example_of(X), reset=reset, skip_check_array=True)


class LinearModel(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Predictions, path and files of a linear model."""

    def predict(self, X: Any) -> Any:
        """Predict ``X @ coef_ + intercept_``.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            A Dask array in the partitions of X, not computed yet, for a Dask array or DataFrame; values that are not
            finite raise when it is.

        Raises
        ------
        ValueError
            If X is not finite, or does not have the columns of the fit.
        """
        check_is_fitted(self)
        check_arrays(X)
        if is_dask(X):
            array = dask_array(X, "X")
            check_shape(array, "X", (2,))
            check_features(self, X, reset=False)
            return predict_lazily(array, self.coef_, self.intercept_)
        with within_float64("X"):
            X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], reset=False)
            return np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_)

    def predict_table(self, table: Any) -> Any:
        """Predict where the data is: in the engine behind a table, which adds the column when it is asked for it.

        Parameters
        ----------
        table : ibis.Table or pyspark.sql.DataFrame
            With the columns ``feature_names_in_``, in any order and among others.

        Returns
        -------
        ibis.Table or pyspark.sql.DataFrame
            Lazy: all columns of the table, and ``"prediction"``; for an output of shape (n_samples, n_outputs),
            ``"prediction_0"``, ``"prediction_1"`` and so on. Where a feature is null the prediction is, too.

        Raises
        ------
        ValueError
            If the model knows no names of features, a feature is not there or not numeric, or the table has a column
            of the name to add.
        TypeError
            If no engine is known to work on this kind of table.

        Examples
        --------
        >>> import pandas as pd
        >>> from fssgd import LinearRegressorGD
        >>> model = LinearRegressorGD().fit(pd.DataFrame({"rooms": [1.0, 2.0, 4.0]}), [2.0, 3.0, 5.0])
        >>> model.predict_table([[3.0]])
        Traceback (most recent call last):
        TypeError: predict_table is for tables that an engine works on (pyspark, ibis), got a builtins.list: pass its
        columns feature_names_in_ to predict.
        """
        check_is_fitted(self)
        from fssgd._moments.table_registry import add_predictions

        if not hasattr(self, "feature_names_in_"):
            raise ValueError(
                "predict_table finds columns by their names, and this model was fitted to data without any: fit a "
                "DataFrame, or Moments.from_table."
            )
        single_output = self.coef_.ndim == 1
        names = ["prediction"] if single_output else [f"prediction_{j}" for j in range(len(self.coef_))]
        features = list(self.feature_names_in_)
        return add_predictions(table, features, np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_), names)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2, centred: the share of the variation of y about its mean that the predictions explain.

        It is centred without an intercept, too, where it may well be negative and ``summary().r_squared`` is not
        centred. Of several outputs it is the mean of the R^2 of each.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
        y : array-like or Dask collection of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Gathered, like y and the predictions, if X is a Dask collection.

        Returns
        -------
        float
        """
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))
        predicted, y, sample_weight = gathered(predictions=self.predict(X), y=y, sample_weight=sample_weight)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    @property
    def loss_curve_(self) -> Array:
        """F at iterates 0 to ``n_iter_``."""
        check_is_fitted(self)
        curve = vars(self).get("_loss_curve")
        if curve is None:
            if self.n_iter_ > CURVE_LIMIT:
                raise AttributeError(
                    f"loss_curve_ would have {self.n_iter_} + 1 entries: use path_.loss(k) for the k you need."
                )
            curve = self.path_.loss(np.arange(self.n_iter_ + 1))
        return np.asarray(curve)

    @property
    def path_(self) -> GradientPath:
        """Every other iterate, after a fit in closed form."""
        check_is_fitted(self)
        if not hasattr(self, "moments_"):
            raise AttributeError(
                "path_, and a loss_curve_ that was not recorded, follow a closed-form fit only: use backend='spectral'."
            )
        path: GradientPath | None = vars(self).get("_path")
        if path is None:  # a pickle leaves it out: it follows from the moments
            settings, theta = vars(self)["_path_of"]
            path = GradientPath.of(self.moments_, settings, start=lambda _: theta, single_output=self.coef_.ndim == 1)
            self._path = path
        return path

    @after_closed_form
    def summary(self, level: float = 0.95) -> Summary:
        """Standard errors, t and p values and confidence intervals of the coefficients, after ``n_iter_`` steps.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Confidence level of the intervals.

        Returns
        -------
        Summary
            Prints as a table; its attributes are the numbers.

        Raises
        ------
        ValueError
            After a fit by a stepping backend, which keeps no moments; if the fit uses up all degrees of freedom; or if
            ``level`` is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from fssgd import LinearRegressorGD
        >>> x = np.arange(6.0)[:, None]
        >>> model = LinearRegressorGD(max_iter=np.inf, tol=None).fit(x, [1.0, 3.1, 4.9, 7.2, 8.8, 11.0])
        >>> print(model.summary())
        Least squares by gradient descent: the limit of step size 0.5
        rows                           6    degrees of freedom             2
        sigma                   0.153994    residual                       4
        R-squared, centred      0.998623    penalty                        0
        <BLANKLINE>
                         coef     std err           t       P>|t|      [0.025      0.975]
        ---------------------------------------------------------------------------------
        intercept      1.0429     0.11145      9.3569       0.001     0.73341      1.3523
        x0             1.9829    0.036812      53.865       0.000      1.8807      2.0851
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return summarise(self.path_, self.n_iter_, self.coef_, self.intercept_, names, level)

    def to_sklearn(self) -> LinearRegression:
        """Return a plain scikit-learn LinearRegression that predicts the same.

        Returns
        -------
        sklearn.linear_model.LinearRegression
            With the same ``coef_`` and ``intercept_``, for tools that know that class only.
        """
        check_is_fitted(self)
        model = LinearRegression(fit_intercept=self.fit_intercept)
        model.coef_, model.intercept_, model.n_features_in_ = self.coef_.copy(), self.intercept_, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as JSON, atomically.

        Moments, path and loss curve are not part of it; a Backend instance is saved as its name.

        Parameters
        ----------
        path : str or path-like
            The file to write; its folder must exist.
        """
        check_is_fitted(self)
        self._write(path, self.get_params(deep=False))

    def _write(self, path: str | os.PathLike[str], params: dict[str, Any]) -> None:
        """Write what is fitted, with the parameters of the :class:`LinearRegressorGD` that gives it."""
        params["backend"] = params["backend"] if isinstance(params["backend"], str) else params["backend"].name
        document = {name: getattr(self, f"{name}_") for name in SAVED}
        names = getattr(self, "feature_names_in_", None)
        write_model(path, {"params": params, **document, "feature_names": names, "dtype": str(self.coef_.dtype)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a model that :meth:`save` wrote. Runs no code from the file.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        LinearRegressorGD

        Raises
        ------
        ValueError
            If the file is something else, or damaged.
        """
        document = read_model(path)
        try:
            model = cls(**document["params"])
            model._validate_params()
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: its params are not this estimator's ({why(error)}).") from error
        for name in SAVED:
            setattr(model, f"{name}_", document[name])
        dtype = np.dtype(document.get("dtype", "float64"))
        model.coef_, model.intercept_ = model.coef_.astype(dtype), model.intercept_.astype(dtype)[()]
        model.scaled_intercept_ = model.scaled_intercept_[()]
        single_output, n_outputs = model.coef_.ndim == 1, len(np.atleast_2d(model.coef_))
        coordinates = Coordinates(
            model.mean_, model.scale_, np.zeros(n_outputs), bool(model.fit_intercept), single_output
        )
        weights = np.atleast_2d(model.scaled_coef_).T
        intercept = np.broadcast_to(model.scaled_intercept_, n_outputs)
        model._iterate = coordinates.join(weights, intercept), coordinates
        model.n_features_in_ = len(model.mean_)
        if document["feature_names"] is not None:
            model.feature_names_in_ = np.array(document["feature_names"], dtype=object)
        return model

    def _validate_params(self) -> None:
        """As BaseEstimator's, but once for the same plain values: it would be a tenth of a small fit."""
        values = [getattr(self, name) for name in self._parameter_constraints]
        plain = all(value is None or isinstance(value, str | float | int) for value in values)
        check: Callable[..., None] = _check_params if plain else _check_params.__wrapped__
        check(type(self), *values)

    def _settings(self) -> Settings:
        return Settings(self.learning_rate, bool(self.standardize), bool(self.fit_intercept), self.alpha)

    def _validated(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> ArraySource:
        """Check all but finiteness, which is read off the sums."""
        with within_float64("X, y or sample_weight"):
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=dtypes_read(X),
                ensure_all_finite=False,
                multi_output=True,
                y_numeric=True,
                reset=reset,
            )
            if sample_weight is not None:
                sample_weight = check_weight(sample_weight, X, allow_all_zero=not reset)
        return ArraySource(X, as_floats(y), sample_weight)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the path: one matrix of n_features by n_features is enough."""
        state = dict(super().__getstate__())
        state.pop("_path", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@functools.lru_cache(maxsize=64, typed=True)
def _check_params(kind: type[LinearModel], *values: Any) -> None:
    """Raise unless the parameters of an estimator of this class are what its constraints say."""
    given = dict(zip(kind._parameter_constraints, values, strict=True))
    for name, value in given.items():
        if isinstance(value, Rational) and not isinstance(value, Integral):  # scikit-learn cannot compare fractions
            given[name] = as_float64(name, value)
    validate_parameter_constraints(kind._parameter_constraints, given, caller_name=kind.__name__)
