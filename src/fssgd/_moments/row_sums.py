"""One pass over rows: block by block to a count, a weight, means and centred second moments.

A block's products are taken as they are and centred afterwards by a rank-one correction. That
subtracts squares of the mean, which is harmless while mean^2 <= 100 variance. Columns further from
the origin are shifted first, by the mean of an earlier block if that is near enough, else by their own.
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

from fssgd._moments.checks import NoWeightError, assert_values_finite
from fssgd._moments.sums import Sums, merge_sums, triangular_factor

Array = npt.NDArray[np.float64]

BLOCK_ROWS = 4096
BLOCK_SIZE, LARGEST_SIZE = 1 << 18, 1 << 20  # values; fewer stay in cache, more calls cost more (measured)
HARMLESS = 100.0
EPS = float(np.finfo(np.float64).eps)


def sums_of_rows(X: Any, y: Any, weight: Array | None, *, accurate: bool) -> Sums:
    """Sum up dense or CSR rows; ``y`` is 2-D, ``weight`` non-negative."""
    if weight is not None and not weight.all():
        kept = weight > 0
        assert_values_finite(X[~kept], y[~kept])
        if not kept.any():
            raise NoWeightError(
                f"All {len(weight)} sample weights are zero: at least one row must have a positive weight."
            )
        X, y, weight = X[kept], y[kept], weight[kept]
    n_samples, n_columns = X.shape[0], X.shape[1] + y.shape[1]
    wide = n_samples < X.shape[1]
    if sp.issparse(X) and not (accurate or wide):
        with np.errstate(over="ignore", invalid="ignore"):
            return _sparse_sums(X, y, weight)
    n_tile = n_block = rows_of_block(n_columns, accurate)
    sums_of_block: Callable[[Any, Any, Array | None], Sums] = partial(_root_of_block, chosen=accurate)
    if not (accurate or wide):
        blocks = _DenseBlocks(X, y, n_tile)
        n_block, sums_of_block = blocks.n_block, blocks.sums
    total = None
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n_samples, n_block):
            part = slice(start, start + n_block)
            one = sums_of_block(X[part], y[part], None if weight is None else weight[part])
            total = one if total is None else merge_sums(total, one)
    assert total is not None
    return total


def rows_of_block(n_columns: int, accurate: bool) -> int:
    """Return how many rows are summed up at a time."""
    if accurate:
        return max(BLOCK_ROWS, 2 * n_columns)
    return max(BLOCK_ROWS, BLOCK_SIZE // n_columns, min(2 * BLOCK_ROWS, LARGEST_SIZE // n_columns))


class _DenseBlocks:
    """Sums up the blocks of an array, each a tile of the size of a cache at a time.

    They share their memory: paged in anew for every block, it cost as much as the rows (measured).

    Parameters
    ----------
    X, y : ndarray of shape (n_samples, n_features), (n_samples, n_outputs)
        What the blocks are cut from.
    n_tile : int
        Number of rows in a tile.
    """

    def __init__(self, X: Any, y: Any, n_tile: int) -> None:
        n_samples, n_outputs = y.shape
        self.n_block = min(n_samples, n_tile * max(1, BLOCK_SIZE // (1 + n_outputs) // n_tile))
        self._share, self._targets = np.empty(self.n_block), np.empty((self.n_block, n_outputs))
        self._tile = np.empty_like(X[:n_tile], dtype=np.float64, subok=False)
        self._shift = np.zeros(X.shape[1])

    def sums(self, X: Any, y: Any, weight: Array | None) -> Sums:
        """Sum up one block of at most ``n_block`` rows."""
        n_samples = len(X)
        total = float(n_samples) if weight is None else float(weight.sum())
        share, root = self._share[:n_samples], None
        share[:] = 1.0 / total if weight is None else weight / total
        targets, mean_y = _centre(y, share, self._targets[:n_samples])
        if weight is not None:
            root = np.sqrt(weight)
            targets *= root[:, None]
            np.divide(root, total, out=share)
        for moves_left in (2, 1, 0):
            product, rest, cross = self._products(X, share, targets, root)
            variance, mean = product.diagonal() / total - rest * rest, self._shift + rest
            near = rest * rest <= HARMLESS * variance
            if near.all() and math.isfinite(variance.sum()):
                break
            near &= np.isfinite(variance)
            near |= ~(np.abs(rest) > 8 * EPS * np.abs(self._shift))  # no more than the rounding of the shift, or NaN
            if near.all() or not moves_left:
                break
            # from far away the mean is known to the rounding of the distance only: then see it from the origin first
            moved = np.where(np.abs(rest) <= np.abs(mean), mean, 0.0)
            self._shift = np.where(near, self._shift, moved)
        raised = np.sqrt(total) * rest
        product -= raised[:, None] * raised
        scatter = _assembled(product, cross, targets.T @ targets)
        mean = np.concatenate([mean, mean_y])
        constant = _settle_constants((X, y), mean, scatter.diagonal() / total)
        if constant.any():
            scatter[constant] = scatter[:, constant] = 0.0
        return Sums(n_samples, total, mean, scatter, constant)

    def _products(self, X: Any, share: Array, targets: Array, root: Array | None) -> tuple[Array, Array, Array]:
        """Return Z'Z, ``share`` Z and Z' ``targets`` for Z = ``root`` (X - shift)."""
        p, n_tile, shifted = X.shape[1], len(self._tile), self._shift.any()
        product, rest, cross = np.zeros((p, p)), np.zeros(p), np.zeros((p, targets.shape[1]))
        of_tile = np.empty_like(product)
        for start in range(0, len(X), n_tile):
            part = slice(start, start + n_tile)
            rows = X[part]
            room = self._tile[: len(rows)]
            if shifted:
                rows = np.subtract(rows, self._shift, out=room)
            if root is not None:
                rows = np.multiply(rows, root[part, None], out=room)
            if rows.dtype != np.float64:
                np.copyto(room, rows)
                rows = room
            product += np.matmul(rows.T, rows, out=of_tile)
            rest += share[part] @ rows  # after the product, which reads the rows while it computes
            cross += rows.T @ targets[part]
        return product, rest, cross


def _root_of_block(X: Any, y: Any, weight: Array | None, chosen: bool) -> Sums:
    X = X.toarray() if sp.issparse(X) else X
    total = float(len(X) if weight is None else weight.sum())
    share = np.full(len(X), 1.0 / total) if weight is None else weight / total
    rows, mean = _centre(np.hstack([X, y], dtype=np.float64), share)
    constant = _settle_constants((X, y), mean, np.einsum("ij,ij->j", rows, rows) / len(rows))
    rows[:, constant] = 0.0
    if weight is not None:
        rows *= np.sqrt(weight)[:, None]
    return Sums(len(X), total, mean, triangular_factor(rows), constant, True, chosen)


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


def _centre(rows: Any, share: Array, out: Array | None = None) -> tuple[Array, Array]:
    """Subtract the mean, then what its rounding left behind."""
    mean = share @ rows
    rows = np.subtract(rows, mean, out=out)
    rest = share @ rows
    rows -= rest
    return rows, mean + rest


def _settle_constants(values: tuple[Any, Any], mean: Array, variance: Array) -> npt.NDArray[np.bool_]:
    """Find the columns of one value only, and make their means exact.

    Only a column whose computed variance could be rounding is looked at again.
    """
    X, y = values
    constant = variance <= (4 * len(X) * EPS * mean) ** 2
    if not constant.any():
        return constant
    for j in np.flatnonzero(constant):
        column = np.asarray(X[:, j] if j < X.shape[1] else y[:, j - X.shape[1]], dtype=np.float64)
        constant[j] = (column == column[0]).all()
        if constant[j]:
            mean[j] = column[0]
    return constant
