"""Import of optional packages when they are first used, with the pip command in the error."""

from __future__ import annotations

import importlib
from typing import Any


def load(path: str, extra: str | None, what: str) -> Any:
    """Import an object when it is first used.

    Parameters
    ----------
    path : str
        ``"module:attribute"``.
    extra : str or None
        The pip requirement that provides the module, such as ``"fssgd[dask]"``.
    what : str
        Description of the object, for the error message.

    Raises
    ------
    ImportError
        If the import fails; the message names the pip command.
    """
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ImportError(f"The {what} could not be imported ({error}): {how_to_get(path, extra)}.") from error


def how_to_get(path: str, extra: str | None) -> str:
    """Return the pip command, or what to install if no requirement is known."""
    return f"pip install '{extra}'" if extra else f"install what {path.partition(':')[0]!r} needs"


DASK_MODULES = ("dask.array.", "dask.dataframe.")


def is_dask(value: Any) -> bool:
    """Return whether the value is a Dask array, DataFrame or Series, without importing Dask."""
    return any(f"{kind.__module__}.".startswith(DASK_MODULES) for kind in type(value).__mro__)
