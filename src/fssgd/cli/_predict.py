"""The command ``fssgd predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer

from fssgd import LinearRegressorGD
from fssgd._support.atomic_files import write_atomically
from fssgd.cli._console import reporting, working
from fssgd.cli._input import sources
from fssgd.cli._options import Data
from fssgd.cli._outputs import check_outputs
from fssgd.tables import TableSpec
from fssgd.tables._row_batches import open_rows
from fssgd.tables.arrow import import_pyarrow
from fssgd.tables.files import FORMATS


@reporting
def predict(
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", hidden=True)],
    data: Data,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write .parquet or .csv; without it, CSV to standard output.")
    ] = None,
) -> None:
    """Predict DATA by a MODEL that fit saved.

    DATA are Parquet or CSV files, folders, globs; - for CSV on standard input. Columns are found by the names that
    the model was fitted with; others are passed over.

    Example: fssgd predict model.json new.csv --out predictions.csv
    """
    check_outputs([("--out", out)], data, model_file)
    if out is not None and out.suffix.lower() not in (*FORMATS["parquet"], ".csv"):
        raise ValueError(f"--out {out} has to end in .csv or .parquet, which says how to write it.")
    model = LinearRegressorGD.load(model_file)
    if not hasattr(model, "feature_names_in_"):
        raise ValueError(f"{model_file} has no feature names to find columns by: fit a table that has column names.")
    names = list(model.feature_names_in_)
    del model.feature_names_in_  # the arrays come in the order of the names
    table = sources(data)
    if out is None:
        if sys.stdout is None:
            raise ValueError("There is no standard output to write to: name a file by --out.")
        _write(sys.stdout.buffer, model, names, table, parquet=False)
    else:
        write_atomically(
            out, lambda handle: _write(handle, model, names, table, out.suffix.lower() in FORMATS["parquet"])
        )
        typer.echo(f"Saved to {out}", err=True)


def _write(handle: IO[bytes], model: LinearRegressorGD, names: list[str], table: Any, parquet: bool) -> None:
    pa = import_pyarrow()
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    source = open_rows(table, TableSpec((), tuple(names)))
    outputs = ["prediction"] if model.coef_.ndim == 1 else [f"prediction_{j}" for j in range(len(model.coef_))]
    schema, bad = pa.schema([(name, pa.float64()) for name in outputs]), np.zeros(len(names), dtype=np.int64)
    if parquet:
        writer = pq.ParquetWriter(handle, schema)
    else:
        handle.write((",".join(outputs) + "\n").encode())
        writer = csv.CSVWriter(handle, schema, write_options=csv.WriteOptions(include_header=False))
    rows = 0
    with working("Predicting", shown=not handle.isatty()) as say, writer:  # predictions on a terminal are news enough
        for arrays, _, _ in source.batches:
            rows += len(arrays[0])
            say(f"Predicting, {rows:,} rows so far")
            bad += [int(np.count_nonzero(~np.isfinite(column))) for column in arrays]
            if not bad.any() and len(arrays[0]):
                predicted = model.predict(np.column_stack(arrays)).reshape(len(arrays[0]), -1).astype(np.float64)
                writer.write_batch(pa.record_batch(list(predicted.T), schema=schema))
    if bad.any():
        listed = ", ".join(
            f"column {name!r} ({n} row{'s' if n > 1 else ''})" for name, n in zip(names, bad, strict=True) if n
        )
        raise ValueError(f"{source.where} has missing or infinite values in {listed}: fill them in, or leave them out.")
