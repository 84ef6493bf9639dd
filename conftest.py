"""Doctests of the public classes, which name ``fssgd`` as their module and not the private one they are written in."""

import doctest
import inspect
from types import ModuleType
from typing import Any

_from_module = doctest.DocTestFinder._from_module  # type: ignore[attr-defined]


def _is_of_module(finder: doctest.DocTestFinder, module: ModuleType, value: Any) -> bool:
    """Return whether the value is written in the module: for a public class, whether one of its functions is.

    Where ``__module__`` is "fssgd", doctest itself would look for the examples in ``fssgd/__init__.py`` only, and would
    find those of a class there once a public name has been used, and none of its methods.
    """
    if inspect.isclass(value) and value.__module__ == "fssgd":
        # methods that a dataclass writes are of fssgd
        written_here = any(getattr(member, "__globals__", None) is vars(module) for member in vars(value).values())
        return written_here and module.__name__ != "fssgd"
    return _from_module(finder, module, value)


doctest.DocTestFinder._from_module = _is_of_module  # type: ignore[attr-defined]
