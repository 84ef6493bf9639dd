"""Files that a path, a glob, a folder or a list stands for, with their format and hive partition keys."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

FORMATS = {"parquet": (".parquet", ".pq", ".parq"), "csv": (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")}
NUMBER_PATTERN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# Marks of a folder whose valid files are listed in a log: others are deleted rows or writes that are not committed.
TABLE_FORMATS = (
    ("_delta_log", "a Delta table", "deltalake.DeltaTable(path).to_pyarrow_table()"),
    ("metadata/*.metadata.json", "an Iceberg table", "table.scan().to_arrow() of pyiceberg"),
    (".hoodie", "a Hudi table", "spark.read.format('hudi').load(path)"),
    ("_spark_metadata", "a sink of Spark's structured streaming", "spark.read.load(path)"),
)


def find_files(table: Any) -> tuple[list[str], list[str | None]]:
    """Return the files in the order in which they are read, and for each the folder it was found in or None.

    Raises
    ------
    FileNotFoundError
        If a path does not exist.
    ValueError
        If there are no files, one occurs twice, or one belongs to a Delta, Iceberg, Hudi or Spark streaming table.
    """
    if isinstance(table, (list, tuple)):
        files = [(path, root) for item in table for path, root in _files_of(item)]
    else:
        files = _files_of(table)
    paths = [path for path, _ in files]
    _refuse_duplicates(paths)
    return paths, [root for _, root in files]


def _files_of(table: Any) -> list[tuple[str, str | None]]:
    name = os.fspath(table)
    if "://" in name:
        raise ValueError(f"{name} is not a local path: open it with pyarrow.dataset.dataset, and pass the dataset.")
    path = Path(name).expanduser()
    # A path that exists is taken as it is: brackets in the name of a folder, as in "data[1]", are no pattern.
    if path.is_dir():
        paths = sorted(_files_below(str(path.absolute())))
        _refuse_table_formats([*paths, str(path.absolute() / "any")])
        if not paths:
            raise ValueError(f"There are no Parquet or CSV files in the folder {name}.")
        return [(file, str(path.absolute())) for file in paths]
    if path.exists():
        return [(str(path.absolute()), None)]
    if glob.has_magic(name):
        matches = [Path(file) for file in glob.glob(str(path), recursive=True)]
        paths = sorted(str(file.absolute()) for file in matches if not file.is_dir())
        _refuse_table_formats(paths)
        if not paths:
            raise ValueError(f"No files match {name}.")
        return [(file, None) for file in paths]
    raise FileNotFoundError(f"There is no file or folder {name}.")


def _files_below(folder: str) -> Iterator[str]:
    """Yield the files of a known format in a folder and its subfolders, without hidden ones; links are followed."""
    for top, folders, files in os.walk(folder, followlinks=True):
        # A link to a folder that contains it would be followed for ever.
        within = {os.path.realpath(parent) for parent in map(str, (top, *Path(top).parents))}
        links = {name for name in folders if os.path.islink(os.path.join(top, name))}
        loops = {name for name in links if os.path.realpath(os.path.join(top, name)) in within}
        folders[:] = [name for name in folders if name[0] not in "._" and name not in loops]
        for name in files:
            path = os.path.join(top, name)
            if name[0] in "._" or not _format(name):
                continue
            if os.path.islink(path) and not os.path.exists(path):
                raise FileNotFoundError(f"{path} is a link to {os.readlink(path)}, which is not there.")
            if os.path.isfile(path):
                yield path


def _refuse_duplicates(paths: list[str]) -> None:
    seen: dict[Any, str] = {}
    for path in paths:
        stat = os.stat(path)
        # By device and inode, which hard and symbolic links share; some file systems have no inodes and report 0.
        other = seen.setdefault((stat.st_dev, stat.st_ino) if stat.st_ino else os.path.realpath(path), path)
        if other is not path:
            what = f"{path} is listed twice" if other == path else f"{other} and {path} are the same file"
            raise ValueError(f"{what}: its rows would count twice.")


def _refuse_table_formats(paths: Iterable[str]) -> None:
    """Raise a ValueError if a folder above one of the files holds a Delta, Iceberg, Hudi or Spark streaming table.

    Files that are named one by one are not checked: ``DeltaTable.file_uris`` names the valid ones.
    """
    folders = {parent for path in paths for parent in Path(path).parents}
    for folder in sorted(folders):
        for mark, what, call in TABLE_FORMATS:
            if next(folder.glob(mark), None) is not None:
                raise ValueError(
                    f"{folder} is {what}, whose files may hold deleted or uncommitted rows: read it with {call}, "
                    "and pass what that returns."
                )


def format_of(paths: list[str]) -> str:
    """Return the format of the files, "parquet" or "csv", by the endings of their names."""
    for path in paths:
        if _format(path) is None:
            known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
            raise ValueError(f"The name of {path} does not tell its format: expected it to end in one of {known}.")
        if _format(path) != _format(paths[0]):
            raise ValueError(f"{paths[0]} and {path} are of different formats: read them one after the other and add.")
    return str(_format(paths[0]))


def _format(path: str | Path) -> str | None:
    name = str(path).lower()
    return next((kind for kind, endings in FORMATS.items() if name.endswith(endings)), None)


def hive_keys(paths: Sequence[str], roots: Sequence[str | None]) -> list[dict[str, Any]]:
    """Return the values of the keys in the folder names of each file, as in ``year=2024``; None stands for null.

    The values of a key are numbers if all of them are, and strings otherwise.
    """
    keys_of_files = [
        {} if root is None else dict(_keys(os.path.relpath(path, root)))
        for path, root in zip(paths, roots, strict=True)
    ]
    texts = {
        key for keys in keys_of_files for key, value in keys.items() if value is not None and _number(value) is None
    }
    return [
        {key: value if value is None or key in texts else _number(value) for key, value in keys.items()}
        for keys in keys_of_files
    ]


def _number(text: str) -> float | None:
    """Return the number in the name of a folder, 1 or 0 for true and false, and None for any other text."""
    if NUMBER_PATTERN.fullmatch(text):
        return float(text)
    return {"true": 1.0, "false": 0.0}.get(text.lower())


def _keys(path: str) -> Iterator[tuple[str, str | None]]:
    for part in Path(path).parts[:-1]:
        key, sign, value = part.partition("=")
        if sign:
            yield unquote(key), None if value == NULL_PARTITION else unquote(value)
