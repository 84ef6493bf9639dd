"""Kinds of table, each with where its reader is and what to install for it; nothing is imported early."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._moments.table_spec import TableSpec
from fssgd._support.optional import load
from fssgd._support.registry import Entry, Registry

Array = npt.NDArray[np.float64]


_FILES = Entry("fssgd.tables.files:read_files", "fssgd[tables]")
_readers = Registry(
    "module:function",
    "Tables of {!r} have a reader already: pass overwrite=True to replace it.",
    {
        "pyarrow": Entry("fssgd.tables.arrow:read_arrow", "fssgd[tables]"),
        "pandas": Entry("fssgd.tables.frames:read_pandas"),
        "polars": Entry("fssgd.tables.frames:read_polars"),
        "pyspark": Entry("fssgd.tables.spark:read_spark", "fssgd[spark]"),
        "ibis": Entry("fssgd.tables.ibis:read_ibis", "fssgd[ibis]"),
        "dask.dataframe": Entry("fssgd.tables.dask:read_dask", "fssgd[dask]"),
    },
)
_predictors = Registry(
    "module:function",
    "Tables of {!r} have a function for predictions already: pass overwrite=True to replace it.",
    {
        "pyspark": Entry("fssgd.tables.spark:predict_spark", "fssgd[spark]"),
        "ibis": Entry("fssgd.tables.ibis:predict_ibis", "fssgd[ibis]"),
    },
)


def register_table(
    module_prefix: str, path: str, extra: str | None = None, overwrite: bool = False, predict: str | None = None
) -> None:
    """Make a kind of table known by the module that its class is defined in.

    Parameters
    ----------
    module_prefix : str
        The package, such as ``"vaex"``, or a module in it: a table whose class, or a base of it, is defined
        there is taken to this reader. The longest prefix that fits wins.
    path : str
        ``"module:function"``, imported when such a table is first passed. The function takes the table, a
        :class:`TableSpec` and ``progress`` to :class:`~fssgd.Moments`.
    extra : str, default=None
        The pip requirement to name when the import fails, such as ``"fssgd[tables]"``.
    overwrite : bool, default=False
        Replace an existing reader for this prefix.
    predict : str, default=None
        ``"module:function"`` behind :meth:`fssgd.LinearRegressorGD.predict_table`, for tables that are worked on
        where they are: it takes the table, the names of the features, coefficients of shape (n_outputs,
        n_features), intercepts of shape (n_outputs,) and the names of the columns to add, to a table with these.

    Raises
    ------
    ValueError
        If there is a reader for the prefix, or a path is not of the form "module:function".
    """
    if predict is not None:
        _predictors.check_path(predict, "predict")
    _readers.register(module_prefix, path, extra, overwrite)
    _predictors.discard(module_prefix)  # of the reader that is replaced: it may not understand the new one's tables
    if predict is not None:
        _predictors.register(module_prefix, predict, extra)


def read_table(
    table: Any,
    spec: TableSpec,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    progress: bool | None = None,
) -> Any:
    """Compute the moments of a table of any known kind.

    Parameters
    ----------
    table : Any
    spec : TableSpec
    checkpoint, checkpoint_every, progress
        All as for :meth:`fssgd.Moments.from_table`.

    Returns
    -------
    fssgd.Moments

    Raises
    ------
    TypeError
        If no reader knows the kind of table.
    ValueError
        If a checkpoint is asked of something that is not files, or the reader refuses the table.
    ImportError
        If what the reader needs is not installed; the message is the pip command to run.
    """
    if progress not in (None, True, False):
        raise ValueError(f"progress must be None, True or False, got {progress!r}.")
    if not (isinstance(checkpoint_every, (int, float)) and checkpoint_every >= 0):
        raise ValueError(f"checkpoint_every must be a number of seconds >= 0, got {checkpoint_every!r}.")
    if _is_files(table):
        read = load(_FILES.path, _FILES.extra, "reader of files")
        return read(table, spec, progress, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    prefix = _require_prefix(type(table))
    if checkpoint is not None:
        raise ValueError(
            f"checkpoint is for files, which can be read again from where a pass broke off, and a "
            f"{type(table).__qualname__} cannot: pass the paths of the files, or leave checkpoint out."
        )
    return _readers.load(prefix, f"reader of {type(table).__module__}")(table, spec, progress)


def _is_files(table: Any) -> bool:
    if isinstance(table, (list, tuple)):
        return bool(table) and all(isinstance(item, (str, os.PathLike)) for item in table)
    return isinstance(table, (str, os.PathLike))


def add_predictions(
    table: Any, features: Sequence[str], coef: Array, intercept: Array, predictions: Sequence[str]
) -> Any:
    """Return the table with columns of predictions, left to its engine; see ``predict`` of :func:`register_table`.

    Raises
    ------
    TypeError
        If no engine is known to work on this kind of table.
    """
    kind = type(table)
    prefix = _prefix_of(kind)
    if prefix is None or prefix not in _predictors:
        raise TypeError(
            f"predict_table is for tables that an engine works on ({', '.join(_predictors)}), got a {kind.__module__}."
            f"{kind.__qualname__}: pass its columns feature_names_in_ to predict."
        )
    predict = _predictors.load(prefix, f"reader of {kind.__module__}")
    return predict(table, features, coef, intercept, predictions)


def _prefix_of(kind: type) -> str | None:
    """Return the longest registered prefix of the module that a class, or the first of its bases, is defined in."""
    for base in kind.__mro__:
        module = base.__module__
        while module:
            if module in _readers:
                return module
            module = module.rpartition(".")[0]
    return None


def _require_prefix(kind: type) -> str:
    prefix = _prefix_of(kind)
    if prefix is not None:
        return prefix
    raise TypeError(
        f"No reader is known for a table of type {kind.__module__}.{kind.__qualname__}: pass the path of Parquet or "
        f"CSV files, a table of {', '.join(_readers)}, arrays to Moments.from_arrays, or see "
        "fssgd.tables.register_table."
    )
