"""A fitted model as JSON: numbers and names only, so that loading one runs no code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fssgd._support.atomic_files import write_atomically
from fssgd._support.jsonable import plain
from fssgd._support.saved_files import check_format, parse_json, why

FORMAT, VERSION = "fssgd.LinearRegressorGD", 1
ARRAYS = ("coef", "intercept", "scaled_coef", "scaled_intercept", "mean", "scale")
KEYS = {
    "format",
    "version",
    "params",
    *ARRAYS,
    "n_iter",
    "learning_rate",
    "loss",
    "converged",
    "backend",
    "feature_names",
}


def write_model(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write a model's document atomically; inf becomes the string "inf"."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **plain(document)}, indent=1, allow_nan=False)
    write_atomically(path, lambda handle: handle.write(text.encode()))


def read_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check a model's document; its arrays come back as float64 ndarrays.

    Raises
    ------
    ValueError
        If the file is not such a model, is of a newer version, or is damaged.
    """
    try:
        document = parse_json(Path(path).expanduser().read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a saved model: it does not hold valid JSON ({why(error)}).") from error
    if not isinstance(document, dict):
        document = {"format": type(document).__name__}
    check_format(path, "a saved model", document, FORMAT, VERSION)
    if missing := KEYS - document.keys():
        raise ValueError(f"{path} is damaged: {', '.join(sorted(missing))} missing. Save the model again.")
    try:
        _check(document)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {why(error)} Save the model again.") from error
    return document


def _check(document: dict[str, Any]) -> None:
    for name in ARRAYS:
        document[name] = _numbers(name, document[name])
    coef, n_features = document["coef"], document["coef"].shape[-1] if document["coef"].ndim else 0
    outputs = coef.shape[:-1]
    allowed = {"coef": [coef.shape], "scaled_coef": [coef.shape], "mean": [(n_features,)], "scale": [(n_features,)]}
    allowed |= {name: [(), outputs] for name in ("intercept", "scaled_intercept")}
    if coef.ndim not in (1, 2) or not coef.size:
        raise ValueError(f"coef has shape {coef.shape}, expected (n_features,) or (n_outputs, n_features).")
    for name, shapes in allowed.items():
        if document[name].shape not in shapes:
            raise ValueError(f"{name} has shape {document[name].shape}, expected {shapes[-1]}.")
    if not (document["scale"] > 0).all():
        raise ValueError("scale must be positive.")
    params, names = document["params"], document["feature_names"]
    if not isinstance(params, dict):
        raise ValueError("params is not an object.")
    document["params"] = {name: _param(name, value) for name, value in params.items()}
    document["n_iter"] = _number(document["n_iter"])
    for name in ("learning_rate", "loss"):
        number = _numbers(name, document[name])
        if number.ndim:
            raise ValueError(f"{name} is not one number.")
        document[name] = float(number)
    if not (
        document["n_iter"] >= 0 and isinstance(document["converged"], bool) and isinstance(document["backend"], str)
    ):
        raise ValueError("n_iter, converged or backend is not what it should be.")
    if names is not None and not (
        isinstance(names, list) and len(names) == n_features and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"feature_names must be null or {n_features} strings.")
    dtype = document.get("dtype", "float64")
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype is {dtype!r}, expected 'float64' or 'float32'.")
    for name in ("coef", "intercept"):
        if np.abs(document[name]).max(initial=0.0) > np.finfo(dtype).max:
            raise ValueError(f"{name} holds a value that {dtype} cannot hold.")


def _numbers(name: str, value: Any) -> Any:
    def is_number(item: Any) -> bool:
        if isinstance(item, list):
            return all(map(is_number, item))
        return isinstance(item, (int, float)) and not isinstance(item, bool)

    if not is_number(value):
        raise ValueError(f"{name} holds something that is not a number.")
    array = np.array(value, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds a value that is not finite.")
    return array


def _number(value: Any) -> Any:
    if value == "inf":
        return np.inf
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is not a number of steps.")
    return value


def _param(name: str, value: Any) -> Any:
    if value == "inf":
        return np.inf
    if not (value is None or isinstance(value, (str, bool, int, float))):
        raise ValueError(f"the parameter {name} is of type {type(value).__name__}.")
    if isinstance(value, int) and name != "max_iter":  # of which any number of steps is good
        float(value)
    return value
