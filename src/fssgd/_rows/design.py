"""The weighted design matrix of rows in memory, laid out for products.

Row i is ``sqrt(s_i / S) [z_i, 1]`` and its target ``sqrt(s_i / S) (y_i - ybar)``. A sparse design is left uncentred:
``A = matrix - last_column offset'``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fssgd._descent.coordinates import Scaling
from fssgd._moments.moments import Moments
from fssgd._moments.row_sums import BLOCK_ROWS, MAX_MEAN_SQUARED_OVER_VARIANCE

Array = npt.NDArray[np.floating[Any]]


def mean_left_by_centring(X: Any, weight: npt.NDArray[np.float64] | None, scaling: Scaling) -> npt.NDArray[np.float64]:
    """Return the weighted mean of ``X - mean``: not 0, where the rounding of a mean far from 0 shows.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,) or None
    scaling : Scaling

    Returns
    -------
    ndarray of shape (n_features,)
        0 for columns within ten standard deviations of 0.
    """
    left = np.zeros(X.shape[1])
    far = np.flatnonzero(is_far(scaling))
    if len(far):
        n_samples = X.shape[0]
        share = np.full(n_samples, 1.0 / n_samples) if weight is None else weight / weight.sum()
        for start in range(0, n_samples, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            rows = X[part][:, far]
            left[far] += share[part] @ ((rows.toarray() if sp.issparse(rows) else rows) - scaling.mean[far])
    return left


def is_far(scaling: Scaling) -> npt.NDArray[np.bool_]:
    """Tell which columns are centred, and so far from 0 that it costs digits; of shape (n_features,)."""
    return np.asarray(scaling.mean * scaling.mean > MAX_MEAN_SQUARED_OVER_VARIANCE * scaling.scale * scaling.scale)


def working_dtype(X: Any) -> np.dtype[Any]:
    """Return the precision that a descent on X works in."""
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


@dataclass(frozen=True, eq=False)
class Design:
    """A weighted design and its targets, laid out for stepping.

    Parameters
    ----------
    matrix : ndarray or CSR array of shape (n_samples, n_parameters)
    targets : ndarray of shape (n_samples, n_outputs)
    offset : ndarray of shape (n_features,) or None
        What a sparse matrix still has to be centred by.
    """

    matrix: Any
    targets: Array
    offset: Array | None

    def matvec(self, theta: Array) -> Array:
        """A theta, of shape (n_samples, n_outputs)."""
        if self.offset is not None:
            theta = np.vstack([theta[:-1], theta[-1] - self.offset @ theta[:-1]])
        return np.asarray(self.matrix @ theta)

    def rmatvec(self, residual: Array) -> Array:
        """A' residual, of shape (n_parameters, n_outputs)."""
        result = np.asarray(self.matrix.T @ residual)
        if self.offset is not None:
            result[:-1] -= np.outer(self.offset, result[-1])
        return result

    def squared_residual_and_gradient(self, theta: Array) -> tuple[Any, Array]:
        """||A theta - T||^2, and A' (A theta - T) of shape (n_parameters, n_outputs)."""
        residual = self.matvec(theta) - self.targets
        return np.vdot(residual, residual), self.rmatvec(residual)

    def gram_matvec(self, vector: Array) -> Array:
        """A' A vector, of shape (n_parameters, n_outputs)."""
        return self.rmatvec(self.matvec(vector))


@dataclass(frozen=True, eq=False)
class Rows:
    """The weighted rows of a problem in memory, built when first asked for.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        In the user's units, of any dtype of numbers.
    y : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,) or None
    scaling : Scaling
    level : ndarray of shape (n_outputs,)
        Weighted mean of y, or zeros without an intercept.
    fit_intercept : bool
    mean_rest : ndarray of shape (n_features,) or None
        Where these are some rows of more: :attr:`rest` of all of them.
    """

    X: Any
    y: Array
    weight: npt.NDArray[np.float64] | None
    scaling: Scaling
    level: npt.NDArray[np.float64]
    fit_intercept: bool
    mean_rest: npt.NDArray[np.float64] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of a descent."""
        return working_dtype(self.X)

    @cached_property
    def sqrt_weights(self) -> npt.NDArray[np.float64]:
        """sqrt(s_i / S), of shape (n_samples, 1)."""
        n_samples = self.X.shape[0]
        if self.weight is None:
            return np.full((n_samples, 1), np.sqrt(1.0 / n_samples))
        return np.asarray(np.sqrt(self.weight / self.weight.sum())[:, None])

    @cached_property
    def offset(self) -> Array | None:
        """What a sparse design still has to be centred by, of shape (n_features,); None for a dense one."""
        if not (sp.issparse(self.X) and self.fit_intercept and self.scaling.mean.any()):
            return None
        return np.asarray(np.where(self._far, 0.0, self.scaling.mean / self.scaling.scale), dtype=self.dtype)

    @cached_property
    def rest(self) -> npt.NDArray[np.float64]:
        """What the rounding of the means leaves of the means of the centred columns, of shape (n_features,).

        The intercept starts at minus the mean of y. Times that, a mean of 1e-8 instead of 0 is no small gradient: with
        x and y both at 1e8, it made half of the first step. Zeros where no column is that far from 0.
        """
        return mean_left_by_centring(self.X, self.weight, self.scaling) if self.mean_rest is None else self.mean_rest

    @cached_property
    def _far(self) -> npt.NDArray[np.bool_]:
        """Columns of a sparse X so far from 0 that they are centred entry by entry: all but full, or constant."""
        return np.asarray(is_far(self.scaling) | ((self.scaling.scale == 1.0) & (self.scaling.mean != 0)))

    @cached_property
    def matrix(self) -> Any:
        """The design, of shape (n_samples, n_features + fit_intercept), in :attr:`dtype`; CSR or Fortran-ordered."""
        dtype, share = self.dtype, self.sqrt_weights
        if sp.issparse(self.X):
            columns = sp.csc_array(self.X, dtype=np.float64)
            if self.offset is not None and self._far.any():
                away = columns[:, self._far].toarray() - self.scaling.mean[self._far] - self.rest[self._far]
                away = sp.csc_array(away)
                order = np.argsort(np.concatenate([np.flatnonzero(~self._far), np.flatnonzero(self._far)]))
                columns = sp.csc_array(sp.hstack([columns[:, ~self._far], away]))[:, order]
            scaled = sp.diags_array(share[:, 0]) @ sp.csr_array(columns) @ sp.diags_array(1.0 / self.scaling.scale)
            return sp.csr_array(sp.hstack([scaled, share]) if self.fit_intercept else scaled, dtype=dtype)
        n_samples, n_features = self.X.shape
        matrix = np.empty((n_samples, n_features + self.fit_intercept), dtype=dtype, order="F")
        for start in range(0, n_samples, 4096):  # a block at a time: float64 arithmetic without a float64 copy
            part = slice(start, start + 4096)
            centred = self.X[part] - self.scaling.mean - self.rest
            matrix[part, :n_features] = centred / self.scaling.scale * share[part]
        if self.fit_intercept:
            matrix[:, n_features:] = share
        return matrix

    @cached_property
    def targets(self) -> Array:
        """T, of shape (n_samples, n_outputs), in :attr:`dtype`."""
        return np.asarray((self.y - self.level) * self.sqrt_weights, dtype=self.dtype)

    @cached_property
    def design(self) -> Design:
        """What a step needs of the rows."""
        return Design(self.matrix, self.targets, self.offset)

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    def matvec(self, theta: Array) -> Array:
        """A theta, of shape (n_samples, n_outputs)."""
        return self.design.matvec(theta)

    def rmatvec(self, residual: Array) -> Array:
        """A' residual, of shape (n_parameters, n_outputs)."""
        return self.design.rmatvec(residual)

    def squared_residual_and_gradient(self, theta: Array) -> tuple[Any, Array]:
        """||A theta - T||^2, and A' (A theta - T) of shape (n_parameters, n_outputs)."""
        return self.design.squared_residual_and_gradient(theta)

    def gram_matvec(self, vector: Array) -> Array:
        """A' A vector, of shape (n_parameters, n_outputs)."""
        return self.design.gram_matvec(vector)

    def moments(self, names: Any = None, *, accurate: bool = False) -> Moments:
        """Read the moments off the rows in the user's units."""
        return Moments.of_rows(self.X, self.y, self.weight, accurate=accurate, feature_names=names)
