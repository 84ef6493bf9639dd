"""Reading of the JSON and ``.npz`` files that fssgd saves: format, version, and errors that name a damaged file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

MAX_QUOTED = 200  # characters of a file in a message: a damaged field may be megabytes long


def check_format(path: str | os.PathLike[str], what: str, document: Mapping[str, Any], name: str, version: int) -> None:
    """Raise a ValueError unless a document is of the format ``name``, in a version that this release reads."""
    found = document.get("format")
    if not isinstance(found, str) or found != name:
        raise ValueError(f"{path} is not {what}: expected format {name!r}, found {str(found)[:MAX_QUOTED]!r}.")
    found_version = document.get("version")
    quoted = str(found_version)[:MAX_QUOTED]
    if type(found_version) is not int or found_version < 1:
        raise ValueError(f"{path} is damaged: its version is {quoted}.")
    if found_version > version:
        raise ValueError(
            f"{path} was saved by a newer release of fssgd, in version {quoted} of the format, and this one reads "
            f"version {version}: upgrade fssgd, or save it with this release."
        )


def parse_json(text: str) -> Any:
    """Parse JSON strictly.

    Raises
    ------
    ValueError
        If the text is not JSON, a key occurs twice in an object, or a number is NaN, infinite or beyond float64.
    """
    try:
        return json.loads(text, parse_constant=_reject_constant, parse_float=_finite, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_npz(path: str | os.PathLike[str], what: str, names: Iterable[str]) -> dict[str, Any]:
    """Read arrays of an ``.npz`` file; scalars are returned as Python numbers and strings.

    Takes no more memory than the file has bytes, whatever a damaged header says.

    Parameters
    ----------
    path : str or path-like
        The file.
    what : str
        Description of the expected content, for the error message.
    names : iterable of str
        Arrays to read; those that the file lacks are left out.

    Raises
    ------
    ValueError
        If the file was not written by ``numpy.savez``, or is damaged.
    """
    with open(Path(path).expanduser(), "rb") as file:
        try:
            with ZipFile(file) as archive:
                members, size = archive.infolist(), os.fstat(file.fileno()).st_size
                by_name = {member.filename: member for member in members}
                if len(by_name) < len(members):
                    raise ValueError("an array occurs twice")
                wanted = {name: by_name[f"{name}.npy"] for name in names if f"{name}.npy" in by_name}
                return {name: _read_array(archive, member, size) for name, member in wanted.items()}
        except Exception as error:  # damaged bytes raise nearly anything in zipfile and NumPy
            raise ValueError(f"{path} does not hold {what}: it is not a readable .npz file ({why(error)}).") from error


def why(error: Exception) -> str:
    """Return the message of an error, cut to a readable length."""
    return (str(error) or type(error).__name__)[:MAX_QUOTED]


def _read_array(archive: ZipFile, member: ZipInfo, size: int) -> Any:
    """Return one array, after a check that it is as long as its header says and no longer than the file."""
    # A few compressed bytes can unpack to terabytes.
    if member.compress_type != ZIP_STORED:
        raise ValueError(f"{member.filename} is compressed")
    with archive.open(member) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"{member.filename} is of another version of NumPy's format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        length = file.tell() + math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or not length == member.file_size == member.compress_size <= size:
        raise ValueError(f"{member.filename} is not as long as its header says")
    with archive.open(member) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    if not array.ndim:
        return array.item()
    return array.astype(object) if array.dtype.kind == "U" else array


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return document


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:MAX_QUOTED]} is more than float64 holds")
    return number


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")
