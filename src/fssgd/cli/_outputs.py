"""Checks of the files that a command is to write: never one that it reads, and none twice, before any work is done."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fssgd._support.atomic_files import check_writable, identity
from fssgd.cli._input import sources
from fssgd.tables.files import find_files


def check_outputs(outputs: list[tuple[str, Path | None]], data: list[str], *others: Path) -> None:
    """Raise a ValueError if an output is a file that is read, or another output.

    Parameters
    ----------
    outputs : list of (str, Path or None)
        Options, and the paths given for them. Standard output is one more.
    data : list of str
        DATA as on the command line.
    *others : Path
        What else is read.
    """
    given = {f"{option} {path}": path.expanduser() for option, path in outputs if path is not None}
    for path in given.values():
        check_writable(path)
    written: dict[Any, str] = {identity(file): name for name, file in _stream("standard output", sys.stdout)}
    written.pop(None, None)
    for name, path in given.items():
        file = identity(path)
        if file is not None and written.setdefault(file, name) != name:
            raise ValueError(f"{name} and {written[file]} are the same file: name another for one of them.")
    for name, source in _read(data, others):
        if (read := identity(source)) is not None and read in written:
            raise ValueError(f"{written[read]} would be written over {name}, which is read: name another file.")


def _read(data: list[str], others: tuple[Path, ...]) -> Iterator[tuple[str, str | int]]:
    for path in others:
        yield str(path), str(path.expanduser())
    table = sources(data)
    if hasattr(table, "read"):
        yield from _stream("standard input", sys.stdin)
    else:
        yield from ((path, path) for path in find_files(table)[0])


def _stream(name: str, stream: Any) -> Iterator[tuple[str, int]]:
    """Yield the descriptor of a stream, if it has one."""
    try:
        yield name, stream.fileno()
    except (AttributeError, io.UnsupportedOperation):  # closed, or in the memory of whoever called this
        return
