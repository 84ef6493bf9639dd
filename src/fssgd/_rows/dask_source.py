"""Data in Dask collections: summed up and stepped over where its partitions are.

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
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.extmath import safe_sparse_dot

from fssgd._descent.coordinates import Scaling
from fssgd._moments.checks import (
    NoWeightError,
    as_floats,
    assert_values_finite,
    canonical,
    check_resolved,
    check_weight,
    refuse_sparse,
)
from fssgd._moments.column_statistics import ColumnStatistics, merge_columns
from fssgd._moments.moments import Moments
from fssgd._moments.row_sums import sums_of_rows
from fssgd._moments.sums import Sums, merge_sums
from fssgd._rows.dask_graph import is_collection, one_thread_each, tree_sum
from fssgd.backends._problem import Design, Rows, is_far, mean_left_by_centring, working_dtype

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]


def dask_array(value: Any, name: str, chunks: Any = None) -> Any:
    """Return a collection as a Dask array of numbers; anything else is cut into ``chunks``.

    Parameters
    ----------
    value : Dask collection or array-like
    name : str
        What to call it in messages.
    chunks : tuple of int, default=None
        Numbers of rows.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    ValueError
        If it is not numeric, or has to be cut and the chunks are not known.
    """
    import dask.array as da

    if not is_collection(value):
        if chunks is None or np.isnan(chunks).any():
            raise ValueError(
                f"{name} is a {type(value).__name__}, which cannot be cut into the chunks of X, whose sizes are not "
                f"known: pass {name} as a Dask collection with the chunks of X, or make them known, by "
                "X.compute_chunk_sizes() for an array and X.to_dask_array(lengths=True) for a DataFrame."
            )
        value = np.asarray(value)
        if value.ndim == 0:
            raise ValueError(f"{name} is {value!r}: expected one number for each row of X.")
        check_consistent_length(value, np.broadcast_to(0, (sum(chunks),)))
        value = da.from_array(value, chunks=(chunks, *value.shape[1:]))
    elif not isinstance(value, da.Array):
        value = _frame_to_array(value, name)
    if name != "X":
        refuse_sparse(value._meta)
    if value.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {value.dtype}: expected numbers, convert it with {name}.astype(float).")
    return value


def check_shape(array: Any, name: str, allowed: tuple[int, ...]) -> None:
    """Raise a ValueError unless a Dask array has one of the allowed numbers of dimensions, and known columns."""
    if array.ndim not in allowed:
        raise ValueError(f"{name} has {array.ndim} dimensions, expected {' or '.join(map(str, allowed))}: reshape it.")
    if np.isnan(array.shape[1:]).any() or 0 in array.shape[1:]:
        raise ValueError(f"{name} has shape {array.shape}: expected a known number of columns, at least 1.")


def example_of(X: Any) -> Any:
    """Return no rows of X in memory, with the names of its columns if it has any."""
    return X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))


def predict_lazily(X: Any, coef: Floats, intercept: Any) -> Any:
    """Return the predictions as a Dask array in the partitions of X, to be computed when asked for."""
    columns = () if coef.ndim == 1 else (len(coef),)
    return X.rechunk({1: -1}).map_blocks(
        _predict,
        coef,
        intercept,
        dtype=np.result_type(X.dtype, coef.dtype),
        chunks=(X.chunks[0], *((column,) for column in columns)),
        drop_axis=None if columns else 1,
        meta=np.empty((0,) * (1 + len(columns)), np.result_type(X.dtype, coef.dtype)),
    )


def _predict(X: Any, coef: Floats, intercept: Any) -> Any:
    assert_all_finite(X, input_name="X")
    return safe_sparse_dot(X, coef.T, dense_output=True) + intercept


def gathered(**values: Any) -> tuple[Any, ...]:
    """Return the values in memory, those that are Dask collections computed together."""
    import dask

    lazy = (dask_array(value, name) if is_collection(value) else value for name, value in values.items())
    return tuple(dask.compute(*lazy))


def _frame_to_array(frame: Any, name: str) -> Any:
    from pandas.api.types import is_numeric_dtype

    dtypes = dict(frame.dtypes.items()) if frame.ndim == 2 else {frame.name: frame.dtype}
    odd = [
        f"{column!r} ({dtype})" for column, dtype in dtypes.items() if not is_numeric_dtype(dtype) or dtype.kind == "c"
    ]
    if odd:
        raise ValueError(f"{name} has columns that are not numeric: {', '.join(odd)}. Convert them, or leave them out.")
    common = np.result_type(*(kind if isinstance(kind, np.dtype) else np.float64 for kind in dtypes.values()))
    dtype = np.dtype(np.float32 if common == np.float32 else np.float64)
    shape = (0, len(dtypes)) if frame.ndim == 2 else (0,)
    return frame.map_partitions(_values, dtype, meta=np.empty(shape, dtype))


def _values(frame: Any, dtype: np.dtype[Any]) -> Floats:
    return np.asarray(frame.to_numpy(dtype=dtype, na_value=np.nan))


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
        others = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
        arrays = {name: dask_array(value, name, X.chunks[0]) for name, value in others.items()}
        for (name, array), allowed in zip(arrays.items(), ((1, 2), (1,)), strict=False):
            check_shape(array, name, allowed)
        parts = {name: _cut(array, name, X) for name, array in arrays.items()}
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

    def rows(self, scaling: Scaling, level: Array, fit_intercept: bool) -> DaskRows:
        return DaskRows(self, scaling, level, fit_intercept)

    def mean_left_by_centring(self, scaling: Scaling) -> Array:
        """As the function of this name; read off the rows only where it is not 0 for certain."""
        if not is_far(scaling).any():
            return np.zeros(self.shape[1])
        weight, left = self._total(partial(_left_by_centring, scaling=scaling), _add)
        return np.asarray(left / weight)

    def blocks(self, function: Callable[..., Any], **settings: Any) -> list[Any]:
        """Return ``function(X, y, weight, **settings)`` of the rows of positive weight, delayed, for each partition.

        They come as a :class:`_PartialResult`, with None instead of a result where no row has positive weight.
        """
        import dask.array as da

        pairs = [self.X, "ij", self.y, "ij"[: self.y.ndim].replace("j", "k")]
        pairs += [] if self.weight is None else [self.weight, "i"]
        task = partial(_task, function=function, dtype=self.dtype, settings=settings)
        parts = da.blockwise(
            task, "i", *pairs, dtype=object, meta=np.empty(0, object), concatenate=True, align_arrays=False
        )
        return list(parts.to_delayed())

    def _total(self, function: Callable[..., Any], merge: Callable[[Any, Any], Any]) -> Any:
        total: _PartialResult = tree_sum(self.blocks(function), partial(_merge, merge=merge))
        if total.n_rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {self.shape[1]})): at least one partition must have rows."
            )
        if total.result is None:
            raise NoWeightError("Sample weights must contain at least one non-zero number.")
        return total.result

    def _check(self, mean: Array, squares: Array, constant: npt.NDArray[np.bool_], names: Any, weight: float) -> None:
        """Raise for what only shows in the total: the values themselves were checked where they are."""
        n_features = self.shape[1]
        outputs = np.empty((0, len(mean) - n_features))
        check_resolved(mean, squares, constant, np.empty((0, n_features)), outputs, names, weight)


class _PartialResult(NamedTuple):
    """What came of some partitions: how many rows they have, and None if none of positive weight."""

    n_rows: int
    result: Any


class _DesignBlock(NamedTuple):
    """The design of a partition, in shares of its own weight."""

    n_samples: int
    weight: float
    design: Design


@dataclass(frozen=True, eq=False)
class DaskRows:
    """The weighted rows of a problem, partition by partition, as :class:`~fssgd.backends._problem.Rows` in memory.

    Parameters
    ----------
    source : DaskSource
    scaling : Scaling
    level : ndarray of shape (n_outputs,)
    fit_intercept : bool
    """

    source: DaskSource
    scaling: Scaling
    level: Array
    fit_intercept: bool

    @cached_property
    def _kept(self) -> list[Any]:
        """The designs, held by whoever computes."""
        import dask

        place = {"scaling": self.scaling, "level": self.level, "fit_intercept": self.fit_intercept}
        place["mean_rest"] = self.source.mean_left_by_centring(self.scaling)
        blocks = self.source.blocks(_design, **place)
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


def _cut(array: Any, name: str, X: Any) -> Any:
    """Return the array in the partitions of X."""
    known = not np.isnan([array.shape[0], X.shape[0]]).any()
    if known and array.shape[0] != X.shape[0]:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {X.shape[0]} rows, {name} "
            f"has {array.shape[0]}."
        )
    if known:
        return array.rechunk({0: X.chunks[0]})
    if array.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"X has {X.numblocks[0]} partitions of rows and {name} has {array.numblocks[0]}, of sizes that are not all "
            "known: repartition both alike, or call compute_chunk_sizes() on them first."
        )
    return array


def _task(
    X: Any, y: Floats, weight: Any = None, *, function: Callable[..., Any], dtype: Any, settings: dict[str, Any]
) -> _PartialResult:
    check_consistent_length(X, y, weight)
    n_rows = int(X.shape[0])
    if n_rows == 0:
        return _PartialResult(0, None)
    X = canonical(sp.csr_array(X, dtype=dtype)) if sp.issparse(X) else np.asarray(X, dtype=dtype)
    refuse_sparse(y)
    y = as_floats(np.asarray(y).reshape(n_rows, -1))
    if weight is not None:
        weight = check_weight(np.asarray(weight), X, allow_all_zero=True)
        if not weight.all():
            kept = weight > 0
            assert_values_finite(X[~kept], y[~kept])
            X, y, weight = X[kept], y[kept], weight[kept]
    return _PartialResult(n_rows, function(X, y, weight, **settings) if len(y) else None)


def _merge(a: _PartialResult, b: _PartialResult, *, merge: Callable[[Any, Any], Any]) -> _PartialResult:
    n_rows = a.n_rows + b.n_rows
    if a.result is None or b.result is None:
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
    if not math.isfinite(squares.sum() + mean.sum()):
        assert_values_finite(X, y)


def _design(X: Any, y: Floats, weight: Array | None, **place: Any) -> _DesignBlock:
    rows = Rows(X, y, weight, **place)
    return _DesignBlock(rows.n_samples, float(len(y) if weight is None else weight.sum()), rows.design)


def _left_by_centring(X: Any, y: Floats, weight: Array | None, *, scaling: Scaling) -> tuple[Any, ...]:
    total = float(len(y) if weight is None else weight.sum())
    return total, total * mean_left_by_centring(X, weight, scaling)


def _size_of(kept: _DesignBlock) -> tuple[Any, ...]:
    return kept.n_samples, kept.weight


def _residual_and_gradient_of(kept: _DesignBlock, theta: Floats, total: float) -> tuple[Any, ...]:
    share = kept.weight / total
    with np.errstate(over="ignore", invalid="ignore"):
        error, back = kept.design.squared_residual_and_gradient(theta)
        return share * error, share * back


def _gram_matvec_of(kept: _DesignBlock, vector: Floats, total: float) -> tuple[Any, ...]:
    return (kept.weight / total * kept.design.gram_matvec(vector),)
