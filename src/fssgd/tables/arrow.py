"""Reader of the tables, record batches, batch readers and datasets of pyarrow."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._moments.moments import Moments
from fssgd._moments.row_sums import BLOCK_ROWS
from fssgd._moments.table_spec import Column, TableSpec
from fssgd.tables._row_pass import TablePass

BATCH_ROWS, BATCH_VALUES = 65_536, 1 << 21  # 16 MB; pages decoded in parts cost more (measured)


def import_pyarrow() -> Any:
    """Return pyarrow, with ``pyarrow.dataset`` imported.

    Raises
    ------
    ImportError
        If pyarrow is not installed; the message names the pip command.
    """
    try:
        import pyarrow as pa
        import pyarrow.dataset
    except ImportError as error:
        raise ImportError(
            f"Parquet and CSV files are read by pyarrow, which could not be imported ({error}): "
            "pip install 'fssgd[tables]'."
        ) from error
    return pa


def read_arrow(table: Any, spec: TableSpec, progress: bool | None) -> Moments:
    """Compute the moments of a Table, RecordBatch, RecordBatchReader or Dataset."""
    pa = import_pyarrow()
    where, total = f"the pyarrow {type(table).__name__}", None
    if not isinstance(table, (pa.Table, pa.RecordBatch, pa.RecordBatchReader, pa.dataset.Dataset)):
        raise TypeError(
            f"A pyarrow {type(table).__name__} is not a table: pass a Table, RecordBatch, RecordBatchReader or Dataset."
        )
    spec = spec.choose(columns_of(table.schema, spec), where)
    names = list(spec.columns)
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        table, total = table.select(names), len(table)
        batches = ((batch, None) for batch in table.to_batches(max_chunksize=BATCH_ROWS))
    elif isinstance(table, pa.RecordBatchReader):
        batches = ((batch.select(names), None) for batch in table)
    else:
        tagged = table.scanner(columns=names, **scan_options(spec, getattr(table, "format", None))).scan_batches()
        batches = ((one.record_batch, getattr(one.fragment, "path", None)) for one in tagged)
    with TablePass(spec, where, progress, total) as rows:
        for batch, file in batches:
            rows.add(arrays_of(batch), file)
    return rows.moments()


def columns_of(schema: Any, spec: TableSpec) -> list[Column]:
    """Return the columns of a schema.

    A column of type null, without any value, is numeric if the spec names it or if all columns are of that type.
    """
    import pyarrow.types as types

    empty, indices = all(types.is_null(one.type) for one in schema), _indices_of(schema)
    return [
        Column(
            one.name,
            str(one.type),
            any(test(one.type) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean))
            or (types.is_null(one.type) and (empty or one.name in spec.columns)),
            one.name in indices,
            types.is_null(one.type),
        )
        for one in schema
    ]


def _indices_of(schema: Any) -> list[Any]:
    """Return the columns that pandas or Dask wrote as the index of the rows, according to the metadata."""
    try:
        indices = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (KeyError, TypeError, ValueError):
        return []
    return list(indices) if isinstance(indices, list) else []  # anybody can write these metadata


def scan_options(spec: TableSpec, file_format: Any = None) -> dict[str, Any]:
    """Return options that limit the memory of a scan: few batches at a time, with fewer rows if these are long."""
    import pyarrow.dataset as ds

    rows = min(BATCH_ROWS, max(BLOCK_ROWS, BATCH_VALUES // len(spec.columns)))
    # By default a scan reads 16 batches of 4 files ahead, and a Parquet row group as a whole.
    options = {"batch_size": rows, "batch_readahead": 1, "fragment_readahead": 1}
    if isinstance(file_format, ds.ParquetFileFormat):
        reading = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        options["fragment_scan_options"] = reading
    return options


def arrays_of(batch: Any) -> list[npt.NDArray[Any]]:
    """Return the columns of a record batch as arrays, without a copy if they have no null; null becomes NaN."""
    return [array_of(column) for column in batch.columns]


def array_of(column: Any) -> npt.NDArray[Any]:
    """Return one column as an array, as :func:`arrays_of` does."""
    import pyarrow as pa

    plain = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    if column.null_count or not plain:
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))
