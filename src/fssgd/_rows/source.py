"""What a fit needs of its data, in memory or elsewhere: two protocols, before and after the coordinates are known."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fssgd._descent.coordinates import Coordinates
from fssgd._moments.column_statistics import ColumnStatistics
from fssgd._moments.moments import Moments

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]


class Source(Protocol):
    """Rows in the user's units, in memory or elsewhere."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of X: float64 or float32."""

    @property
    def shape(self) -> tuple[float, int]:
        """Number of rows, NaN where it is not known, and of features."""

    @property
    def single_output(self) -> bool:
        """Whether y is 1-D."""

    @property
    def decomposition_size(self) -> float:
        """The size that a decomposition has to cope with."""

    def moments(self, names: Any = None) -> Moments:
        """Return the moments of the rows, or raise if a value is not finite; ``names`` are those of the features."""

    def columns(self, names: Any = None) -> ColumnStatistics:
        """Measure the columns of X and then of y one by one, or raise if a value is not finite."""

    def rows(self, coordinates: Coordinates) -> WeightedRows:
        """Return the rows of positive weight in the coordinates of a descent."""


class WeightedRows(Protocol):
    """The rows of a problem in the coordinates of its descent, wherever they are."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    def squared_residual_and_gradient(self, theta: Floats) -> tuple[Any, Floats]:
        """||A theta - T||^2, and A' (A theta - T) of shape (n_parameters, n_outputs)."""

    def gram_matvec(self, vector: Floats) -> Floats:
        """A' A vector, of shape (n_parameters, n_outputs)."""

    def moments(self, names: Any = None, *, accurate: bool = False) -> Moments:
        """Read the moments off the rows in the user's units."""
