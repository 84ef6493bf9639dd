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

from fssgd._descent.coordinates import Coordinates
from fssgd._moments.moments import Moments
from fssgd._moments.row_sums import BLOCK_ROWS, MAX_MEAN_SQUARED_OVER_VARIANCE

Array = npt.NDArray[np.floating[Any]]


def mean_of_centred(
    X: Any, weight: npt.NDArray[np.float64] | None, coordinates: Coordinates
) -> npt.NDArray[np.float64]:
    """Return the weighted mean of ``X - mean``: not 0 where the rounding of a mean far from 0 shows.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,) or None
    coordinates : Coordinates

    Returns
    -------
    ndarray of shape (n_features,)
        0 for columns within ten standard deviations of 0.
    """
    left = np.zeros(X.shape[1])
    # near 0 the mean is exact to eps of the deviations; at 1e8 of them it is off by 1e-8, and so is every centred row
    far = np.flatnonzero(is_far(coordinates))
    if len(far):
        n_samples = X.shape[0]
        share = np.full(n_samples, 1.0 / n_samples) if weight is None else weight / weight.sum()
        for start in range(0, n_samples, BLOCK_ROWS):  # a block at a time: the far columns of a sparse X become dense
            part = slice(start, start + BLOCK_ROWS)
            rows = X[part][:, far]
            left[far] += share[part] @ ((rows.toarray() if sp.issparse(rows) else rows) - coordinates.mean[far])
    return left


def is_far(coordinates: Coordinates) -> npt.NDArray[np.bool_]:
    """Tell which columns are centred, and so far from 0 that it costs digits; of shape (n_features,)."""
    return np.asarray(coordinates.mean**2 > MAX_MEAN_SQUARED_OVER_VARIANCE * coordinates.scale**2)


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
        if self.offset is not None:  # a sparse matrix stays sparse: centring is one number an output instead
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
    """The weighted rows of a problem in memory; the design is built when it is first used.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        In the user's units, of any dtype of numbers.
    y : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,) or None
    coordinates : Coordinates
    mean_of_all : ndarray of shape (n_features,) or None
        Where these are some rows of more: :attr:`centred_mean` of all of them.
    """

    X: Any
    y: Array
    weight: npt.NDArray[np.float64] | None
    coordinates: Coordinates
    mean_of_all: npt.NDArray[np.float64] | None = None

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
        mean, scale = self.coordinates.mean, self.coordinates.scale
        if not (sp.issparse(self.X) and mean.any()):
            return None
        return np.asarray(np.where(self._far, 0.0, mean / scale), dtype=self.dtype)

    @cached_property
    def centred_mean(self) -> npt.NDArray[np.float64]:
        """What the rounding of the means leaves of the means of the centred columns, of shape (n_features,).

        The intercept starts at minus the mean of y. Times that, a mean of 1e-8 instead of 0 is no small gradient: with
        x and y both at 1e8, it made half of the first step. Zeros where no column is that far from 0.
        """
        if self.mean_of_all is not None:  # a partition: its own mean is not 0, and must not be taken away
            return self.mean_of_all
        return mean_of_centred(self.X, self.weight, self.coordinates)

    @cached_property
    def _far(self) -> npt.NDArray[np.bool_]:
        """Columns of a sparse X so far from 0 that they are centred entry by entry: all but full, or constant."""
        mean, scale = self.coordinates.mean, self.coordinates.scale
        # a constant column is centred to 0 exactly: as a difference of products it would be the rounding of them
        return np.asarray(is_far(self.coordinates) | ((scale == 1.0) & (mean != 0)))

    @cached_property
    def matrix(self) -> Any:
        """The design, of shape (n_samples, n_features + fit_intercept), in :attr:`dtype`; CSR or Fortran-ordered."""
        if sp.issparse(self.X):
            return self._sparse_matrix()
        mean, scale, has_intercept = self.coordinates.mean, self.coordinates.scale, self.coordinates.fit_intercept
        n_samples, n_features = self.X.shape
        # Fortran order, which the products with the matrix and with its transpose both read from front to back
        matrix = np.empty((n_samples, n_features + has_intercept), dtype=self.dtype, order="F")
        for start in range(0, n_samples, BLOCK_ROWS):  # a block at a time: float64 arithmetic without a float64 copy
            part = slice(start, start + BLOCK_ROWS)
            centred = self.X[part] - mean - self.centred_mean
            matrix[part, :n_features] = centred / scale * self.sqrt_weights[part]
        if has_intercept:
            matrix[:, n_features:] = self.sqrt_weights
        return matrix

    def _sparse_matrix(self) -> Any:
        """Scale and weight the columns, and centre those that are far from 0: all but full, they lose nothing by it.

        Left to :attr:`offset`, a mean of 1e8 standard deviations would cost a product eight digits.
        """
        columns, far = sp.csc_array(self.X, dtype=np.float64), self._far
        if self.offset is not None and far.any():
            away = columns[:, far].toarray() - self.coordinates.mean[far] - self.centred_mean[far]
            order = np.argsort(np.concatenate([np.flatnonzero(~far), np.flatnonzero(far)]))
            columns = sp.csc_array(sp.hstack([columns[:, ~far], sp.csc_array(away)]))[:, order]
        weights = sp.diags_array(self.sqrt_weights[:, 0])
        scaled = weights @ sp.csr_array(columns) @ sp.diags_array(1.0 / self.coordinates.scale)
        if self.coordinates.fit_intercept:
            scaled = sp.hstack([scaled, self.sqrt_weights])
        return sp.csr_array(scaled, dtype=self.dtype)

    @cached_property
    def targets(self) -> Array:
        """T, of shape (n_samples, n_outputs), in :attr:`dtype`."""
        # centred before it becomes float32, in which a y far from 0 would lose its digits
        return np.asarray((self.y - self.coordinates.target_mean) * self.sqrt_weights, dtype=self.dtype)

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
