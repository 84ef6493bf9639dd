"""What is asked of rows before and after they are summed up, and in which words it is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import assert_all_finite

Array = npt.NDArray[np.float64]

TINY = float(np.finfo(np.float64).tiny)


def dtypes_read(X: Any) -> list[Any]:
    """Return the dtypes that blocks are read in as they are; converting an array whole would be a copy of it."""
    plain = isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and X.dtype.itemsize <= 8 and X.dtype.isnative
    return [np.float64, np.float32, *([X.dtype] if plain else [])]


def as_floats(y: npt.NDArray[Any]) -> npt.NDArray[np.floating[Any]]:
    """Return y as float64, or as float32 if it is that already; raise a ValueError if it does not hold numbers."""
    if y.dtype.kind not in "fiub":
        raise ValueError(f"y has dtype {y.dtype}: expected numbers.")
    return y if y.dtype in (np.float64, np.float32) else y.astype(np.float64)


def check_resolved(mean: Array, squares: Array, constant: npt.NDArray[np.bool_], X: Any, y: Any, names: Any) -> None:
    """Raise if a value was NaN or infinite, or if squares left the range of float64.

    Parameters
    ----------
    mean, squares, constant : ndarray of shape (n_columns,)
        Of the columns of X and then of y: squares are sums or means of squared deviations.
    X, y : the data, looked at again for the message only
    names : array-like of shape (n_features,) or None
    """
    if not math.isfinite(squares.sum() + mean.sum()):
        assert_values_finite(X, y)
        unresolved, what = ~np.isfinite(squares), "overflow"
    else:
        unresolved, what = squares < TINY, "underflow"
        unresolved &= ~constant
        if not unresolved.any():
            return
    labels = column_names(names, X.shape[1])
    labels += [f"y{j}" for j in range(y.shape[1])]
    columns = ", ".join(printable(str(labels[j])) for j in np.flatnonzero(unresolved)[:5])
    raise ValueError(
        f"The squared deviations of {columns} {what} float64: change the unit of these columns so that "
        "their spread lies between 1e-150 and 1e150."
    )


def column_names(names: Any, n_features: int) -> list[str]:
    """Return the names of the columns as strings: x0, x1 and so on where they have none."""
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def printable(text: str) -> str:
    """Return the text with what is not to reach a terminal, such as control characters, written as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def canonical(X: Any) -> Any:
    """Return X with entries that are stored twice added up, X itself if there are none."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def assert_values_finite(X: Any, y: Any) -> None:
    """Raise with scikit-learn's message if a value is NaN or infinite."""
    assert_all_finite(X, input_name="X")
    assert_all_finite(y, input_name="y")
