"""What is named by "module:attribute" and imported when it is first used, with what to install where that fails."""

from __future__ import annotations

import importlib
from typing import Any


def load(path: str, extra: str | None, what: str) -> Any:
    """Import what ``path`` names; an ImportError names the pip command."""
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ImportError(f"The {what} could not be imported ({error}): {how_to_get(path, extra)}.") from error


def how_to_get(path: str, extra: str | None) -> str:
    """Say what to install."""
    return f"pip install '{extra}'" if extra else f"install what {path.partition(':')[0]!r} needs"


DASK_MODULES = ("dask.array.", "dask.dataframe.")


def is_dask(value: Any) -> bool:
    """Whether the value is a Dask array, DataFrame or Series, told without importing Dask."""
    return any(f"{kind.__module__}.".startswith(DASK_MODULES) for kind in type(value).__mro__)
