"""Dask collections as Dask arrays of numbers, and predictions that stay in their partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.extmath import safe_sparse_dot

from fssgd._moments.checks import refuse_sparse
from fssgd._support.optional import is_dask

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

    if not is_dask(value):
        if chunks is None or np.isnan(chunks).any():
            raise ValueError(
                f"{name} is a {type(value).__name__}, which cannot be cut into the chunks of X, whose sizes are not "
                f"known: pass {name} as a Dask collection with the chunks of X, or make them known, by "
                "X.compute_chunk_sizes() for an array and X.to_dask_array(lengths=True) for a DataFrame."
            )
        value = np.asarray(value)
        if value.ndim == 0:  # one weight for all rows, which scikit-learn takes: here it would be cut into no chunk
            raise ValueError(f"{name} is {value!r}: expected one number for each row of X.")
        check_consistent_length(value, np.broadcast_to(0, (sum(chunks),)))
        value = da.from_array(value, chunks=(chunks, *value.shape[1:]))
    elif not isinstance(value, da.Array):
        value = _frame_to_array(value, name)
    if name != "X":  # a sparse y would pass every check here and fail inside a task
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
    # a block needs all columns of its rows
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

    lazy = (dask_array(value, name) if is_dask(value) else value for name, value in values.items())
    return tuple(dask.compute(*lazy))


def _frame_to_array(frame: Any, name: str) -> Any:
    from pandas.api.types import is_numeric_dtype

    dtypes = dict(frame.dtypes.items()) if frame.ndim == 2 else {frame.name: frame.dtype}
    odd = [
        f"{column!r} ({dtype})" for column, dtype in dtypes.items() if not is_numeric_dtype(dtype) or dtype.kind == "c"
    ]
    if odd:
        raise ValueError(f"{name} has columns that are not numeric: {', '.join(odd)}. Convert them, or leave them out.")
    # pandas' own dtypes (Int64, Float32) have no NumPy equal where values are missing: float64 holds them
    common = np.result_type(*(kind if isinstance(kind, np.dtype) else np.float64 for kind in dtypes.values()))
    dtype = np.dtype(np.float32 if common == np.float32 else np.float64)
    shape = (0, len(dtypes)) if frame.ndim == 2 else (0,)
    return frame.map_partitions(_values, dtype, meta=np.empty(shape, dtype))


def _values(frame: Any, dtype: np.dtype[Any]) -> Floats:
    return np.asarray(frame.to_numpy(dtype=dtype, na_value=np.nan))


def cut_like(array: Any, name: str, X: Any) -> Any:
    """Return the array in the partitions of X."""
    known = not np.isnan([array.shape[0], X.shape[0]]).any()
    if known and array.shape[0] != X.shape[0]:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {X.shape[0]} rows, {name} "
            f"has {array.shape[0]}."
        )
    if known:  # any partitions will do: they are cut again as those of X
        return array.rechunk({0: X.chunks[0]})
    if array.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"X has {X.numblocks[0]} partitions of rows and {name} has {array.numblocks[0]}, of sizes that are not all "
            "known: repartition both alike, or call compute_chunk_sizes() on them first."
        )
    return array
