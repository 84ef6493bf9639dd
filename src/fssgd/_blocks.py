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
BLOCK_SIZE, LARGEST_SIZE = 1 << 18, 1 << 20  # values; fewer stay in cache, more calls cost more (measured)
HARMLESS = 100.0
KEPT = 1e-4
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
        with np.errstate(over="ignore", invalid="ignore"):
            return _sparse_sums(X, y, weight)
    rows = rows_of_block(n_columns, accurate)
    total, far = None, np.zeros(X.shape[1], dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n_samples, rows):
            part = slice(start, start + rows)
            block = X[part].toarray() if sp.issparse(X) else X[part]
            block, targets = block.astype(np.float64, copy=False), y[part].astype(np.float64, copy=False)
            weights = None if weight is None else weight[part]
            if accurate or wide:
                one = _root_of_block(block, targets, weights, accurate)
            else:
                one = _block(block, targets, weights, far)
            total = one if total is None else merge_sums(total, one)
    assert total is not None
    return total


def rows_of_block(n_columns: int, accurate: bool) -> int:
    """Return how many rows are summed up at a time."""
    if accurate:
        return max(BLOCK_ROWS, 2 * n_columns)
    return max(BLOCK_ROWS, BLOCK_SIZE // n_columns, min(2 * BLOCK_ROWS, LARGEST_SIZE // n_columns))


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


def remove_sums(total: Sums, part: Sums) -> Sums:
    """Sum up the rows of ``total`` that are not in ``part``, by undoing :func:`merge_sums`.

    Raises
    ------
    ValueError
        If too little is left of a column's second moment to be known: the difference of two sums has their errors.
    """
    weight, n_samples = total.weight - part.weight, total.n_samples - part.n_samples
    if n_samples < 1 or not weight > KEPT * total.weight:
        raise ValueError(
            f"Subtracting {part.n_samples} rows of weight {part.weight:g} from {total.n_samples} rows of weight "
            f"{total.weight:g} leaves too little to be accurate: take the moments of the remaining rows instead."
        )
    if total.is_root:
        raise ValueError("Accurate moments cannot be subtracted from: take the moments of the remaining rows instead.")
    away = total.mean - part.mean
    between = away * np.sqrt(part.weight * (total.weight / weight))
    every = slice(None)
    matrix = total.matrix - part.second_moments(every, every) - np.outer(between, between)
    lost = (matrix.diagonal() < KEPT * total.squares) & ~total.constant
    if lost.any():
        raise ValueError(
            f"Subtraction would leave {int(lost.sum())} of {len(lost)} columns with less than {KEPT:g} of their "
            "variation, which rounding could swamp: take the moments of the remaining rows instead."
        )
    return Sums(n_samples, weight, total.mean + away * (part.weight / weight), matrix, total.constant)


def check_resolved(mean: Array, squares: Array, constant: npt.NDArray[np.bool_], X: Any, y: Any, names: Any) -> None:
    """Raise if a value was NaN or infinite, or if squares left the range of float64.

    Parameters
    ----------
    mean, squares, constant : ndarray of shape (n_columns,)
        Of the columns of X and then of y: squares are sums or means of squared deviations.
    X, y : the data, looked at again for the message only
    names : array-like of shape (n_features,) or None
    """
    if not math.isfinite(squares.sum() + mean.sum()):
        assert_values_finite(X, y)
        unresolved, what = ~np.isfinite(squares), "overflow"
    else:
        unresolved, what = squares < TINY, "underflow"
        unresolved &= ~constant
        if not unresolved.any():
            return
    labels = column_names(names, X.shape[1])
    labels += [f"y{j}" for j in range(y.shape[1])]
    columns = ", ".join(str(labels[j]) for j in np.flatnonzero(unresolved)[:5])
    raise ValueError(
        f"The squared deviations of {columns} {what} float64: change the unit of these columns so that "
        "their spread lies between 1e-150 and 1e150."
    )


def column_names(names: Any, n_features: int) -> list[str]:
    """Return the names of the columns as strings: x0, x1 and so on where they have none."""
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def canonical(X: Any) -> Any:
    """Return X with entries that are stored twice added up, X itself if there are none."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def assert_values_finite(X: Any, y: Any) -> None:
    """Raise with scikit-learn's message if a value is NaN or infinite."""
    assert_all_finite(X, input_name="X")
    assert_all_finite(y, input_name="y")


def _compress(root: Array) -> Array:
    return root if len(root) <= root.shape[1] else np.asarray(np.linalg.qr(root, mode="r"))


def _block(X: Array, y: Array, weight: Array | None, far: npt.NDArray[np.bool_]) -> Sums:
    """Sum up one block; ``far`` marks the columns known to lie far from the origin, and learns of more."""
    n_samples, values = len(X), (X, y)
    total = float(n_samples) if weight is None else float(weight.sum())
    share = np.full(n_samples, 1.0 / total) if weight is None else weight / total
    root = None if weight is None else np.sqrt(weight)[:, None]
    y, mean_y = _centre(y, share)
    y = y if root is None else y * root
    share_of_root = share if root is None else root[:, 0] / total
    while True:
        shift = np.where(far, share @ X, 0.0) if far.any() else np.zeros(X.shape[1])
        near = X - shift if far.any() else X
        weighted = near if root is None else near * root
        product = weighted.T @ weighted
        rest = share_of_root @ weighted  # after the product, which reads the rows while it computes
        missed = rest * rest > HARMLESS * (product.diagonal() / total - rest * rest)
        missed &= ~far
        if not missed.any():
            break
        far |= missed
    raised = np.sqrt(total) * rest
    product -= raised[:, None] * raised
    scatter = _assembled(product, weighted.T @ y, y.T @ y)
    mean = np.concatenate([shift + rest, mean_y])
    constant = _settle_constants(values, mean, scatter.diagonal() / total)
    if constant.any():
        scatter[constant] = scatter[:, constant] = 0.0
    return Sums(n_samples, total, mean, scatter, constant)


def _root_of_block(X: Array, y: Array, weight: Array | None, chosen: bool) -> Sums:
    total = float(len(X) if weight is None else weight.sum())
    share = np.full(len(X), 1.0 / total) if weight is None else weight / total
    rows, mean = _centre(np.hstack([X, y]), share)
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
    product, cross = (X.T @ weighted).toarray(), weighted.T @ targets
    far = np.flatnonzero(mean * mean > HARMLESS * (product.diagonal() / total - mean * mean))
    product -= total * np.outer(mean, mean)
    if len(far):  # such columns are all but full: centre them, some rows at a time
        rest, beside = np.zeros(len(far)), np.zeros((X.shape[1], len(far)))
        within, cross[far] = np.zeros((len(far), len(far))), 0.0
        for start in range(0, n_samples, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            away = X[part][:, far].toarray() - mean[far]
            heavy = away * weight[part, None]
            rest += heavy.sum(axis=0)
            beside += weighted[part].T @ away
            within += away.T @ heavy
            cross[far] += heavy.T @ targets[part]
        product[:, far] = beside - np.outer(mean, rest)
        product[np.ix_(far, far)] = within - np.outer(rest, rest) / total
        product[far] = product[:, far].T
        mean[far] += rest / total
    low, high = (np.asarray(bound) for bound in min_max_axis(X, axis=0))
    constant = np.concatenate([low == high, (y == y[0]).all(axis=0)])
    mean = np.where(constant, np.concatenate([low, y[0]]), np.concatenate([mean, mean_y]))
    scatter = _assembled(product, cross, (targets.T * weight) @ targets)
    scatter[constant] = scatter[:, constant] = 0.0
    return Sums(n_samples, total, mean, 0.5 * (scatter + scatter.T), constant)


def _assembled(xx: Array, xy: Array, yy: Array) -> Array:
    p, d = len(xx), len(xx) + len(yy)
    scatter = np.empty((d, d))
    scatter[:p, :p], scatter[:p, p:], scatter[p:, :p], scatter[p:, p:] = xx, xy, xy.T, yy
    return scatter


def _centre(rows: Array, share: Array) -> tuple[Array, Array]:
    """Subtract the mean, then what its rounding left behind."""
    mean = share @ rows
    rows = rows - mean
    rest = share @ rows
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
