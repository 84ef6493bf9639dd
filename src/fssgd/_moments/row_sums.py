"""Sums of arrays of rows: count, weight, means and centred second moments, block by block in one pass.

The second moments of a block are computed without centring and corrected afterwards by a rank-one
matrix. The correction subtracts squares of the mean, which costs at most two digits while
mean^2 <= 100 variance. Columns further from zero are shifted first, by the mean of an earlier
block if that is near enough, otherwise by their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import min_max_axis

from fssgd._moments.checks import NoWeightError, rows_that_count
from fssgd._moments.sums import Sums, merge_sums, triangular_factor

Array = npt.NDArray[np.float64]

BLOCK_ROWS = 4096
BLOCK_SIZE, LARGEST_SIZE = 1 << 18, 1 << 20  # values; fewer stay in cache, more calls cost more (measured)
MAX_MEAN_SQUARED_OVER_VARIANCE = 100.0
MAX_SHIFTS = 2
EPS = float(np.finfo(np.float64).eps)


def sums_of_rows(X: Any, y: Any, weight: Array | None, *, accurate: bool) -> Sums:
    """Return the sums of dense or CSR rows.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features)
    y : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,) or None
        Non-negative weights.
    accurate : bool
        Whether to compute a triangular factor instead of the second moments.
    """
    n_given = len(y)
    X, y, weight = rows_that_count(X, y, weight)
    if weight is not None and not len(weight):
        raise NoWeightError(f"All {n_given} sample weights are zero: at least one row must have a positive weight.")
    n_samples, n_columns = X.shape[0], X.shape[1] + y.shape[1]
    # With fewer rows than features, the rows themselves are a factor that is smaller than the second moments: of 100
    # rows with a million features, the latter would take 8 TB.
    wide = n_samples < X.shape[1]
    # What overflows is found by the caller, who knows the names of the columns.
    if sp.issparse(X) and not (accurate or wide):
        with np.errstate(over="ignore", invalid="ignore"):
            return _sparse_sums(X, y, weight)
    n_tile = n_block = rows_of_block(n_columns, accurate)
    sums_of_block: Callable[[Any, Any, Array | None], Sums] = partial(_factor_of_block, factor_requested=accurate)
    if not (accurate or wide):
        dense = _DenseSummation(X, y, n_tile)
        n_block, sums_of_block = dense.n_block, dense.sums
    total = None
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n_samples, n_block):
            block = slice(start, start + n_block)
            block_sums = sums_of_block(X[block], y[block], None if weight is None else weight[block])
            total = block_sums if total is None else merge_sums(total, block_sums)
    assert total is not None
    return total


def rows_of_block(n_columns: int, accurate: bool) -> int:
    """Return how many rows are summed at a time."""
    if accurate:
        # Merging two factors is a QR of 2 n_columns rows: with smaller blocks it would be most of the work.
        return max(BLOCK_ROWS, 2 * n_columns)
    return max(BLOCK_ROWS, BLOCK_SIZE // n_columns, min(2 * BLOCK_ROWS, LARGEST_SIZE // n_columns))


class _DenseSummation:
    """Sums of the blocks of a dense array, each computed from tiles that fit into the cache.

    The blocks share their buffers: fresh memory for each block cost as much time as reading its rows (measured).

    Parameters
    ----------
    X, y : ndarray of shape (n_samples, n_features), (n_samples, n_outputs)
        Arrays that the blocks are slices of.
    n_tile : int
        Number of rows in a tile.
    """

    def __init__(self, X: Any, y: Any, n_tile: int) -> None:
        n_samples, n_outputs = y.shape
        # A block is as many tiles as its buffers for weights and targets have room for: the merge of its sums and
        # the search for constant columns are paid for once a block.
        self.n_block = min(n_samples, n_tile * max(1, BLOCK_SIZE // (1 + n_outputs) // n_tile))
        self._weights, self._targets = np.empty(self.n_block), np.empty((self.n_block, n_outputs))
        self._tile = np.empty_like(X[:n_tile], dtype=np.float64, subok=False)
        self._shift = np.zeros(X.shape[1])

    def sums(self, X: Any, y: Any, weight: Array | None) -> Sums:
        """Return the sums of one block of at most ``n_block`` rows."""
        n_samples = len(X)
        total = float(n_samples) if weight is None else float(weight.sum())
        normalized_weights, sqrt_weights = self._weights[:n_samples], None
        normalized_weights[:] = 1.0 / total if weight is None else weight / total
        # The targets are few and are centred first. X'y is then right whatever X is shifted by.
        targets, mean_y = _centre(y, normalized_weights, self._targets[:n_samples])
        mean_weights = normalized_weights
        if weight is not None:
            # Each row is multiplied by sqrt(w), so that Z'Z has the weights w; its mean needs the other sqrt(w). This
            # overwrites the normalized weights, which were needed for the targets only.
            sqrt_weights = np.sqrt(weight)
            targets *= sqrt_weights[:, None]
            np.divide(sqrt_weights, total, out=mean_weights)
        # The shift is kept from block to block, so one pass is the rule. A column that has drifted away from it, as
        # a counter or a time does, takes a second pass; one that was far away and is now near 0 takes a third.
        for n_shifts in range(MAX_SHIFTS + 1):
            product, shifted_mean, cross = self._products(X, mean_weights, targets, sqrt_weights)
            variance, mean = product.diagonal() / total - shifted_mean * shifted_mean, self._shift + shifted_mean
            near = shifted_mean * shifted_mean <= MAX_MEAN_SQUARED_OVER_VARIANCE * variance
            if near.all() and math.isfinite(variance.sum()):
                break
            # A column near 1e200 overflows where it is not shifted, even if its values are close to each other.
            near &= np.isfinite(variance)
            # A constant column has no variance to compare with: its shift is right to within rounding, and moving it
            # again would not help. The same is true of NaN, which is not greater than anything.
            near |= ~(np.abs(shifted_mean) > 8 * EPS * np.abs(self._shift))
            if near.all() or n_shifts == MAX_SHIFTS:
                break
            # Seen from a shift of 1e16, a mean of 1 is 0 or 2. Where the shift is further from the mean than zero is,
            # go back to zero first, and to the mean in the next pass.
            new_shift = np.where(np.abs(shifted_mean) <= np.abs(mean), mean, 0.0)
            self._shift = np.where(near, self._shift, new_shift)
        scaled_mean = np.sqrt(total) * shifted_mean
        product -= scaled_mean[:, None] * scaled_mean
        scatter = _assembled(product, cross, targets.T @ targets)
        mean = np.concatenate([mean, mean_y])
        constant = _settle_constants((X, y), mean, scatter.diagonal() / total)
        if constant.any():
            scatter[constant] = scatter[:, constant] = 0.0
        return Sums(n_samples, total, mean, scatter, constant)

    def _products(
        self, X: Any, mean_weights: Array, targets: Array, sqrt_weights: Array | None
    ) -> tuple[Array, Array, Array]:
        """Return Z'Z, ``mean_weights`` Z and Z' ``targets`` for Z = ``sqrt_weights`` (X - shift)."""
        p, n_tile, is_shifted = X.shape[1], len(self._tile), self._shift.any()
        product, shifted_mean, cross = np.zeros((p, p)), np.zeros(p), np.zeros((p, targets.shape[1]))
        tile_product = np.empty_like(product)
        for start in range(0, len(X), n_tile):
            part = slice(start, start + n_tile)
            rows = X[part]
            tile = self._tile[: len(rows)]
            # Float64 rows that need neither a shift nor weights are read where they are.
            if is_shifted:
                rows = np.subtract(rows, self._shift, out=tile)
            if sqrt_weights is not None:
                rows = np.multiply(rows, sqrt_weights[part, None], out=tile)
            if rows.dtype != np.float64:
                np.copyto(tile, rows)
                rows = tile
            product += np.matmul(rows.T, rows, out=tile_product)
            shifted_mean += mean_weights[part] @ rows  # after the product, which brings the rows into the cache
            cross += rows.T @ targets[part]
        return product, shifted_mean, cross


def _factor_of_block(X: Any, y: Any, weight: Array | None, factor_requested: bool) -> Sums:
    X = X.toarray() if sp.issparse(X) else X
    total = float(len(X) if weight is None else weight.sum())
    normalized_weights = np.full(len(X), 1.0 / total) if weight is None else weight / total
    rows, mean = _centre(np.hstack([X, y], dtype=np.float64), normalized_weights)
    constant = _settle_constants((X, y), mean, np.einsum("ij,ij->j", rows, rows) / len(rows))
    rows[:, constant] = 0.0
    if weight is not None:
        rows *= np.sqrt(weight)[:, None]
    return Sums(len(X), total, mean, triangular_factor(rows), constant, True, factor_requested)


def _sparse_sums(X: Any, y: Array, weight: Array | None) -> Sums:
    X, n_samples = sp.csr_array(X, dtype=np.float64), X.shape[0]
    weight = np.ones(n_samples) if weight is None else weight
    total = float(weight.sum())
    targets, mean_y = _centre(y.astype(np.float64), weight / total)
    weighted = sp.diags_array(weight, format="csr") @ X
    mean = X.T @ (weight / total)
    product, cross = (X.T @ weighted).toarray(), weighted.T @ targets
    far = np.flatnonzero(mean * mean > MAX_MEAN_SQUARED_OVER_VARIANCE * (product.diagonal() / total - mean * mean))
    product -= total * np.outer(mean, mean)
    if len(far):
        # Centring makes a column dense, but these are all but dense already: zeros with a share q of the weight make
        # mean^2 <= (1 - q) / q variance, so that mean^2 > 100 variance leaves less than 1 % of them. A column of times
        # is such a column. Of these columns alone, one block of rows at a time is dense.
        residual_sum, all_with_far = np.zeros(len(far)), np.zeros((X.shape[1], len(far)))
        far_with_far, cross[far] = np.zeros((len(far), len(far))), 0.0
        for start in range(0, n_samples, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            deviations = X[block][:, far].toarray() - mean[far]
            weighted_deviations = deviations * weight[block, None]
            residual_sum += weighted_deviations.sum(axis=0)
            all_with_far += weighted[block].T @ deviations
            far_with_far += deviations.T @ weighted_deviations
            cross[far] += weighted_deviations.T @ targets[block]
        # The deviations sum to zero but for the rounding of the means, which is all that X need be centred by.
        product[:, far] = all_with_far - np.outer(mean, residual_sum)
        product[np.ix_(far, far)] = far_with_far - np.outer(residual_sum, residual_sum) / total
        product[far] = product[:, far].T
        mean[far] += residual_sum / total
    low, high = (np.asarray(bound) for bound in min_max_axis(X, axis=0))
    constant = np.concatenate([low == high, (y == y[0]).all(axis=0)])
    mean = np.where(constant, np.concatenate([low, y[0]]), np.concatenate([mean, mean_y]))
    scatter = _assembled(product, cross, (targets.T * weight) @ targets)
    scatter[constant] = scatter[:, constant] = 0.0
    # x_i (w x_j) and (w x_i) x_j are rounded differently, and a saved file must hold a symmetric matrix.
    return Sums(n_samples, total, mean, 0.5 * (scatter + scatter.T), constant)


def _assembled(xx: Array, xy: Array, yy: Array) -> Array:
    """Return the symmetric matrix of second moments from its blocks."""
    p, d = len(xx), len(xx) + len(yy)
    scatter = np.empty((d, d))
    scatter[:p, :p], scatter[:p, p:], scatter[p:, :p], scatter[p:, p:] = xx, xy, xy.T, yy
    return scatter


def _centre(rows: Any, normalized_weights: Array, out: Array | None = None) -> tuple[Array, Array]:
    """Return the rows minus their mean, and the mean."""
    mean = normalized_weights @ rows
    rows = np.subtract(rows, mean, out=out)
    # For values near 1e8 that differ by 1, the rounding of the mean is 1e-8 of the spread; the centred rows show it.
    residual_mean = normalized_weights @ rows
    rows -= residual_mean
    return rows, mean + residual_mean


def _settle_constants(values: tuple[Any, Any], mean: Array, variance: Array) -> npt.NDArray[np.bool_]:
    """Return which columns hold one value only, and make their means exact in place."""
    X, y = values
    # Rounding gives a column of 0.1 only a variance of about 1e-34, and standardizing would make noise of it. A
    # variance this small may be rounding or be real, as in 1e8 + a few ulps, so compare the values themselves; those
    # of all other columns need not be read again.
    constant = variance <= (4 * len(X) * EPS * mean) ** 2
    if not constant.any():
        return constant
    for j in np.flatnonzero(constant):
        column = np.asarray(X[:, j] if j < X.shape[1] else y[:, j - X.shape[1]], dtype=np.float64)
        constant[j] = (column == column[0]).all()
        if constant[j]:
            mean[j] = column[0]
    return constant
