"""Moments as an ``.npz`` file: arrays of numbers and names, never a pickle."""

from __future__ import annotations

import math
import os
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from fssgd._atomic import write_atomically
from fssgd._sums import Sums

FORMAT, VERSION = "fssgd.Moments", 1
NUMBERS = {"n_samples": "i", "weight": "f", "n_outputs": "i", "is_root": "b", "chosen": "b"}
ARRAYS = {"mean": "f", "matrix": "f", "constant": "b"}

UNREADABLE: tuple[type[Exception], ...] = (OSError, ValueError, EOFError, LookupError, AttributeError, TypeError)
UNREADABLE += (RuntimeError, MemoryError, BadZipFile, zlib.error)  # of a file whose bytes were changed

Names = npt.NDArray[np.object_] | None


def write_moments(path: str | os.PathLike[str], sums: Sums, n_outputs: int, names: Names) -> None:
    """Write atomically, under the very name given."""
    fields = moments_fields(sums, n_outputs, names)
    write_atomically(path, lambda handle: np.savez(handle, **fields))


def moments_fields(sums: Sums, n_outputs: int, names: Names) -> dict[str, Any]:
    """Return the arrays that moments are written as."""
    fields: dict[str, Any] = {name: getattr(sums, name) for name in (*NUMBERS, *ARRAYS) if name != "n_outputs"}
    fields |= {"format": FORMAT, "version": VERSION, "n_outputs": n_outputs}
    if names is not None:
        fields["feature_names"] = np.array([str(name) for name in names])
    return fields


def read_moments(path: str | os.PathLike[str]) -> tuple[Sums, int, Names]:
    """Read and check what :func:`write_moments` wrote.

    Raises
    ------
    ValueError
        If the file is something else, is of another version, or is damaged.
    """
    return moments_of_fields(path, read_npz(path, "saved moments"))


def read_npz(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """Read the arrays of an ``.npz`` file that should hold ``what``, or raise a ValueError."""
    try:
        # opened here, for np.load leaves a damaged file open
        with open(Path(path).expanduser(), "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except (
        OSError,
        ValueError,
        EOFError,
        LookupError,
        AttributeError,
        TypeError,
        RuntimeError,
        MemoryError,
        BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(f"{path} does not hold {what}: it is not a readable .npz file ({error}).") from error


def moments_of_fields(path: str | os.PathLike[str], fields: dict[str, Any]) -> tuple[Sums, int, Names]:
    """Check and put together what :func:`moments_fields` took apart."""
    found = str(fields.get("format"))
    if found != FORMAT:
        raise ValueError(f"{path} does not hold saved moments: expected format {FORMAT!r}, found {found!r}.")
    if fields.get("version") != VERSION:
        raise ValueError(
            f"{path} was saved in version {fields.get('version')} of the format, and this release reads version "
            f"{VERSION}: load it with the release that wrote it."
        )
    if wrong := _first_fault(fields):
        raise ValueError(f"{path} is damaged: {wrong}. Take the moments again.")
    names = fields.get("feature_names")
    return sums_of_fields(fields), int(fields["n_outputs"]), None if names is None else names.astype(object)


def sums_of_fields(fields: dict[str, Any]) -> Sums:
    """Put together what is known to be right."""
    numbers = {name: fields[name].item() for name in NUMBERS if name != "n_outputs"}
    return Sums(**numbers, **{name: fields[name] for name in ARRAYS})


def _first_fault(fields: dict[str, Any]) -> str | None:
    for name, kind in (NUMBERS | ARRAYS).items():
        if name not in fields:
            return f"{name} is missing"
        if fields[name].dtype.kind != kind or not np.isfinite(fields[name]).all():
            return f"{name} does not hold finite numbers of the right kind"
    if any(fields[name].ndim for name in NUMBERS):
        return "a number is not a scalar"
    n_columns, matrix = len(fields["mean"]) if fields["mean"].ndim == 1 else -1, fields["matrix"]
    if fields["constant"].shape != (n_columns,) or matrix.ndim != 2 or matrix.shape[1] != n_columns:
        return "the arrays do not describe the same columns"
    if fields["is_root"]:
        if len(matrix) > n_columns:
            return "the root has more rows than columns"
    elif matrix.shape != (n_columns, n_columns) or not np.array_equal(matrix, matrix.T) or matrix.diagonal().min() < 0:
        return "the second moments are not a symmetric matrix of sums of squares"
    if not (1 <= fields["n_outputs"] < n_columns and fields["n_samples"] >= 1 and fields["weight"] > 0):
        return "a count is out of range"
    names = fields.get("feature_names")
    if names is not None and (names.dtype.kind != "U" or names.shape != (n_columns - fields["n_outputs"],)):
        return "feature_names do not fit the columns"
    return None if math.isfinite(float(fields["weight"])) else "the weight is not finite"
