"""One pass over rows: block by block to a count, a weight, means and centred second moments.

A block's products are taken as they are and centred afterwards by a rank-one correction. That
subtracts squares of the mean, which is harmless while mean^2 <= 100 variance; columns further
from the origin have the block's mean subtracted first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import assert_all_finite
from sklearn.utils.sparsefuncs import min_max_axis

Array = npt.NDArray[np.float64]

BLOCK_ROWS = 4096
HARMLESS = 100.0
EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Sums:
    """What a set of rows adds up to.

    Parameters
    ----------
    n_samples : int
        Rows of positive weight.
    weight : float
        Sum of their weights.
    mean : ndarray of shape (n_columns,)
        Weighted means.
    matrix : ndarray of shape (n_columns, n_columns), or (n_rows, n_columns) for a root
        The centred second moments, or a matrix R with R'R equal to them and n_rows <= n_columns.
    constant : ndarray of shape (n_columns,) of bool
        Columns that hold one value only; their means are exact, their second moments exactly 0.
    is_root : bool
        Which of the two ``matrix`` is.
    chosen : bool
        Whether the root was asked for, and not only smaller than the second moments.
    """

    n_samples: int
    weight: float
    mean: Array
    matrix: Array
    constant: npt.NDArray[np.bool_]
    is_root: bool = False
    chosen: bool = False

    @cached_property
    def squares(self) -> Array:
        """Diagonal of the second moments."""
        return np.einsum("ij,ij->j", self.matrix, self.matrix) if self.is_root else self.matrix.diagonal()

    def second_moments(self, rows: slice, columns: slice) -> Array:
        """Return a block of the second moments."""
        return self.matrix[:, rows].T @ self.matrix[:, columns] if self.is_root else self.matrix[rows, columns]


def sums_of_rows(X: Any, y: Any, weight: Array | None, *, accurate: bool) -> Sums:
    """Sum up dense or CSR rows; ``y`` is 2-D, ``weight`` non-negative."""
    if weight is not None and not weight.all():
        kept = weight > 0
        if not kept.any():
            raise ValueError(
                f"All {len(weight)} sample weights are zero: at least one row must have a positive weight."
            )
        assert_values_finite(X[~kept], y[~kept])
        X, y, weight = X[kept], y[kept], weight[kept]
    n_samples, n_columns = X.shape[0], X.shape[1] + y.shape[1]
    wide = n_samples < X.shape[1]
    if sp.issparse(X) and not (accurate or wide):
        return _sparse_sums(X, y, weight)
    rows = max(BLOCK_ROWS, 2 * n_columns) if accurate else BLOCK_ROWS
    total = None
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n_samples, rows):
            part = slice(start, start + rows)
            block = X[part].toarray() if sp.issparse(X) else X[part]
            block, targets = block.astype(np.float64, copy=False), y[part].astype(np.float64, copy=False)
            weights = None if weight is None else weight[part]
            one = (
                _root_of_block(block, targets, weights, accurate)
                if accurate or wide
                else _block(block, targets, weights)
            )
            total = one if total is None else merge_sums(total, one)
    assert total is not None
    return total


def merge_sums(a: Sums, b: Sums) -> Sums:
    """Sum up two sets of rows that describe the same columns."""
    weight = a.weight + b.weight
    delta = b.mean - a.mean
    mean = a.mean + delta * (b.weight / weight)
    constant = a.constant & b.constant & (delta == 0)
    between = delta * np.sqrt(a.weight * (b.weight / weight))
    n_samples, chosen = a.n_samples + b.n_samples, a.chosen and b.chosen
    if a.is_root and b.is_root and (chosen or n_samples < len(mean) and not (a.chosen or b.chosen)):
        root = _compress(np.vstack([a.matrix, b.matrix, between]))
        return Sums(n_samples, weight, mean, root, constant, True, chosen)
    every = slice(None)
    scatter = a.second_moments(every, every) + b.second_moments(every, every)
    scatter += np.outer(between, between)
    return Sums(n_samples, weight, mean, scatter, constant)


def check_finite(sums: Sums, X: Any, y: Any, names: Any = None) -> None:
    """Raise if a value was NaN or infinite, or if squares left the range of float64."""
    squares = sums.squares
    if not math.isfinite(squares.sum() + sums.mean.sum()):
        assert_values_finite(X, y)
        unresolved, what = ~np.isfinite(squares), "overflow"
    else:
        unresolved, what = squares < TINY, "underflow"
        unresolved &= ~sums.constant
        if not unresolved.any():
            return
    labels = [
        *(names if names is not None else [f"x{j}" for j in range(X.shape[1])]),
        *(f"y{j}" for j in range(y.shape[1])),
    ]
    columns = ", ".join(str(labels[j]) for j in np.flatnonzero(unresolved)[:5])
    raise ValueError(
        f"The squared deviations of {columns} {what} float64: change the unit of these columns so that "
        "their spread lies between 1e-150 and 1e150."
    )


def assert_values_finite(X: Any, y: Any) -> None:
    """Raise with scikit-learn's message if a value is NaN or infinite."""
    assert_all_finite(X, input_name="X")
    assert_all_finite(y, input_name="y")


def _compress(root: Array) -> Array:
    return root if len(root) <= root.shape[1] else np.asarray(np.linalg.qr(root, mode="r"))


def _block(X: Array, y: Array, weight: Array | None) -> Sums:
    n_samples = len(X)
    values = X, y
    if weight is None:
        total = float(n_samples)
        mean = np.add.reduce(X, 0) / total
        rest, product = mean, X.T @ X
        far = mean * mean > HARMLESS * (product.diagonal() / total - mean * mean)
        if far.any():
            shift = np.where(far, mean, 0.0)
            X = X - shift
            rest, product = np.add.reduce(X, 0) / total, X.T @ X
            mean = shift + rest
        y, mean_y = _centre(y, None)
    else:
        total = float(weight.sum())
        spread = np.sqrt(weight)[:, None]
        X, mean = _centre(X, weight / total)
        y, mean_y = _centre(y, weight / total)
        X, y, rest = X * spread, y * spread, np.zeros(X.shape[1])
        product = X.T @ X
    product -= total * np.outer(rest, rest)
    scatter = _assembled(product, X.T @ y, y.T @ y)
    mean = np.concatenate([mean, mean_y])
    constant = _settle_constants(values, mean, scatter.diagonal() / total)
    if constant.any():
        scatter[constant] = scatter[:, constant] = 0.0
    return Sums(n_samples, total, mean, scatter, constant)


def _root_of_block(X: Array, y: Array, weight: Array | None, chosen: bool) -> Sums:
    total = float(len(X) if weight is None else weight.sum())
    rows, mean = _centre(np.hstack([X, y]), None if weight is None else weight / total)
    constant = _settle_constants((X, y), mean, np.einsum("ij,ij->j", rows, rows) / len(rows))
    rows[:, constant] = 0.0
    if weight is not None:
        rows *= np.sqrt(weight)[:, None]
    return Sums(len(X), total, mean, _compress(rows), constant, True, chosen)


def _sparse_sums(X: Any, y: Array, weight: Array | None) -> Sums:
    X, n_samples = sp.csr_array(X, dtype=np.float64), X.shape[0]
    weight = np.ones(n_samples) if weight is None else weight
    total = float(weight.sum())
    targets, mean_y = _centre(y.astype(np.float64), weight / total)
    weighted = sp.diags_array(weight, format="csr") @ X
    mean = X.T @ (weight / total)
    product = (X.T @ weighted).toarray()
    far = np.flatnonzero(mean * mean > HARMLESS * (product.diagonal() / total - mean * mean))
    product -= total * np.outer(mean, mean)
    if len(far):  # such columns are all but full: centre them, some rows at a time
        product[:, far] = 0.0
        for start in range(0, n_samples, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            away = X[part][:, far].toarray() - mean[far]
            cross = weighted[part].T @ away - np.outer(mean, weight[part] @ away)
            cross[far] = away.T @ (away * weight[part, None])
            product[:, far] += cross
        product[far] = product[:, far].T
    cross = weighted.T @ targets
    low, high = (np.asarray(bound) for bound in min_max_axis(X, axis=0))
    constant = np.concatenate([low == high, (y == y[0]).all(axis=0)])
    mean = np.where(constant, np.concatenate([low, y[0]]), np.concatenate([mean, mean_y]))
    scatter = _assembled(product, cross, (targets.T * weight) @ targets)
    scatter[constant] = scatter[:, constant] = 0.0
    return Sums(n_samples, total, mean, scatter, constant)


def _assembled(xx: Array, xy: Array, yy: Array) -> Array:
    p, d = len(xx), len(xx) + len(yy)
    scatter = np.empty((d, d))
    scatter[:p, :p], scatter[:p, p:], scatter[p:, :p], scatter[p:, p:] = xx, xy, xy.T, yy
    return scatter


def _centre(rows: Array, share: Array | None) -> tuple[Array, Array]:
    """Subtract the mean, then what its rounding left behind."""
    count = len(rows)
    mean = np.add.reduce(rows, 0) / count if share is None else share @ rows
    rows = rows - mean
    rest = np.add.reduce(rows, 0) / count if share is None else share @ rows
    rows -= rest
    return rows, mean + rest


def _settle_constants(values: tuple[Array, Array], mean: Array, variance: Array) -> npt.NDArray[np.bool_]:
    """Find the columns of one value only, and make their means exact.

    Only a column whose computed variance could be rounding is looked at again.
    """
    X, y = values
    constant = variance <= (4 * len(X) * EPS * mean) ** 2
    if not constant.any():
        return constant
    for j in np.flatnonzero(constant):
        column = X[:, j] if j < X.shape[1] else y[:, j - X.shape[1]]
        constant[j] = (column == column[0]).all()
        if constant[j]:
            mean[j] = column[0]
    return constant
