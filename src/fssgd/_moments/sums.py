"""What a set of rows adds up to, and how that of two sets is added and taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

KEPT = 1e-4


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


def merge_sums(a: Sums, b: Sums) -> Sums:
    """Sum up two sets of rows that describe the same columns."""
    weight = a.weight + b.weight
    delta = b.mean - a.mean
    mean = a.mean + delta * (b.weight / weight) if a.weight >= b.weight else b.mean - delta * (a.weight / weight)
    constant = a.constant & b.constant & (delta == 0)
    between = delta * np.sqrt(a.weight * (b.weight / weight))
    n_samples, chosen = a.n_samples + b.n_samples, a.chosen and b.chosen
    if a.is_root and b.is_root and (chosen or n_samples < len(mean) and not (a.chosen or b.chosen)):
        root = triangular_factor(np.vstack([a.matrix, b.matrix, between]))
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


def triangular_factor(root: Array) -> Array:
    """Return the triangular factor of ``root``, or ``root`` itself if that has no more rows."""
    return root if len(root) <= root.shape[1] else np.asarray(np.linalg.qr(root, mode="r"))
