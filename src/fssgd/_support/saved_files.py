"""What the files that fssgd saves have in common: a format, its version, and a ValueError that names a damaged one."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

LONGEST = 200  # characters of what is repeated of a file


def check_format(path: str | os.PathLike[str], what: str, document: Mapping[str, Any], name: str, version: int) -> None:
    """Raise a ValueError unless a document is of the format ``name``, in a version that this release reads."""
    found = document.get("format")
    if not isinstance(found, str) or found != name:
        raise ValueError(f"{path} is not {what}: expected format {name!r}, found {str(found)[:LONGEST]!r}.")
    number = document.get("version")
    said = str(number)[:LONGEST]
    if type(number) is not int or number < 1:
        raise ValueError(f"{path} is damaged: its version is {said}.")
    if number > version:
        raise ValueError(
            f"{path} was saved by a newer release of fssgd, in version {said} of the format, and this one reads "
            f"version {version}: upgrade fssgd, or save it with this release."
        )


def parse_json(text: str) -> Any:
    """Parse JSON of which nothing is lost: no name twice, and no number that is none or that float64 cannot hold.

    Raises
    ------
    ValueError
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_npz(path: str | os.PathLike[str], what: str, names: Iterable[str]) -> dict[str, Any]:
    """Read those of the named arrays that an ``.npz`` file has; numbers and text come back as those of Python.

    It takes no more memory than the file has bytes: arrays are as long as they say, and not compressed.

    Raises
    ------
    ValueError
        If the file is not one that NumPy wrote by ``savez``, or is damaged.
    """
    with open(Path(path).expanduser(), "rb") as file:
        try:
            with ZipFile(file) as archive:
                members, size = archive.infolist(), os.fstat(file.fileno()).st_size
                there = {member.filename: member for member in members}
                if len(there) < len(members):
                    raise ValueError("an array is there twice")
                wanted = {name: there[f"{name}.npy"] for name in names if f"{name}.npy" in there}
                return {name: _read_array(archive, member, size) for name, member in wanted.items()}
        except Exception as error:  # zipfile and NumPy raise whatever damaged bytes make them stumble over
            raise ValueError(f"{path} does not hold {what}: it is not a readable .npz file ({why(error)}).") from error


def why(error: Exception) -> str:
    """Return what an error says, which may repeat all that it was given, in as many characters as one reads."""
    return (str(error) or type(error).__name__)[:LONGEST]


def _read_array(archive: ZipFile, member: ZipInfo, size: int) -> Any:
    """Read an array once its header has shown that it is no longer than the file."""
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


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return document


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:LONGEST]} is more than float64 holds")
    return number


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")
