"""Parquet and CSV files: a path, a glob, a folder or a list of them, with checkpoints."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from fssgd._moments import Moments
from fssgd.tables._checkpoint import Checkpoint
from fssgd.tables._pass import TablePass
from fssgd.tables._spec import TableSpec
from fssgd.tables.arrow import arrays_of, columns_of, import_pyarrow, scan_options

FORMATS = {"parquet": (".parquet", ".pq", ".parq"), "csv": (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")}


@dataclass(frozen=True)
class OpenFiles:
    """Files whose columns are known to be there; ``schemas`` are the types to read those of each file as."""

    paths: list[str]
    files: list[Any]
    schemas: list[Any]
    spec: TableSpec
    kind: str

    @property
    def where(self) -> str:
        """What to call them in messages."""
        first, last = self.paths[0], self.paths[-1]
        return first if first == last else f"the {len(self.paths)} files {first} to {last}"

    def batches(self, start: int = 0, skip: int = 0) -> Iterator[tuple[list[npt.NDArray[Any]], str, int]]:
        """Yield columns, path and number from file ``start`` on, less its first ``skip`` rows.

        A batch is read while the one before it is used.
        """
        batches = self._batches(start, skip)
        with ThreadPoolExecutor(1, thread_name_prefix="fssgd-reader") as reader:
            upcoming = reader.submit(next, batches, None)
            while (batch := upcoming.result()) is not None:
                upcoming = reader.submit(next, batches, None)
                yield batch

    def _batches(self, start: int, skip: int) -> Iterator[tuple[list[npt.NDArray[Any]], str, int]]:
        for index in range(start, len(self.files)):
            with naming(self.paths[index]):
                rows = skip if index == start else 0
                for batch in _batches(self.files[index], self.schemas[index], self.spec, rows):
                    yield arrays_of(batch), self.paths[index], index


def open_files(table: Any, spec: TableSpec) -> OpenFiles:
    """Find the files meant, choose the columns and check them in every file; see :func:`find_files`."""
    pa = import_pyarrow()
    paths, root = find_files(table)
    kind = _format_of(paths)
    reading = pa.dataset.CsvFileFormat() if kind == "csv" else pa.dataset.ParquetFileFormat()
    with naming(paths[0]):
        partitioning = {} if root is None else {"partitioning": "hive", "partition_base_dir": root}
        files = list(pa.dataset.dataset(paths, format=reading, **partitioning).get_fragments())
    spec, schemas = _read_as(files, spec, kind)
    return OpenFiles(paths, files, schemas, spec, kind)


def read_files(
    table: Any, spec: TableSpec, progress: bool | None, *, checkpoint: Any = None, checkpoint_every: float = 30.0
) -> Moments:
    """Take files to their moments; a checkpoint that is there is gone on from."""
    source = open_files(table, spec)
    state, saved, complete = None, None, False
    if checkpoint is not None:
        types = [one.to_string(show_schema_metadata=False) for one in source.schemas]
        saved = Checkpoint(checkpoint, checkpoint_every, source.paths, source.spec, types)
        state, complete = saved.load()
    total = None if source.kind == "csv" else sum(file.count_rows() for file in source.files)
    with TablePass(source.spec, source.where, progress, total, state, saved.after_block if saved else None) as rows:
        start = len(source.files) if complete else state.file if state else 0
        for arrays, path, index in source.batches(start, state.row if state else 0):
            rows.add(arrays, path, index)
    moments = rows.moments()
    if saved is not None and not complete:
        saved.save(rows.state, complete=True)
    return moments


def find_files(table: Any) -> tuple[list[str], str | None]:
    """Return the files meant, in the order they are read, and the folder if that is what was given.

    Raises
    ------
    FileNotFoundError
        If a path does not exist.
    ValueError
        If a pattern or a folder holds no files, or a file is listed twice.
    """
    if isinstance(table, (list, tuple)):
        paths = [path for item in table for path in find_files(item)[0]]
        twice = {path for path in paths if paths.count(path) > 1} if len(set(paths)) < len(paths) else set()
        if twice:
            raise ValueError(f"{min(twice)} is listed twice: its rows would count twice.")
        return paths, None
    name = os.fspath(table)
    if "://" in name:
        raise ValueError(f"{name} is not a local path: open it with pyarrow.dataset.dataset, and pass the dataset.")
    path = Path(name).expanduser()
    if path.is_dir():
        paths = sorted(
            str(file.absolute())
            for file in path.rglob("*")
            if _format(file) and not any(part[0] in "._" for part in file.relative_to(path).parts) and file.is_file()
        )
        if not paths:
            raise ValueError(f"There are no Parquet or CSV files in the folder {name}.")
        return paths, str(path.absolute())
    if path.exists():
        return [str(path.absolute())], None
    if glob.has_magic(name):
        matches = [Path(file) for file in glob.glob(str(path), recursive=True)]
        paths = sorted(str(file.absolute()) for file in matches if not file.is_dir())
        if not paths:
            raise ValueError(f"No files match {name}.")
        return paths, None
    raise FileNotFoundError(f"There is no file or folder {name}.")


def _format(path: str | Path) -> str | None:
    name = str(path).lower()
    return next((kind for kind, endings in FORMATS.items() if name.endswith(endings)), None)


def _format_of(paths: list[str]) -> str:
    for path in paths:
        if _format(path) is None:
            known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
            raise ValueError(f"The name of {path} does not tell its format: expected it to end in one of {known}.")
        if _format(path) != _format(paths[0]):
            raise ValueError(f"{paths[0]} and {path} are of different formats: read them one after the other and add.")
    return str(_format(paths[0]))


def _read_as(files: list[Any], spec: TableSpec, kind: str) -> tuple[TableSpec, list[Any]]:
    """Choose the columns by the first file, check them in every file, and settle the types to read them as."""
    import pyarrow as pa

    schemas: list[Any] = []
    for file in files:
        with naming(file.path):
            fields = list(file.physical_schema)
        named = {one.name: one for one in fields}
        keys = pa.dataset.get_partition_keys(file.partition_expression)
        fields += [pa.field(key, pa.scalar(value).type) for key, value in keys.items() if key not in named]
        described, named = columns_of(fields, spec), {one.name: one for one in fields}
        if schemas:
            spec.check(described, file.path)
        else:
            spec = spec.choose(described, file.path)
        chosen = [named[name] for name in spec.columns]
        if kind == "csv":  # the type is a guess from the first block: whole numbers may end further down
            chosen = [one if pa.types.is_boolean(one.type) else one.with_type(pa.float64()) for one in chosen]
        schemas.append(pa.schema(chosen))
    return spec, schemas


def _batches(file: Any, schema: Any, spec: TableSpec, skip: int) -> Iterator[Any]:
    """Yield the record batches of a file from row ``skip`` on, without reading row groups before it."""
    import pyarrow.dataset as ds

    if isinstance(file, ds.ParquetFileFragment):
        groups = list(file.row_groups)
        while groups and skip >= groups[0].num_rows:
            skip -= groups.pop(0).num_rows
        batches = _parquet_batches(file, [group.id for group in groups], spec)
    else:
        batches = file.scanner(schema=schema, columns=list(spec.columns), **scan_options(spec)).to_batches()
    for batch in batches:
        if skip < len(batch):
            yield batch.slice(skip)
        skip = max(0, skip - len(batch))


def _parquet_batches(file: Any, groups: list[int], spec: TableSpec) -> Iterator[Any]:
    """Not by a scanner, which holds whole row groups, several at once: all of a file where reading is slow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    keys, rows = pa.dataset.get_partition_keys(file.partition_expression), scan_options(spec)["batch_size"]
    with pq.ParquetFile(file.path, pre_buffer=False, buffer_size=1 << 20) as source:
        names = [name for name in spec.columns if name in source.schema_arrow.names]
        for batch in source.iter_batches(rows, row_groups=groups, columns=names):
            columns = [batch.column(n) if n in names else pa.repeat(keys[n], len(batch)) for n in spec.columns]
            yield pa.record_batch(columns, list(spec.columns))


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn what pyarrow raises into a ValueError that names the file."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        raise ValueError(f"{path} could not be read: {error}") from error
