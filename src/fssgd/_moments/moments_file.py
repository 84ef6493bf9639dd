"""The ``.npz`` file that moments are saved in, which holds arrays of numbers and names and never a pickle."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from fssgd._moments.sums import Sums
from fssgd._support.atomic_files import write_atomically
from fssgd._support.saved_files import check_format, read_npz

FORMAT, VERSION = "fssgd.Moments", 1
NUMBERS: dict[str, type] = {"n_samples": int, "weight": float, "n_outputs": int, "is_root": bool, "chosen": bool}
# Fields of the file whose names differ from those of Sums, so that files of fssgd 0.1.0 stay readable.
ATTRIBUTES = {"is_root": "is_factor", "chosen": "factor_requested"}
ARRAYS: dict[str, type] = {"mean": np.float64, "matrix": np.float64, "constant": np.bool_}
FIELDS = ("format", "version", *NUMBERS, *ARRAYS, "feature_names")

Names = npt.NDArray[np.object_] | None


def write_moments(path: str | os.PathLike[str], sums: Sums, n_outputs: int, names: Names) -> None:
    """Write moments atomically to a file of exactly this name."""
    fields = moments_fields(sums, n_outputs, names)
    write_atomically(path, lambda handle: np.savez(handle, **fields))


def moments_fields(sums: Sums, n_outputs: int, names: Names) -> dict[str, Any]:
    """Return the fields of the file."""
    names_in_sums = {name: ATTRIBUTES.get(name, name) for name in (*NUMBERS, *ARRAYS) if name != "n_outputs"}
    fields: dict[str, Any] = {name: getattr(sums, attribute) for name, attribute in names_in_sums.items()}
    fields |= {"format": FORMAT, "version": VERSION, "n_outputs": n_outputs}
    if names is not None:
        fields["feature_names"] = np.array([str(name) for name in names])
    return fields


def read_moments(path: str | os.PathLike[str]) -> tuple[Sums, int, Names]:
    """Read and check what :func:`write_moments` wrote.

    Raises
    ------
    ValueError
        If the file does not hold moments, was written by a newer version, or is damaged.
    """
    return moments_of_fields(path, read_npz(path, "saved moments", FIELDS), "Compute the moments again.")


def moments_of_fields(path: str | os.PathLike[str], fields: dict[str, Any], advice: str) -> tuple[Sums, int, Names]:
    """Return the sums, the number of outputs and the names that the fields hold, once they are checked.

    Parameters
    ----------
    path : str or path-like
        The file, for messages.
    fields : dict
        Fields as :func:`moments_fields` returns them.
    advice : str
        What to do about a damaged file, for messages.
    """
    check_format(path, "a file of saved moments", fields, FORMAT, VERSION)
    if fault := _first_fault(fields):
        raise ValueError(f"{path} is damaged: {fault}. {advice}")
    return sums_of_fields(fields), fields["n_outputs"], fields.get("feature_names")


def sums_of_fields(fields: dict[str, Any]) -> Sums:
    """Return the sums that the fields hold, without any check."""
    numbers = {ATTRIBUTES.get(k, k): np.asarray(fields[k]).item() for k in NUMBERS if k != "n_outputs"}
    # A file from a machine of the other byte order has arrays that LAPACK cannot read.
    arrays = {name: fields[name].astype(kind, copy=False) for name, kind in ARRAYS.items()}
    return Sums(**numbers, **arrays)


def _first_fault(fields: dict[str, Any]) -> str | None:
    for name in (*NUMBERS, *ARRAYS):
        if name not in fields:
            return f"{name} is missing"
    for name, kind in NUMBERS.items():
        if type(fields[name]) is not kind:
            return f"{name} is not one {kind.__name__}"
    for name, kind in ARRAYS.items():
        array = fields[name]
        if not isinstance(array, np.ndarray) or array.dtype.newbyteorder("=") != kind:
            return f"{name} is not an array of {np.dtype(kind)}"
        # A damaged byte makes a bool that is neither 0 nor 1, which NumPy reads and then computes with.
        if not np.isfinite(array).all() or (kind is np.bool_ and array.view(np.uint8).max(initial=0) > 1):
            return f"{name} holds values that are not finite numbers or booleans"
    return _first_inconsistency(fields)


def _first_inconsistency(fields: dict[str, Any]) -> str | None:
    """Return which fields contradict each other, though each is of the right type."""
    mean, matrix, names = fields["mean"], fields["matrix"], fields.get("feature_names")
    n_columns, is_factor = len(mean) if mean.ndim == 1 else -1, fields["is_root"]
    if fields["constant"].shape != (n_columns,) or matrix.ndim != 2 or matrix.shape[1] != n_columns:
        return "the arrays do not describe the same columns"
    if not (1 <= fields["n_outputs"] < n_columns and fields["n_samples"] >= 1 and 0 < fields["weight"] < np.inf):
        return "a count is out of range"
    if is_factor and len(matrix) > n_columns:
        return "the factor has more rows than columns"
    if not is_factor and (len(matrix) != n_columns or not (matrix == matrix.T).all() or matrix.diagonal().min() < 0):
        return "the second moments are not a symmetric matrix of sums of squares"
    with np.errstate(over="ignore"):
        if not np.isfinite(sums_of_fields(fields).squares).all():
            return "the second moments overflow float64"
    if fields["chosen"] and not is_factor:
        return "it has no factor, though accurate moments were requested"
    n_features = n_columns - fields["n_outputs"]
    if names is not None and not (
        isinstance(names, np.ndarray) and names.dtype == object and names.shape == (n_features,)
    ):
        return "feature_names do not fit the columns"
    return None
