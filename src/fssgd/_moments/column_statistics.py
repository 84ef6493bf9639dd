"""Mean and variance of each column, for data with too many columns for a matrix of second moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import min_max_axis

from fssgd._moments.row_sums import BLOCK_ROWS

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Weighted means and variances of columns.

    Parameters
    ----------
    weight : float
        Sum of the weights of the rows.
    mean, variance : ndarray of shape (n_columns,)
        Weighted mean and population variance.
    constant : ndarray of shape (n_columns,) of bool
        Columns that hold one value only; their means are exact, their variances 0.
    """

    weight: float
    mean: Array
    variance: Array
    constant: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, X: Any, y: Any, weight: Array | None) -> ColumnStatistics:
        """Return the statistics of the columns of X and then of y, given without rows of weight 0."""
        pairs = zip(column_statistics(X, weight), column_statistics(y, weight), strict=True)
        return cls(float(len(y) if weight is None else weight.sum()), *(np.concatenate(pair) for pair in pairs))


def merge_columns(a: ColumnStatistics, b: ColumnStatistics) -> ColumnStatistics:
    """Return the statistics of two sets of rows together."""
    weight, delta = a.weight + b.weight, b.mean - a.mean
    fraction = b.weight / weight
    with np.errstate(over="ignore", invalid="ignore"):
        # An average of variances, not a sum of squares: weights near the largest float64 do not overflow.
        variance = (1.0 - fraction) * a.variance + fraction * b.variance + fraction * (1.0 - fraction) * delta**2
    # From the mean of the heavier set, so that the correction and its rounding are small.
    mean = a.mean + fraction * delta if fraction <= 0.5 else b.mean - (1.0 - fraction) * delta
    return ColumnStatistics(weight, mean, variance, a.constant & b.constant & (delta == 0))


def column_statistics(X: Any, weight: Array | None) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Return mean and variance of each column, and which are constant: their mean is exact, their variance 0.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        Without rows of weight 0.
    weight : ndarray of shape (n_samples,) or None
    """
    # A value that is infinite or too large is reported by the caller, with the name of its column.
    with np.errstate(over="ignore", invalid="ignore"):
        return _statistics(X, weight)


def _statistics(X: Any, weight: Array | None) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    # Two passes: the mean, then the deviations from it. E[x^2] - E[x]^2 in one pass has no correct digit for values
    # near 1e9 that differ by 1.
    n_samples, n_features = X.shape
    normalized_weights = np.full(n_samples, 1.0 / n_samples) if weight is None else weight / weight.sum()
    mean: Array
    variance: Array
    residual_mean: Array
    if sp.issparse(X):
        low, high = (np.asarray(bound, dtype=np.float64) for bound in min_max_axis(X, axis=0))
        X = sp.coo_array(X)
        weights = normalized_weights[X.row]
        mean = np.asarray(np.bincount(X.col, weights * X.data, n_features), dtype=np.float64)
        # The entries that are not stored deviate by -mean. In a full column there are none, but the weights of the
        # stored ones sum to 1 - 1e-16, and 1e-16 mean^2 would exceed the variance of a column far from 0.
        is_full = np.bincount(X.col, minlength=n_features) == n_samples
        stored_weight = np.where(is_full, 1.0, np.bincount(X.col, weights, n_features))
        zero_weight = np.maximum(1.0 - stored_weight, 0.0)
        deviations = X.data - mean[X.col]
        variance = zero_weight * mean**2 + np.bincount(X.col, weights * deviations**2, n_features)
        residual_mean = np.bincount(X.col, weights * deviations, n_features) - zero_weight * mean
    else:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        # By blocks: the deviations of all rows at once would be a copy of the data.
        blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, n_samples, BLOCK_ROWS)]
        mean, variance, residual_mean = np.zeros(n_features), np.zeros(n_features), np.zeros(n_features)
        for block in blocks:
            mean += normalized_weights[block] @ X[block].astype(np.float64, copy=False)
        for block in blocks:
            deviations = X[block] - mean
            residual_mean += normalized_weights[block] @ deviations
            variance += normalized_weights[block] @ deviations**2
    # The mean was rounded, and the mean of the deviations from it says by how much: correct both.
    constant, mean, variance = low == high, mean + residual_mean, variance - residual_mean**2
    # By the extremes: in a column of 0.1 only, rounding leaves a variance of 1e-34 that standardizing would divide by.
    return np.where(constant, low, mean), np.where(constant, 0.0, variance), constant
