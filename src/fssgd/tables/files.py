"""Reader of Parquet and CSV files: a path, a glob, a folder or a list of them, with checkpoints; or a CSV stream."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._moments.moments import Moments
from fssgd._moments.table_spec import Column, TableSpec
from fssgd.tables._checkpoint import Checkpoint
from fssgd.tables._csv_files import CsvSource, NotNumericError
from fssgd.tables._parquet_files import ParquetSource
from fssgd.tables._paths import FORMATS, find_files, format_of, hive_keys
from fssgd.tables._row_pass import TablePass
from fssgd.tables.arrow import arrays_of, columns_of, import_pyarrow, scan_options

__all__ = ["FORMATS", "OpenFiles", "find_files", "open_files", "read_files"]


@dataclass(frozen=True)
class OpenFiles:
    """Files whose columns have been checked.

    Parameters
    ----------
    paths : list of str
        What to call each file in messages.
    files : list of CsvSource or ParquetSource
        The files.
    keys : list of dict
        Columns of each file whose value is in the name of a folder, as in ``year=2024``.
    schemas : list of pyarrow.Schema
        Types to read the columns of each file as.
    spec : TableSpec
        Columns to read, with the features filled in.
    """

    paths: list[str]
    files: list[Any]
    keys: list[dict[str, Any]]
    schemas: list[Any]
    spec: TableSpec

    @property
    def where(self) -> str:
        """What to call them in messages."""
        return _where(self.paths)

    def batches(self, start: int = 0, skip: int = 0) -> Iterator[tuple[list[npt.NDArray[Any]], str, int]]:
        """Yield columns, path and number of the file, from row ``skip`` of file ``start`` on.

        A thread reads the next batch while the current one is summed.
        """
        batches = self._batches(start, skip)
        if (
            getattr(self.files[0], "stream", None) is not None
        ):  # Ctrl-C cannot end a thread that waits for a silent pipe
            yield from batches
            return
        with ThreadPoolExecutor(1, thread_name_prefix="fssgd-reader") as reader:
            upcoming = reader.submit(next, batches, None)
            while (batch := upcoming.result()) is not None:
                upcoming = reader.submit(next, batches, None)
                yield batch

    def _batches(self, start: int, skip: int) -> Iterator[tuple[list[npt.NDArray[Any]], str, int]]:
        import pyarrow as pa

        size = scan_options(self.spec)["batch_size"]
        for index in range(start, len(self.files)):
            file, schema, keys = self.files[index], self.schemas[index], self.keys[index]
            in_file = pa.schema([one for one in schema if one.name not in keys])
            places, rows = {name: j for j, name in enumerate(in_file.names)}, skip if index == start else 0
            with errors_naming(self.paths[index]):
                batches = file.batches(in_file, rows) if _is_csv(file) else file.batches(in_file, size, rows)
                for batch in batches:
                    arrays = arrays_of(batch.select(in_file.names))
                    columns = [
                        arrays[places[name]] if name in places else np.full(len(batch), _as_number(keys[name]))
                        for name in schema.names
                    ]
                    yield columns, self.paths[index], index


def open_files(table: Any, spec: TableSpec, text: Collection[str] = ()) -> OpenFiles:
    """Find the files, choose the columns and check them in every file.

    Parameters
    ----------
    table : path, list of paths, or binary file object
        Files as for :func:`find_files`, or a stream of CSV, which is read once, from its current position.
    spec : TableSpec
        Columns to read.
    text : collection of str, default=()
        Columns known to hold text, though their first rows look like numbers.
    """
    import_pyarrow()
    roots: list[str | None]
    if hasattr(table, "read"):
        stdin = sys.stdin is not None and table is sys.stdin.buffer
        paths, roots = ["standard input" if stdin else "the stream"], [None]
        files: list[Any] = [CsvSource(paths[0], table)]
    else:
        paths, roots = find_files(table)
        files = [CsvSource(path) if format_of(paths) == "csv" else ParquetSource(path) for path in paths]
    keys, described = hive_keys(paths, roots), []
    for file, values in zip(files, keys, strict=True):
        with errors_naming(file.path):
            file.read_schema(spec)
        columns = _described(file, values, spec)
        described.append([one._replace(numeric=one.numeric and one.name not in text) for one in columns])
    spec = spec.choose_from(described, paths, _where(paths))
    return OpenFiles(paths, files, keys, [_schema(*one, spec) for one in zip(files, keys, strict=True)], spec)


def read_files(
    table: Any, spec: TableSpec, progress: bool | None, *, checkpoint: Any = None, checkpoint_every: float = 30.0
) -> Moments:
    """Compute the moments of files; if the checkpoint exists, the pass is resumed from it."""
    text: list[str] = []
    while True:
        source = open_files(table, spec, text)
        try:
            return _read_open_files(source, progress, checkpoint, checkpoint_every)
        except NotNumericError as error:
            # A column whose text begins after the rows that its type was guessed from is left out, as if the text were
            # in these. Not if the user named it, nor with a checkpoint, which is for the columns it began with.
            if spec.features is not None or error.column not in (source.spec.features or ()) or checkpoint is not None:
                raise
            text.append(error.column)


def _read_open_files(source: OpenFiles, progress: bool | None, checkpoint: Any, checkpoint_every: float) -> Moments:
    state, saved, complete = None, None, False
    if checkpoint is not None:
        types = [one.to_string(show_schema_metadata=False) for one in source.schemas]
        saved = Checkpoint(checkpoint, checkpoint_every, source.paths, source.spec, types)
        state, complete = saved.load()
    counts = [file.rows for file in source.files]
    total = None if None in counts else sum(counts)
    with TablePass(source.spec, source.where, progress, total, state, saved.after_block if saved else None) as rows:
        start = len(source.files) if complete else state.file if state else 0
        for arrays, path, index in source.batches(start, state.row if state else 0):
            rows.add(arrays, path, index)
    moments = rows.moments()
    if saved is not None and not complete:
        saved.save(rows.state, complete=True)
    return moments


def _where(paths: list[str]) -> str:
    first, last = paths[0], paths[-1]
    return first if first == last else f"the {len(paths)} files {first} to {last}"


def _is_csv(file: Any) -> bool:
    return isinstance(file, CsvSource)


def _described(file: Any, keys: dict[str, Any], spec: TableSpec) -> list[Column]:
    import pyarrow as pa

    described = columns_of(pa.schema(file.fields, file.metadata), spec)
    if getattr(file, "stream", None) is not None:  # unlike a file, it cannot be searched for the first value
        described = [one._replace(numeric=one.numeric or one.empty) for one in described]
    if file.rows == 0:  # the types of a file without rows say nothing: pandas writes all as text
        described = [one._replace(empty=True) for one in described]
    names = {one.name for one in described}
    for key in [key for key in keys if key in names]:
        del keys[key]  # the column in the file counts
    return described + [
        Column(key, "string" if isinstance(value, str) else "double", not isinstance(value, str), empty=value is None)
        for key, value in keys.items()
    ]


def _schema(file: Any, keys: dict[str, Any], spec: TableSpec) -> Any:
    """Return the types to read the columns as.

    CSV columns are read as floats: the first rows of a column may be integers, and a later one a fraction.
    """
    import pyarrow as pa

    named = {one.name: one for one in file.fields}
    fields = [named[name] if name in named else pa.field(name, pa.float64()) for name in spec.columns]
    if _is_csv(file):
        fields = [one if pa.types.is_boolean(one.type) else one.with_type(pa.float64()) for one in fields]
    return pa.schema([pa.field(one.name, one.type) for one in fields])


def _as_number(value: float | None) -> float:
    return float("nan") if value is None else value


@contextmanager
def errors_naming(path: str) -> Iterator[None]:
    """Turn an error of pyarrow into a ValueError that names the file."""
    import pyarrow as pa

    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError, EOFError) as error:
        text = " ".join(str(error).split())
        raise ValueError(f"{path} could not be read: {text} If it is damaged or cut off, fetch it again.") from error
