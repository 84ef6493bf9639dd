"""Dask collections: how to tell one, and sums over its partitions, merged in a tree by whoever computes it.

Only the root of the tree is gathered. The shape of the tree depends on the number of partitions alone, so
that a sum is the same to the bit on any scheduler, and again when lost parts of it are computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any

from threadpoolctl import ThreadpoolController

FAN_IN = 8
MODULES = ("dask.array.", "dask.dataframe.")


def is_collection(value: Any) -> bool:
    """Whether the value is a Dask array, DataFrame or Series, told without importing Dask."""
    return any(f"{kind.__module__}.".startswith(MODULES) for kind in type(value).__mro__)


def tree_sum(parts: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge what the parts are computed to, and return the result.

    Parameters
    ----------
    parts : sequence of dask.delayed.Delayed
        At least one.
    merge : callable
        Takes two results, in the order of the parts, to one; it is sent to workers.
    """
    import dask

    join = dask.delayed(_merge_all, pure=False)
    level = list(parts)
    while len(level) > 1:
        level = [join(merge, level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    with one_thread_each(len(parts)):
        (total,) = dask.compute(level[0])
    return total


def one_thread_each(n_parts: int) -> Any:
    """Keep BLAS from using several threads in each of the scheduler's own; workers elsewhere see to that themselves."""
    return _controller().limit(limits=1 if n_parts > 1 else None, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _merge_all(merge: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    return reduce(merge, parts)
