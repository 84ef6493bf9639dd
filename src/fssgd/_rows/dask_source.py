"""Rows in Dask collections, summed up and stepped over where their partitions are.

A partition is summed up by one task, of which Dask makes one with those that read it, and the sums are
merged in a tree. For stepping the partitions are laid out as designs once and kept by the workers;
a pass sends theta out and brings a loss and a gradient back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_consistent_length

from fssgd._descent.coordinates import Coordinates
from fssgd._moments.checks import (
    NoWeightError,
    as_floats,
    assert_values_finite,
    canonical,
    check_resolved,
    check_weight,
    refuse_sparse,
    rows_that_count,
)
from fssgd._moments.column_statistics import ColumnStatistics, merge_columns
from fssgd._moments.moments import Moments
from fssgd._moments.row_sums import sums_of_rows
from fssgd._moments.sums import Sums, merge_sums
from fssgd._rows.dask_arrays import check_shape, cut_like, dask_array, example_of
from fssgd._rows.dask_graph import one_thread_each, tree_sum
from fssgd._rows.design import Design, Rows, is_far, mean_of_centred, working_dtype
from fssgd._support.sklearn_private import _get_feature_names

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class DaskSource:
    """Rows in a Dask collection; build one with :meth:`of`.

    Parameters
    ----------
    X : dask array of shape (n_samples, n_features)
    y : dask array of shape (n_samples,) or (n_samples, n_outputs)
    weight : dask array of shape (n_samples,) or None
        All in the same partitions of rows.
    """

    X: Any
    y: Any
    weight: Any

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any) -> DaskSource:
        """Check all that is known before anything is computed, and cut y and the weights as X is cut.

        Raises
        ------
        ValueError
            If shapes or dtypes do not fit, or partitions do not and their sizes are not known.
        """
        X = dask_array(X, "X")
        check_shape(X, "X", (2,))
        if y is None:
            raise ValueError("A fit requires y to be passed, but the target y is None.")
        # all that can be told without computing is told now: a partition's error would come hours later
        others = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
        arrays = {name: dask_array(value, name, X.chunks[0]) for name, value in others.items()}
        for (name, array), allowed in zip(arrays.items(), ((1, 2), (1,)), strict=False):
            check_shape(array, name, allowed)
        parts = {name: cut_like(array, name, X) for name, array in arrays.items()}
        return cls(X, parts["y"], parts.get("sample_weight"))

    @property
    def dtype(self) -> np.dtype[Any]:
        return working_dtype(self.X)

    @property
    def shape(self) -> tuple[float, int]:
        return self.X.shape[0], self.X.shape[1]

    @property
    def single_output(self) -> bool:
        return bool(self.y.ndim == 1)

    @property
    def decomposition_size(self) -> float:
        """The number of features where that of rows is not known."""
        # partitions read from files do not know their lengths, and counting them is a pass over the data
        n_samples, n_features = self.shape
        return n_features if np.isnan(n_samples) else min(n_samples, n_features)

    def moments(self, names: Any = None, *, accurate: bool = False) -> Moments:
        sums = self._total(partial(_sums, accurate=accurate), merge_sums)
        self._check(sums.mean, sums.squares, sums.constant, names, sums.weight)
        return Moments(sums, len(sums.mean) - self.shape[1], names)

    def columns(self, names: Any = None) -> ColumnStatistics:
        columns: ColumnStatistics = self._total(_columns, merge_columns)
        self._check(columns.mean, columns.variance, columns.constant, names, columns.weight)
        return columns

    def rows(self, coordinates: Coordinates) -> DaskRows:
        return DaskRows(self, coordinates)

    def mean_of_centred(self, coordinates: Coordinates) -> Array:
        """Do as the function of this name; without a pass over the rows where it is 0 for certain."""
        if not is_far(coordinates).any():
            return np.zeros(self.shape[1])
        weight, left = self._total(partial(_weighted_mean_of_centred, coordinates=coordinates), _add)
        return np.asarray(left / weight)

    def blocks(self, function: Callable[..., Any], **settings: Any) -> list[Any]:
        """Return ``function(X, y, weight, **settings)`` of the rows of positive weight, delayed, for each partition.

        They come as a :class:`_PartialResult`, with None instead of a result where no row has positive weight.
        """
        import dask.array as da

        pairs = [self.X, "ij", self.y, "ij"[: self.y.ndim].replace("j", "k")]
        pairs += [] if self.weight is None else [self.weight, "i"]
        # one task a partition, fused by Dask with those that read it: nothing but what it returns leaves the worker
        task = partial(_task, function=function, dtype=self.dtype, settings=settings)
        parts = da.blockwise(
            task, "i", *pairs, dtype=object, meta=np.empty(0, object), concatenate=True, align_arrays=False
        )
        return list(parts.to_delayed())

    def _total(self, function: Callable[..., Any], merge: Callable[[Any, Any], Any]) -> Any:
        total: _PartialResult = tree_sum(self.blocks(function), partial(_merge, merge=merge))
        # told apart: no rows at all is a mistake, no weight may be one batch of many (NoWeightError of partial_fit)
        if total.n_rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {self.shape[1]})): at least one partition must have rows."
            )
        if total.result is None:
            raise NoWeightError("Sample weights must contain at least one non-zero number.")
        return total.result

    def _check(self, mean: Array, squares: Array, constant: npt.NDArray[np.bool_], names: Any, weight: float) -> None:
        """Raise for what only shows in the total: the values themselves were checked where they are."""
        # the constant of one partition may be another one of the next, so this cannot be asked of each
        n_features = self.shape[1]
        outputs = np.empty((0, len(mean) - n_features))
        check_resolved(mean, squares, constant, np.empty((0, n_features)), outputs, names, weight)


def moments_of_dask(X: Any, y: Any, sample_weight: Any, *, accurate: bool) -> Moments:
    """Return the moments of Dask collections, as :meth:`fssgd.Moments.from_arrays` does."""
    names = _get_feature_names(example_of(X))
    return DaskSource.of(X, y, sample_weight).moments(names, accurate=accurate)


class _PartialResult(NamedTuple):
    """The result of some partitions: their number of rows, and None where none has a positive weight."""

    n_rows: int
    result: Any


class _DesignBlock(NamedTuple):
    """The design of a partition, weighted by the total of its own rows."""

    n_samples: int
    weight: float
    design: Design


@dataclass(frozen=True, eq=False)
class DaskRows:
    """The weighted rows of a problem, partition by partition, as :class:`~fssgd._rows.design.Rows` in memory.

    Parameters
    ----------
    source : DaskSource
    coordinates : Coordinates
    """

    source: DaskSource
    coordinates: Coordinates

    @cached_property
    def _kept(self) -> list[Any]:
        """The designs, held by whoever computes."""
        import dask

        mean = self.source.mean_of_centred(self.coordinates)
        blocks = self.source.blocks(_design, coordinates=self.coordinates, mean_of_all=mean)
        # persisted: laid out anew, a design would cost as much as the step that uses it
        with one_thread_each(len(blocks)):
            return list(dask.persist(*blocks))

    @cached_property
    def _size(self) -> tuple[int, float]:
        """Number of rows of positive weight, and their weight."""
        n_samples, weight = self._sum(_size_of)
        return int(n_samples), float(weight)

    @property
    def n_samples(self) -> int:
        return self._size[0]

    def squared_residual_and_gradient(self, theta: Floats) -> tuple[Any, Floats]:
        """||A theta - T||^2, and A' (A theta - T) of shape (n_parameters, n_outputs)."""
        error, back = self._sum(_residual_and_gradient_of, theta, self._size[1])
        return error, back

    def gram_matvec(self, vector: Floats) -> Floats:
        """A' A vector, of shape (n_parameters, n_outputs)."""
        (product,) = self._sum(_gram_matvec_of, vector, self._size[1])
        return np.asarray(product)

    def moments(self, names: Any = None, *, accurate: bool = False) -> Moments:
        """Read the moments off the rows in the user's units."""
        return self.source.moments(names, accurate=accurate)

    def _sum(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        each = partial(_apply, function)
        total: _PartialResult = tree_sum(self._kept, partial(_merge, merge=_add), each, arguments)
        return tuple(total.result)


def _task(
    X: Any, y: Floats, weight: Any = None, *, function: Callable[..., Any], dtype: Any, settings: dict[str, Any]
) -> _PartialResult:
    check_consistent_length(X, y, weight)
    n_rows = int(X.shape[0])
    if n_rows == 0:  # as a filter leaves them; scikit-learn's checks refuse what has no rows
        return _PartialResult(0, None)
    X = canonical(sp.csr_array(X, dtype=dtype)) if sp.issparse(X) else np.asarray(X, dtype=dtype)
    refuse_sparse(y)
    y = as_floats(np.asarray(y).reshape(n_rows, -1))
    if weight is not None:
        # a partition may have zero weights only, where not all of them have
        weight = check_weight(np.asarray(weight), X, allow_all_zero=True)
        X, y, weight = rows_that_count(X, y, weight)
    return _PartialResult(n_rows, function(X, y, weight, **settings) if len(y) else None)


def _merge(a: _PartialResult, b: _PartialResult, *, merge: Callable[[Any, Any], Any]) -> _PartialResult:
    n_rows = a.n_rows + b.n_rows
    if a.result is None or b.result is None:  # nothing to merge: a partition without a row of positive weight
        return _PartialResult(n_rows, b.result if a.result is None else a.result)
    with np.errstate(over="ignore", invalid="ignore"):
        return _PartialResult(n_rows, merge(a.result, b.result))


def _apply(function: Callable[..., Any], part: _PartialResult, *arguments: Any) -> _PartialResult:
    return part._replace(result=None if part.result is None else function(part.result, *arguments))


def _add(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one + other for one, other in zip(a, b, strict=True))


def _sums(X: Any, y: Floats, weight: Array | None, *, accurate: bool) -> Sums:
    sums = sums_of_rows(X, y, weight, accurate=accurate)
    _check_values(sums.squares, sums.mean, X, y)
    return sums


def _columns(X: Any, y: Floats, weight: Array | None) -> ColumnStatistics:
    columns = ColumnStatistics.of(X, y, weight)
    _check_values(columns.variance, columns.mean, X, y)
    return columns


def _check_values(squares: Array, mean: Array, X: Any, y: Floats) -> None:
    # here, where the values are: the total says only that some partition has one that is not finite
    if not math.isfinite(squares.sum() + mean.sum()):
        assert_values_finite(X, y)


def _design(X: Any, y: Floats, weight: Array | None, **place: Any) -> _DesignBlock:
    rows = Rows(X, y, weight, **place)
    return _DesignBlock(rows.n_samples, float(len(y) if weight is None else weight.sum()), rows.design)


def _weighted_mean_of_centred(X: Any, y: Floats, weight: Array | None, *, coordinates: Coordinates) -> tuple[Any, ...]:
    total = float(len(y) if weight is None else weight.sum())
    return total, total * mean_of_centred(X, weight, coordinates)


def _size_of(kept: _DesignBlock) -> tuple[Any, ...]:
    return kept.n_samples, kept.weight


def _residual_and_gradient_of(kept: _DesignBlock, theta: Floats, total: float) -> tuple[Any, ...]:
    # a design is weighted by the total of its own partition, as that of all was not known when it was laid out
    share = kept.weight / total
    with np.errstate(over="ignore", invalid="ignore"):
        error, back = kept.design.squared_residual_and_gradient(theta)
        return share * error, share * back


def _gram_matvec_of(kept: _DesignBlock, vector: Floats, total: float) -> tuple[Any, ...]:
    return (kept.weight / total * kept.design.gram_matvec(vector),)
