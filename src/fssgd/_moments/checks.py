"""Validation of X, y, the sample weights and their sums, with the error messages."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import assert_all_finite

from fssgd._support.sklearn_private import _check_sample_weight
from fssgd._support.words import column_names, printable

Array = npt.NDArray[np.float64]

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


class NoWeightError(ValueError):
    """All sample weights are zero, and the data is valid otherwise."""


EXPECTED_SHAPES = {
    "X": "(n_samples, n_features)",
    "y": "(n_samples,) or (n_samples, n_outputs)",
    "sample_weight": "(n_samples,)",
}


def check_arrays(X: Any, y: Any = None, sample_weight: Any = None) -> None:
    """Raise a TypeError for a path, the name of a column, a mapping or a sparse y, with what to pass instead.

    NumPy would make an array of one object of them, and its message would name neither the argument nor the remedy.
    """
    for name, value in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        if (
            value is None
            or isinstance(value, np.ndarray)
            or (what := _describe_non_array(value, look_into_lists=name == "X")) is None
        ):
            continue
        advice = (
            "such as pandas.read_csv returns. To fit files without loading them, pass "
            "Moments.from_table(path, target=...) to fit_moments."
            if name == "X"
            else "one for each row of X. If it is a column of a table, pass the column and not its name."
        )
        raise TypeError(f"{name} is {what}: expected numbers of shape {EXPECTED_SHAPES[name]}, {advice}")
    refuse_sparse(y)


def _describe_non_array(value: Any, look_into_lists: bool) -> str | None:
    """Return what a value is if it cannot be an array, for the error message, and None if it can."""
    if isinstance(value, str | bytes | os.PathLike):
        return f"the text or path {value if isinstance(value, str | bytes) else os.fspath(value)!r}"
    # In X a list of texts is a list of files or column names; in y it may be labels, which have their own message.
    if look_into_lists and isinstance(value, list | tuple) and value:
        are_paths = all(isinstance(item, str | bytes | os.PathLike) for item in value)
        return f"a {type(value).__name__} of texts or paths (the first is {str(value[0])!r})" if are_paths else None
    has_rows = any(hasattr(value, name) for name in ("__array__", "__len__", "shape"))
    # A dict of columns has a length but no rows; a dok_array is a dict as well, and may be X.
    if isinstance(value, Number) or (has_rows and not isinstance(value, Mapping)) or sp.issparse(value):
        return None
    return f"a {type(value).__module__}.{type(value).__qualname__}"


@contextmanager
def within_float64(what: str) -> Iterator[None]:
    """Turn the OverflowError of a Python integer above the range of float64 into a ValueError."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(
            f"A number in {what} is above {np.finfo(np.float64).max:.1e}, the largest float64: change the unit."
        ) from error


def check_weight(sample_weight: Any, X: Any, *, allow_all_zero: bool = False) -> Array:
    """Return the weights of the rows of X as float64, or raise a ValueError if they are not valid weights."""
    weight: Array = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=allow_all_zero
    )
    if isinstance(sample_weight, Number):  # scikit-learn fills an array with it and does not check it
        assert_all_finite(weight[:1], input_name="sample_weight")
    # Each weight may be finite and their sum, which everything is divided by, infinite.
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total == np.inf:
        raise ValueError(f"The sample weights overflow float64: {_advice_on_weights(total)}")
    return weight


def _advice_on_weights(total: float) -> str:
    return (
        f"the weights sum to {total:.0e}, and only their ratios matter, so divide them all by one number such that "
        "they are near 1."
    )


def refuse_sparse(y: Any) -> None:
    """Raise a TypeError if y is a sparse matrix, or a DataFrame of sparse columns."""
    if sp.issparse(y):
        raise TypeError(
            f"y is sparse (a {type(y).__name__}): expected an array of shape {EXPECTED_SHAPES['y']}, pass y.toarray()."
        )
    # Left to NumPy, such a DataFrame would become a dense array, however large that is.
    if getattr(y, "ndim", 0) == 2 and hasattr(y, "dtypes"):
        sparse = [str(dtype) for dtype in y.dtypes if str(dtype).startswith("Sparse")]
        if sparse:
            raise TypeError(f"y is sparse (columns of dtype {sparse[0]}): expected numbers, pass y.sparse.to_dense().")


def dtypes_read(X: Any) -> list[Any]:
    """Return the dtypes of X that validation keeps, because the sums convert one block at a time, and not a copy of X.

    Longer floats, foreign byte orders and objects are converted to float64 as a whole.
    """
    is_plain = isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and X.dtype.itemsize <= 8 and X.dtype.isnative
    return [np.float64, np.float32, *([X.dtype] if is_plain else [])]


def as_floats(y: npt.NDArray[Any]) -> npt.NDArray[np.floating[Any]]:
    """Return y as float64, or as float32 if it is that already; raise a ValueError if it does not hold numbers."""
    if y.dtype.kind not in "fiub":
        raise ValueError(f"y has dtype {y.dtype}: expected numbers.")
    return y if y.dtype in (np.float64, np.float32) else y.astype(np.float64)


def check_resolved(
    mean: Array, squares: Array, constant: npt.NDArray[np.bool_], X: Any, y: Any, names: Any, weight: float = 1.0
) -> None:
    """Raise if a value was NaN or infinite, or if squares left the range of float64.

    Parameters
    ----------
    mean, squares, constant : ndarray of shape (n_columns,)
        Statistics of the columns of X and then of y; squares are sums or means of squared deviations.
    X, y : array of shape (n_samples, n_features), (n_samples, n_outputs)
        The data, which is read again for the message only.
    names : array-like of shape (n_features,) or None
        Names of the columns of X.
    weight : float, default=1.0
        Sum of the weights, which may be the cause.
    """
    # NaN and infinity in the data reach the sums: one look at these replaces a pass over the data for valid input.
    if not math.isfinite(squares.sum() + mean.sum()):
        assert_values_finite(X, y)
        unresolved, what = ~np.isfinite(squares), "overflow"
    else:
        # A spread of 1e-160 has a square of 0, and the column would be taken for a constant one.
        unresolved, what = squares < SMALLEST_NORMAL, "underflow"
        unresolved &= ~constant
        if not unresolved.any():
            return
    # Weights of 1e-200 make the squares of the most ordinary column underflow.
    if not 1e-100 < weight < 1e100:
        raise ValueError(
            f"The squared deviations, times the sample weights, {what} float64: {_advice_on_weights(weight)}"
        )
    labels = column_names(names, X.shape[1])
    labels += [f"y{j}" for j in range(y.shape[1])]
    columns = ", ".join(printable(str(labels[j])) for j in np.flatnonzero(unresolved)[:5])
    raise ValueError(
        f"The squared deviations of {columns} {what} float64: change the unit of these columns so that "
        "their spread lies between 1e-150 and 1e150."
    )


def canonical(X: Any) -> Any:
    """Return X with duplicate entries summed, or X itself if there are none.

    The sums square entries one by one, which is wrong for an entry that is stored as two terms.
    """
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def rows_that_count(X: Any, y: Any, weight: Array | None) -> tuple[Any, Any, Array | None]:
    """Return the rows of positive weight; those of weight 0 are checked for NaN, as scikit-learn does, and left out."""
    if weight is None or weight.all():
        return X, y, weight
    positive = weight > 0
    assert_values_finite(X[~positive], y[~positive])
    return X[positive], y[positive], weight[positive]


def assert_values_finite(X: Any, y: Any) -> None:
    """Raise with scikit-learn's message if a value is NaN or infinite."""
    assert_all_finite(X, input_name="X")
    assert_all_finite(y, input_name="y")
