"""Rows themselves, for what needs more of them than their moments; files as elsewhere, or CSV from a stream."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from fssgd._moments import Moments
from fssgd.tables._pass import TablePass
from fssgd.tables._spec import TableSpec
from fssgd.tables.arrow import arrays_of, columns_of, import_pyarrow
from fssgd.tables.files import naming, open_files

Array = npt.NDArray[np.float64]
HEAD = 1 << 20  # bytes from which the columns of a stream are guessed


class RowSource(NamedTuple):
    """Rows to come: what to call them, the columns chosen, and batches of (columns, file, number of the file)."""

    where: str
    spec: TableSpec
    batches: Iterator[tuple[list[npt.NDArray[Any]], str, int]]


class LoadedRows(NamedTuple):
    """All rows at once, with their moments: X a pyarrow Table, y of shape (n_samples,) for one target."""

    moments: Moments
    X: Any
    y: Array
    weight: Array | None


def open_rows(table: Any, spec: TableSpec) -> RowSource:
    """Open files, or a binary stream of CSV, and check the columns.

    Parameters
    ----------
    table : path, list of paths, or binary file object
        Files as for :meth:`fssgd.Moments.from_table`. A stream is read once, from where it stands.
    spec : TableSpec
        Without a target for features alone.

    Returns
    -------
    RowSource
    """
    if hasattr(table, "read"):
        return _open_stream(table, spec)
    source = open_files(table, spec)
    return RowSource(source.where, source.spec, source.batches())


def read_rows(table: Any, spec: TableSpec) -> Moments:
    """Take what :func:`open_rows` opens to its moments."""
    source = open_rows(table, spec)
    with TablePass(source.spec, source.where) as rows:
        for batch in source.batches:
            rows.add(*batch)
    return rows.moments()


def load_rows(table: Any, spec: TableSpec) -> LoadedRows:
    """Take what :func:`open_rows` opens to columns in memory, checked as a pass over it is."""
    source, blocks = open_rows(table, spec), []
    with TablePass(source.spec, source.where) as rows:
        for arrays, where, file in source.batches:
            rows.add(arrays, where, file)
            blocks.append(arrays)
    moments = rows.moments()
    columns = [np.concatenate(parts, dtype=np.float64) for parts in zip(*blocks, strict=True)]
    if rows.state.dropped:
        kept = ~np.any([np.isnan(column) for column in columns], axis=0)
        columns = [column[kept] for column in columns]
    p, t = moments.n_features, moments.n_outputs
    X = import_pyarrow().table(dict(zip(source.spec.features or (), columns[:p], strict=True)))
    y = columns[p] if t == 1 else np.column_stack(columns[p : p + t])
    return LoadedRows(moments, X, y, None if spec.weight is None else columns[-1])


class _Again(io.RawIOBase):
    """A stream, and before it what was read of it already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part: Any = self._head[: len(buffer)] if self._head else self._rest.read(len(buffer))
        self._head = self._head[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def _open_stream(stream: BinaryIO, spec: TableSpec) -> RowSource:
    pa = import_pyarrow()
    import pyarrow.csv as csv

    where = "standard input" if stream is sys.stdin.buffer else "the stream"
    head = stream.read(HEAD) + stream.readline()
    with naming(where):
        fields = csv.open_csv(io.BytesIO(head)).schema
    spec = spec.choose(columns_of(fields, spec), where)
    # whole numbers may end further down
    types = {name: pa.float64() for name in spec.columns if not pa.types.is_boolean(fields.field(name).type)}
    options = csv.ConvertOptions(column_types=types, include_columns=list(spec.columns))

    def batches() -> Iterator[tuple[list[npt.NDArray[Any]], str, int]]:
        with naming(where):
            for batch in csv.open_csv(pa.PythonFile(_Again(head, stream), mode="r"), convert_options=options):
                yield arrays_of(batch), where, 0

    return RowSource(where, spec, batches())
