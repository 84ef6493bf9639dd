"""Sufficient statistics of a set of rows, and their addition and subtraction.

Two sets of rows are merged by the pairwise formula of Chan, Golub and LeVeque (1983).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

MIN_REMAINING_FRACTION = 1e-4  # of weight and variation after a subtraction: about 12 of 16 digits are left


@dataclass(frozen=True, eq=False)
class Sums:
    """Sufficient statistics of a set of rows, the columns of X and y side by side.

    Parameters
    ----------
    n_samples : int
        Number of rows of positive weight.
    weight : float
        Sum of the weights of these rows.
    mean : ndarray of shape (n_columns,)
        Weighted means.
    matrix : ndarray of shape (n_columns, n_columns), or (n_factor_rows, n_columns) for a factor
        The centred second moments, or a factor R with R'R equal to them and n_factor_rows <= n_columns.
    constant : ndarray of shape (n_columns,) of bool
        Columns that hold one value only; their means are exact, their second moments exactly 0.
    is_factor : bool
        Whether ``matrix`` is the factor.
    factor_requested : bool
        Whether the user asked for the factor. If not, it is kept only while it is smaller than the second moments.
    """

    n_samples: int
    weight: float
    mean: Array
    matrix: Array
    constant: npt.NDArray[np.bool_]
    is_factor: bool = False
    factor_requested: bool = False

    @cached_property
    def squares(self) -> Array:
        """Diagonal of the second moments."""
        return np.einsum("ij,ij->j", self.matrix, self.matrix) if self.is_factor else self.matrix.diagonal()

    def second_moments(self, rows: slice, columns: slice) -> Array:
        """Return a block of the second moments."""
        return self.matrix[:, rows].T @ self.matrix[:, columns] if self.is_factor else self.matrix[rows, columns]


def merge_sums(a: Sums, b: Sums) -> Sums:
    """Return the sums of two sets of rows together; both must have the same columns."""
    weight = a.weight + b.weight
    delta = b.mean - a.mean
    # Start from the mean of the heavier set, so that the correction and its rounding are small: a mean keeps its
    # digits through a thousand merges with blocks.
    mean = a.mean + delta * (b.weight / weight) if a.weight >= b.weight else b.mean - delta * (a.weight / weight)
    constant = a.constant & b.constant & (delta == 0)  # the means of constant columns are exact, so == is meant
    # Not sqrt(a.weight * b.weight / weight): the product of two weights above 1e154 overflows.
    between = delta * np.sqrt(a.weight * (b.weight / weight))
    n_samples, factor_requested = a.n_samples + b.n_samples, a.factor_requested and b.factor_requested
    fits = n_samples < len(mean) and not (a.factor_requested or b.factor_requested)
    if a.is_factor and b.is_factor and (factor_requested or fits):
        factor = triangular_factor(np.vstack([a.matrix, b.matrix, between]))
        return Sums(n_samples, weight, mean, factor, constant, True, factor_requested)
    # One side has lost the digits that a factor keeps, or the factor would be as large as the second moments.
    every = slice(None)
    scatter = a.second_moments(every, every) + b.second_moments(every, every)
    scatter += np.outer(between, between)
    return Sums(n_samples, weight, mean, scatter, constant)


def remove_sums(total: Sums, part: Sums) -> Sums:
    """Return the sums of the rows of ``total`` that are not in ``part``, the inverse of :func:`merge_sums`.

    Raises
    ------
    ValueError
        If the remaining weight, or the second moment of a column, is too small a part of the total to be accurate.
    """
    weight, n_samples = total.weight - part.weight, total.n_samples - part.n_samples
    if n_samples < 1 or not weight > MIN_REMAINING_FRACTION * total.weight:
        raise ValueError(
            f"Subtracting {part.n_samples} rows of weight {part.weight:g} from {total.n_samples} rows of weight "
            f"{total.weight:g} leaves too little to be accurate: compute the moments of the remaining rows instead."
        )
    # Taking rows out of a factor loses the digits that the factor was asked for.
    if total.is_factor:
        raise ValueError(
            "Accurate moments cannot be subtracted from: compute the moments of the remaining rows instead."
        )
    delta = total.mean - part.mean
    between = delta * np.sqrt(part.weight * (total.weight / weight))
    every = slice(None)
    matrix = total.matrix - part.second_moments(every, every) - np.outer(between, between)
    # The weight alone does not tell: without its only outlier a column has hardly any variation left.
    cancelled = (matrix.diagonal() < MIN_REMAINING_FRACTION * total.squares) & ~total.constant
    if cancelled.any():
        raise ValueError(
            f"Subtraction would leave {int(cancelled.sum())} of {len(cancelled)} columns with less than "
            f"{MIN_REMAINING_FRACTION:g} of their variation, which may be rounding error: compute the moments of the "
            "remaining rows instead."
        )
    return Sums(n_samples, weight, total.mean + delta * (part.weight / weight), matrix, total.constant)


def triangular_factor(factor: Array) -> Array:
    """Return the R of a QR decomposition of ``factor``, or ``factor`` itself if it has no more rows than columns."""
    return factor if len(factor) <= factor.shape[1] else np.asarray(np.linalg.qr(factor, mode="r"))
