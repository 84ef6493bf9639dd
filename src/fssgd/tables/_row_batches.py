"""Rows of files or of a CSV stream, for predictions and for methods that need more than moments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fssgd._moments.moments import Moments
from fssgd._moments.table_spec import TableSpec
from fssgd.tables._row_pass import TablePass
from fssgd.tables.arrow import import_pyarrow
from fssgd.tables.files import open_files

Array = npt.NDArray[np.float64]


class RowSource(NamedTuple):
    """Rows that are read when they are iterated over.

    Parameters
    ----------
    where : str
        What to call them in messages.
    spec : TableSpec
        Columns that are read, with the features filled in.
    batches : iterator of (list of ndarray of shape (n_rows,), str, int)
        Columns of some rows, path of their file and its number.
    """

    where: str
    spec: TableSpec
    batches: Iterator[tuple[list[npt.NDArray[Any]], str, int]]


class LoadedRows(NamedTuple):
    """All rows in memory, with their moments.

    Parameters
    ----------
    moments : Moments
        Moments of the rows.
    X : pyarrow.Table of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    weight : ndarray of shape (n_samples,) or None
        Sample weights.
    """

    moments: Moments
    X: Any
    y: Array
    weight: Array | None


def open_rows(table: Any, spec: TableSpec) -> RowSource:
    """Open files, or a binary stream of CSV, and check the columns.

    Parameters
    ----------
    table : path, list of paths, or binary file object
        Files as for :meth:`fssgd.Moments.from_table`. A stream is read once, from its current position.
    spec : TableSpec
        Columns to read; the target may be empty.

    Returns
    -------
    RowSource
    """
    source = open_files(table, spec)
    return RowSource(source.where, source.spec, source.batches())


def read_rows(table: Any, spec: TableSpec) -> Moments:
    """Compute the moments of what :func:`open_rows` opens."""
    source = open_rows(table, spec)
    with TablePass(source.spec, source.where) as rows:
        for batch in source.batches:
            rows.add(*batch)
    return rows.moments()


def load_rows(table: Any, spec: TableSpec) -> LoadedRows:
    """Load what :func:`open_rows` opens into memory, with the checks of :class:`TablePass`."""
    source, blocks = open_rows(table, spec), []
    with TablePass(source.spec, source.where) as rows:
        for arrays, where, file in source.batches:
            rows.add(arrays, where, file)
            blocks.append(arrays)
    moments = rows.moments()
    columns = [np.concatenate(parts, dtype=np.float64) for parts in zip(*blocks, strict=True)]
    if rows.state.dropped:  # the moments are of the other rows only
        kept = ~np.any([np.isnan(column) for column in columns], axis=0)
        columns = [column[kept] for column in columns]
    p, t = moments.n_features, moments.n_outputs
    X = import_pyarrow().table(dict(zip(source.spec.features or (), columns[:p], strict=True)))
    y = columns[p] if t == 1 else np.column_stack(columns[p : p + t])
    return LoadedRows(moments, X, y, None if spec.weight is None else columns[-1])
