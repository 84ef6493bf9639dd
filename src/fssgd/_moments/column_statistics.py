"""Mean and variance of each column, for data of too many columns for the products of all pairs."""

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
    """What is known of columns one by one.

    Parameters
    ----------
    weight : float
        Sum of the weights of their rows.
    mean, variance : ndarray of shape (n_columns,)
        Weighted, and the population's.
    constant : ndarray of shape (n_columns,) of bool
        Columns that hold one value only; their means are exact, their variances 0.
    """

    weight: float
    mean: Array
    variance: Array
    constant: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, X: Any, y: Any, weight: Array | None) -> ColumnStatistics:
        """Measure the columns of X and then of y, given without rows of weight 0."""
        pairs = zip(column_statistics(X, weight), column_statistics(y, weight), strict=True)
        return cls(float(len(y) if weight is None else weight.sum()), *(np.concatenate(pair) for pair in pairs))


def merge_columns(a: ColumnStatistics, b: ColumnStatistics) -> ColumnStatistics:
    """Measure the columns of two sets of rows together."""
    weight, delta = a.weight + b.weight, b.mean - a.mean
    share = b.weight / weight
    with np.errstate(over="ignore", invalid="ignore"):
        variance = (1.0 - share) * a.variance + share * b.variance + share * (1.0 - share) * delta**2
    mean = a.mean + share * delta if share <= 0.5 else b.mean - (1.0 - share) * delta
    return ColumnStatistics(weight, mean, variance, a.constant & b.constant & (delta == 0))


def column_statistics(X: Any, weight: Array | None) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Return mean and variance of each column, and which are constant: their mean is exact, their variance 0.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        Without rows of weight 0.
    weight : ndarray of shape (n_samples,) or None
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _statistics(X, weight)


def _statistics(X: Any, weight: Array | None) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    n_samples, n_features = X.shape
    share = np.full(n_samples, 1.0 / n_samples) if weight is None else weight / weight.sum()
    mean: Array
    variance: Array
    rest: Array
    if sp.issparse(X):
        low, high = (np.asarray(bound, dtype=np.float64) for bound in min_max_axis(X, axis=0))
        X = sp.coo_array(X)
        mean = np.asarray(np.bincount(X.col, share[X.row] * X.data, n_features), dtype=np.float64)
        full = np.bincount(X.col, minlength=n_features) == n_samples
        stored = np.where(full, 1.0, np.bincount(X.col, share[X.row], n_features))
        away = X.data - mean[X.col]
        absent = np.maximum(1.0 - stored, 0.0)
        variance = absent * mean**2 + np.bincount(X.col, share[X.row] * away**2, n_features)
        rest = np.bincount(X.col, share[X.row] * away, n_features) - absent * mean
    else:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, n_samples, BLOCK_ROWS)]
        mean, variance, rest = np.zeros(n_features), np.zeros(n_features), np.zeros(n_features)
        for part in blocks:
            mean += share[part] @ X[part].astype(np.float64, copy=False)
        for part in blocks:
            away = X[part] - mean
            rest += share[part] @ away
            variance += share[part] @ away**2
    constant, mean, variance = low == high, mean + rest, variance - rest**2
    return np.where(constant, low, mean), np.where(constant, 0.0, variance), constant
