"""Registry of the readers of tables, found by the package of the table and imported when first used."""

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
    """Register the reader of a kind of table, by the module that the class of the table is defined in.

    Parameters
    ----------
    module_prefix : str
        The package, such as ``"vaex"``, or a module in it. Tables whose class, or a base of it, is defined
        there are passed to this reader; the longest matching prefix wins.
    path : str
        ``"module:function"``, imported when such a table is first passed. The function is called with the table, a
        :class:`TableSpec` and ``progress``, and returns :class:`~fssgd.Moments`.
    extra : str, default=None
        The pip requirement to name when the import fails, such as ``"fssgd[tables]"``.
    overwrite : bool, default=False
        Replace an existing reader for this prefix.
    predict : str, default=None
        ``"module:function"`` for :meth:`fssgd.LinearRegressorGD.predict_table`, for tables of an engine that can
        compute predictions itself. The function is called with the table, the names of the features, coefficients of
        shape (n_outputs, n_features), intercepts of shape (n_outputs,) and the names of the columns to add, and
        returns a table with these columns.

    Raises
    ------
    ValueError
        If the prefix has a reader already, or a path is not of the form "module:function".
    """
    if predict is not None:
        _predictors.check_path(predict, "predict")
    _readers.register(module_prefix, path, extra, overwrite)
    _predictors.discard(module_prefix)  # a replaced reader takes its function for predictions with it
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
    """Compute the moments of a table of any registered kind.

    Parameters
    ----------
    table : path, list of paths, or table
        As in :meth:`fssgd.Moments.from_table`.
    spec : TableSpec
        Columns to read.
    checkpoint, checkpoint_every, progress
        As in :meth:`fssgd.Moments.from_table`.

    Returns
    -------
    fssgd.Moments

    Raises
    ------
    TypeError
        If there is no reader for this kind of table.
    ValueError
        If a checkpoint is requested for anything but files, or the reader refuses the table.
    ImportError
        If a package that the reader needs is not installed; the message names the pip command.
    """
    if progress not in (None, True, False):
        raise ValueError(f"progress must be None, True or False, got {progress!r}.")
    if not (isinstance(checkpoint_every, (int, float)) and checkpoint_every >= 0):
        raise ValueError(f"checkpoint_every must be a number of seconds >= 0, got {checkpoint_every!r}.")
    # Paths come first: str and list are defined in builtins, where no reader is looked for.
    if _is_files(table):
        read = load(_FILES.path, _FILES.extra, "reader of files")
        return read(table, spec, progress, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    prefix = _require_prefix(type(table))
    if checkpoint is not None:
        raise ValueError(
            f"checkpoint is for files, which can be read again from the row where a pass ended, and a "
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
    """Return the table with columns of predictions that its engine computes; see :func:`register_table`.

    Raises
    ------
    TypeError
        If this kind of table has no function for predictions.
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
    # The bases too: a GeoDataFrame of geopandas is read as the pandas DataFrame that it is.
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
        f"There is no reader for tables of type {kind.__module__}.{kind.__qualname__}: pass the path of Parquet or "
        f"CSV files or a table of {', '.join(_readers)}, pass arrays to Moments.from_arrays, or add a reader with "
        "fssgd.tables.register_table."
    )
