"""The data that a command reads: files, or CSV on standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fssgd import Moments
from fssgd.tables import TableSpec, read_table
from fssgd.tables._row_batches import read_rows


def sources(data: list[str]) -> Any:
    """Return what the arguments mean: paths, or standard input."""
    if "-" not in data:
        return data[0] if len(data) == 1 else data
    if data != ["-"]:
        raise ValueError("Standard input (-) cannot be read together with files: name one or the other.")
    if sys.stdin is None:
        raise ValueError("There is no standard input (-) to read: name a file.")
    return sys.stdin.buffer


def read_moments(table: Any, spec: TableSpec, checkpoint: Path | None = None, every: float = 30.0) -> Moments:
    """Stream files or standard input."""
    if not hasattr(table, "read"):
        moments: Moments = read_table(table, spec, checkpoint=checkpoint, checkpoint_every=every)
        return moments
    if checkpoint is not None:
        raise ValueError("--checkpoint is for files, which can be read again: leave it out for standard input.")
    return read_rows(table, spec)
