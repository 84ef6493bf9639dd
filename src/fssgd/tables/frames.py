"""Readers of the DataFrames of pandas and polars, and of LazyFrames, which polars streams."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fssgd._moments.moments import Moments
from fssgd._moments.table_spec import Column, TableSpec
from fssgd.tables._row_pass import TablePass
from fssgd.tables.arrow import BATCH_ROWS


def read_pandas(table: Any, spec: TableSpec, progress: bool | None) -> Moments:
    """Compute the moments of a pandas DataFrame."""
    import pandas as pd

    where = "the pandas DataFrame"
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"A pandas {type(table).__name__} is not a table: pass a DataFrame.")
    spec = spec.choose(_columns_of_frame(table), where)
    with TablePass(spec, where, progress, len(table)) as rows:
        add_pandas(rows, table, spec)
    return rows.moments()


def pandas_columns(dtypes: Any) -> list[Column]:
    """Return the columns of a DataFrame that has these ``dtypes``."""
    from pandas.api.types import is_numeric_dtype

    return [
        Column(name, str(dtype), dtype.kind == "b" or (is_numeric_dtype(dtype) and dtype.kind != "c"))
        for name, dtype in dtypes.items()
    ]


def _columns_of_frame(table: Any) -> list[Column]:
    """Return the columns of a DataFrame; those of dtype object may hold Python numbers, such as Decimal."""
    columns = pandas_columns(table.dtypes)
    return [
        one._replace(numeric=True) if one.type == "object" and _holds_numbers(table.iloc[:, j]) else one
        for j, one in enumerate(columns)
    ]


def _holds_numbers(series: Any) -> bool:
    from pandas.api.types import infer_dtype

    kind = infer_dtype(series, skipna=True)
    if kind in ("mixed", "mixed-integer"):  # such as Decimal and float in one column
        return all(isinstance(value, (Real, Decimal)) for value in series.dropna())
    return kind in ("decimal", "integer", "floating", "mixed-integer-float", "boolean")


def add_pandas(rows: TablePass, table: Any, spec: TableSpec) -> None:
    """Add the rows of a pandas DataFrame to a pass, batch by batch."""
    series = [table[name] for name in spec.columns]
    # A NumPy column is sliced without a copy. Others, such as Int64 with pandas.NA, are converted batch by batch.
    arrays = [one.to_numpy() if isinstance(one.dtype, np.dtype) and one.dtype != object else None for one in series]
    for start in range(0, len(table), BATCH_ROWS):
        part = slice(start, start + BATCH_ROWS)
        rows.add(
            [
                one.iloc[part].to_numpy(dtype=np.float64, na_value=np.nan) if array is None else array[part]
                for one, array in zip(series, arrays, strict=True)
            ]
        )


def read_polars(table: Any, spec: TableSpec, progress: bool | None) -> Moments:
    """Compute the moments of a polars DataFrame or LazyFrame."""
    import polars as pl

    if not isinstance(table, (pl.DataFrame, pl.LazyFrame)):
        raise TypeError(f"A polars {type(table).__name__} is not a table: pass a DataFrame or LazyFrame.")
    where = f"the polars {type(table).__name__}"
    schema = table.collect_schema()
    columns = [Column(name, str(kind), kind.is_numeric() or kind == pl.Boolean) for name, kind in schema.items()]
    spec = spec.choose(columns, where)
    total = len(table) if isinstance(table, pl.DataFrame) else None
    selected: Any = table.select(pl.col(spec.columns).cast(pl.Float64))
    if total is not None:
        batches = selected.iter_slices(BATCH_ROWS)
    elif hasattr(selected, "collect_batches"):
        batches = selected.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)
    else:  # polars before 1.34
        batches = selected.collect().iter_slices(BATCH_ROWS)
    with TablePass(spec, where, progress, total) as rows:
        for batch in batches:
            rows.add([column.to_numpy() for column in batch.iter_columns()])
    return rows.moments()
