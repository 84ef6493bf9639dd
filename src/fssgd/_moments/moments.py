"""The public class :class:`Moments`: the sufficient statistics of a least-squares problem.

The columns of ``X`` and ``y`` are kept side by side: a count, a weight, the means, and the
centred second moments, either as the *scatter* matrix ``sum_i s_i d_i d_i'`` (d_i = row i minus
the mean) or, if more digits are wanted, as a *factor* ``R`` with ``R' R`` equal to it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_X_y

from fssgd._moments.checks import (
    as_floats,
    canonical,
    check_arrays,
    check_resolved,
    check_weight,
    dtypes_read,
    within_float64,
)
from fssgd._moments.moments_file import read_moments, write_moments
from fssgd._moments.row_sums import sums_of_rows
from fssgd._moments.sums import Sums, merge_sums, remove_sums
from fssgd._moments.table_registry import read_table
from fssgd._moments.table_spec import TableSpec
from fssgd._support.optional import is_dask, load
from fssgd._support.sklearn_private import _get_feature_names

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """Mergeable sufficient statistics of a least-squares problem.

    Build one with :meth:`from_arrays`, add them with ``+``. All moments are float64, whatever
    the data was.

    Attributes
    ----------
    n_samples : int
        Number of rows of positive weight.
    weight_sum : float
        Sum of the weights; ``n_samples`` for unweighted rows.
    n_features, n_outputs : int
        Number of columns of X and of y.
    feature_names : ndarray of shape (n_features,) of object, or None
        Column names, where the data had any.
    mean_x, mean_y : ndarray of shape (n_features,), (n_outputs,)
        Weighted means.
    scatter_xx, scatter_xy, scatter_yy : ndarray of shape (n_features, n_features), \
            (n_features, n_outputs), (n_outputs, n_outputs)
        Weighted sums of products of deviations from the means (not divided by anything).
    accurate : bool
        Whether a triangular factor is carried instead of the scatter matrix.

    References
    ----------
    Chan, T. F., Golub, G. H. and LeVeque, R. J. (1983). Algorithms for computing the sample
    variance. The American Statistician 37(3), 242-247. :doi:`10.1080/00031305.1983.10483115`

    Examples
    --------
    >>> import numpy as np
    >>> from fssgd import Moments
    >>> x, y = np.array([[4.0], [7.0], [13.0], [16.0]]), np.arange(4.0)
    >>> m = Moments.from_arrays(x[:1] + 1e9, y[:1]) + Moments.from_arrays(x[1:] + 1e9, y[1:])
    >>> m.n_samples, float(m.mean_x[0]), float(m.scatter_xx[0, 0])
    (4, 1000000010.0, 90.0)
    """

    __module__ = "fssgd"

    sums: Sums
    n_outputs: int
    feature_names: npt.NDArray[np.object_] | None = None

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None, *, accurate: bool = False) -> Moments:
        """Compute the moments of arrays in one pass over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Features, in any numeric dtype, memory order or stride. An array of up to 64 bits a value is converted
            block by block and never copied as a whole; the partitions of a Dask array or DataFrame are summed by the
            workers that hold them.
        y : array-like or Dask collection of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Non-negative weights; rows of weight 0 are ignored.
        accurate : bool, default=False
            Compute the R factor of a blocked QR decomposition of the centred rows instead of their scatter
            matrix: about 14 times the work, and an error that grows with the condition number
            rather than with its square. For data with more columns than rows the factor is always computed.

        Returns
        -------
        Moments

        Raises
        ------
        ValueError
            If the shapes disagree, a value is not finite, or no weight is positive.
        """
        # Before validation, which would fail on a path or a sparse y with a message about something else.
        check_arrays(X, y, sample_weight)
        if is_dask(X):
            read = load("fssgd._rows.dask_source:moments_of_dask", "fssgd[dask]", "reader of Dask collections")
            moments: Moments = read(X, y, sample_weight, accurate=accurate)
            return moments
        names = _get_feature_names(X)
        # Finiteness is not validated here: it would cost a pass of its own, and the sums show it (check_resolved).
        with within_float64("X, y or sample_weight"):
            X, y = check_X_y(
                X,
                y,
                accept_sparse="csr",
                dtype=dtypes_read(X),
                ensure_all_finite=False,
                multi_output=True,
                y_numeric=True,
            )
            if sample_weight is not None:
                sample_weight = check_weight(sample_weight, X)
        return cls.of_rows(X, as_floats(y).reshape(len(y), -1), sample_weight, accurate=accurate, feature_names=names)

    @classmethod
    def of_rows(
        cls, X: Any, y: Any, weight: Array | None, *, accurate: bool = False, feature_names: Any = None
    ) -> Moments:
        """Compute the moments of arrays whose shapes and dtypes are validated already; finiteness is checked here.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
        y : ndarray of shape (n_samples, n_outputs)
        weight : ndarray of shape (n_samples,) or None
        accurate : bool, default=False
        feature_names : ndarray of shape (n_features,) of object, default=None

        Returns
        -------
        Moments
        """
        X = canonical(X)
        sums = sums_of_rows(X, y, weight, accurate=accurate)
        check_resolved(sums.mean, sums.squares, sums.constant, X, y, feature_names, sums.weight)
        return cls(sums, y.shape[1], feature_names)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        target: str | Sequence[str],
        features: Sequence[str] | None = None,
        weight: str | None = None,
        accurate: bool = False,
        on_missing: Literal["raise", "drop"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        progress: bool | None = None,
    ) -> Moments:
        """Compute the moments of a table in one pass over its rows, in constant memory.

        Parameters
        ----------
        table : path, list of paths, or table
            Parquet or CSV files (comma-separated, in UTF-8, plain or compressed): one, a glob, a folder (with hive
            partitions), or a list of these, in which no file may occur twice, not even through a link; a pyarrow
            Table, RecordBatch, RecordBatchReader or Dataset; a pandas or polars DataFrame; a polars LazyFrame;
            a Dask or Spark DataFrame, whose partitions are summed by the workers that hold them; an ibis table, view,
            join or other expression, whose engine (DuckDB, PostgreSQL, ...) computes the sums in several queries,
            between which the table must not change. :func:`fssgd.tables.register_table` adds kinds of table.
        target : str or list of str
            Column of the output, or columns of several.
        features : list of str, default=None
            Columns of the features, in this order. None is every other column of numbers or booleans, in the
            order of the table, with a warning that names the columns left out. A column must be numeric in all
            files; if text in a CSV file begins after its first 1 MB, the files are read again without that column
            (with a ``checkpoint`` it is an error). The index that pandas or Dask wrote into Parquet, or without a
            name into CSV, is a feature only if it is named here. A Spark column of vectors gives one feature for each
            element, ``name_0`` and so on; None includes such columns if no other column is numeric.
        weight : str, default=None
            Column of non-negative weights.
        accurate : bool, default=False
            As in :meth:`from_arrays`; not available for ibis tables.
        on_missing : {"raise", "drop"}, default="raise"
            Whether rows with a null or NaN in one of these columns raise an error, or are left out with a warning
            that counts them.
        checkpoint : str or path-like, default=None
            An ``.npz`` file for the state of a pass over files. A pass that was killed is resumed from
            it, with bitwise the same moments; a complete one returns them at once. Delete the file to
            start again.
        checkpoint_every : float, default=30.0
            Seconds between two checkpoints.
        progress : bool, default=None
            Whether to show a progress bar on stderr, which needs rich. None shows one if rich is installed,
            stderr is a terminal and the pass takes more than 2 s.

        Returns
        -------
        Moments

        Raises
        ------
        ValueError
            If a column is missing or not numeric, a value is missing or infinite, a weight is negative, there are
            no rows, a file is listed twice, is damaged or belongs to a Delta or Iceberg table, the table changed
            while it was read, or the checkpoint is damaged or belongs to other data or settings.
        FileNotFoundError
            If a path does not exist.
        TypeError
            If no reader knows this kind of table.
        ImportError
            If the package that reads it is not installed; the message names the pip command.

        Examples
        --------
        >>> import pandas as pd
        >>> from fssgd import LinearRegressorGD, Moments
        >>> table = pd.DataFrame({"rooms": [1, 2, 4], "garden": [True, False, True], "price": [3.0, 4.0, 9.0]})
        >>> model = LinearRegressorGD().fit_moments(Moments.from_table(table, target="price"))
        >>> list(model.feature_names_in_), model.coef_.round(6)
        (['rooms', 'garden'], array([2., 1.]))
        """
        spec = TableSpec.of(target, features, weight, accurate, on_missing)
        moments = read_table(table, spec, checkpoint=checkpoint, checkpoint_every=checkpoint_every, progress=progress)
        if not isinstance(moments, cls):  # register_table takes the reader of any package
            raise TypeError(
                f"The reader of {type(table).__module__} returned a {type(moments).__qualname__} instead of Moments."
            )
        return moments

    @property
    def n_samples(self) -> int:
        """Number of rows of positive weight."""
        return self.sums.n_samples

    @property
    def weight_sum(self) -> float:
        """Sum of the weights."""
        return self.sums.weight

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return len(self.sums.mean) - self.n_outputs

    @property
    def mean_x(self) -> Array:
        """Weighted means of X, of shape (n_features,)."""
        return self.sums.mean[: self.n_features]

    @property
    def mean_y(self) -> Array:
        """Weighted means of y, of shape (n_outputs,)."""
        return self.sums.mean[self.n_features :]

    @property
    def scatter_xx(self) -> Array:
        """Centred second moments of X, of shape (n_features, n_features)."""
        return self.sums.second_moments(*self._slices("xx"))

    @property
    def scatter_xy(self) -> Array:
        """Centred second moments of X and y, of shape (n_features, n_outputs)."""
        return self.sums.second_moments(*self._slices("xy"))

    @property
    def scatter_yy(self) -> Array:
        """Centred second moments of y, of shape (n_outputs, n_outputs)."""
        return self.sums.second_moments(*self._slices("yy"))

    @property
    def accurate(self) -> bool:
        """Whether a triangular factor is carried instead of the scatter matrix."""
        return self.sums.is_factor

    @property
    def factor_x(self) -> Array:
        """Columns of the factor that belong to X, of shape (n_factor_rows, n_features)."""
        return self.sums.matrix[:, : self.n_features]

    @property
    def factor_y(self) -> Array:
        """Columns of the factor that belong to y, of shape (n_factor_rows, n_outputs)."""
        return self.sums.matrix[:, self.n_features :]

    def _slices(self, block: str) -> list[slice]:
        p = self.n_features
        return [slice(None, p) if side == "x" else slice(p, None) for side in block]

    @property
    def variance_x(self) -> Array:
        """Population variance of each feature, exactly 0 for constant columns and for no others."""
        return self.sums.squares[: self.n_features] / self.weight_sum

    @property
    def variance_y(self) -> Array:
        """Population variance of each output, exactly 0 for constant outputs and for no others."""
        return self.sums.squares[self.n_features :] / self.weight_sum

    def __add__(self, other: object) -> Moments:
        """Return the moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        names = self._shared_names(other, "added to")
        return Moments(merge_sums(self.sums, other.sums), self.n_outputs, names)

    def __sub__(self, other: object) -> Moments:
        """Return the moments of the rows that are in self but not in other.

        A difference that would not be accurate raises a ValueError.
        """
        if not isinstance(other, Moments):
            return NotImplemented
        names = self._shared_names(other, "subtracted from")
        return Moments(remove_sums(self.sums, other.sums), self.n_outputs, names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the moments as ``.npz``, atomically and without pickles.

        Parameters
        ----------
        path : str or path-like
            The file to write, with no suffix added; its folder must exist.
        """
        write_moments(path, self.sums, self.n_outputs, self.feature_names)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """Read moments that :meth:`save` wrote, without executing any code from the file.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        Moments

        Raises
        ------
        ValueError
            If the file does not hold moments, or is damaged.
        """
        return cls(*read_moments(path))

    def _shared_names(self, other: Moments, operation: str) -> npt.NDArray[np.object_] | None:
        mine, theirs = (self.n_features, self.n_outputs), (other.n_features, other.n_outputs)
        if mine != theirs:
            raise ValueError(
                f"Moments of {theirs[0]} features and {theirs[1]} outputs cannot be {operation} moments of {mine[0]} "
                f"features and {mine[1]} outputs: both sides must describe the same columns."
            )
        names, others = self.feature_names, other.feature_names
        if names is not None and others is not None and list(names) != list(others):
            raise ValueError(
                f"Moments of the columns {list(others)} cannot be {operation} moments of {list(names)}: "
                "use the same column names in the same order."
            )
        # Moments of an array without names take those of the other side: that may be the rest of the same data.
        return names if names is not None else others

    def __repr__(self) -> str:
        return (
            f"Moments(n_samples={self.n_samples}, n_features={self.n_features}, "
            f"n_outputs={self.n_outputs}, accurate={self.accurate})"
        )
