"""Conversion of NumPy arrays and numbers to values that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return the value as dicts, lists, strings and numbers; infinity, which JSON lacks, becomes the string "inf"."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return "inf" if isinstance(value, float) and value == np.inf else value
