"""Rows in memory, validated but for their finiteness, which shows in their sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fssgd._descent.coordinates import Coordinates
from fssgd._moments.checks import canonical, check_resolved, rows_that_count
from fssgd._moments.column_statistics import ColumnStatistics
from fssgd._moments.moments import Moments
from fssgd._rows.design import Rows, working_dtype

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Rows in memory.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
        As :func:`~fssgd._moments.checks.dtypes_read` has it.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,) or None
    """

    X: Any
    y: npt.NDArray[np.floating[Any]]
    weight: Array | None

    @property
    def dtype(self) -> np.dtype[Any]:
        return working_dtype(self.X)

    @property
    def shape(self) -> tuple[float, int]:
        return self.X.shape[0], self.X.shape[1]

    @property
    def single_output(self) -> bool:
        return self.y.ndim == 1

    @property
    def decomposition_size(self) -> float:
        """Of a sparse matrix the number of features: the rows of a wide one would have to be made dense."""
        # n rows of p columns have a p x p scatter matrix or an n x p factor, whichever is smaller
        return float(self.X.shape[1] if sp.issparse(self.X) else min(self.X.shape))

    @property
    def _outputs(self) -> npt.NDArray[np.floating[Any]]:
        return self.y.reshape(len(self.y), -1)

    @cached_property
    def _counted(self) -> tuple[Any, npt.NDArray[np.floating[Any]], Array | None]:
        """The rows of positive weight."""
        # once for the statistics and the design; kept, rows of weight 0 would count as samples and slow every step down
        return rows_that_count(self.X, self._outputs, self.weight)

    def moments(self, names: Any = None) -> Moments:
        return Moments.of_rows(self.X, self._outputs, self.weight, feature_names=names)

    def columns(self, names: Any = None) -> ColumnStatistics:
        X, y, weight = self._counted
        X = canonical(X)  # entries stored twice would each count as a value of the column
        columns = ColumnStatistics.of(X, y, weight)
        check_resolved(columns.mean, columns.variance, columns.constant, X, y, names, columns.weight)
        return columns

    def rows(self, coordinates: Coordinates) -> Rows:
        X, y, weight = self._counted
        return Rows(canonical(X), y, weight, coordinates)
