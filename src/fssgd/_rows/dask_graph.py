"""Sums over the partitions of a Dask collection, merged in a tree by whoever computes it.

Only the root of the tree is gathered. The shape of the tree depends on the number of partitions alone, so
that a sum is the same to the bit on any scheduler, and again when lost parts of it are computed anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from itertools import chain
from typing import Any

from fssgd._support.blas_threads import one_thread

FAN_IN = 8


def tree_sum(
    parts: Sequence[Any],
    merge: Callable[[Any, Any], Any],
    each: Callable[..., Any] | None = None,
    arguments: tuple[Any, ...] = (),
) -> Any:
    """Merge what the parts are computed to, and return the result.

    Parameters
    ----------
    parts : sequence of dask.delayed.Delayed
        At least one.
    merge : callable
        Takes two results, in the order of the parts, to one; it is sent to workers.
    each : callable, default=None
        Takes a part, and the ``arguments``, to what is merged; None merges the parts themselves.
    arguments : tuple
        Sent once, however many parts there are.
    """
    import dask
    from dask.delayed import Delayed

    # the graph is written down: Delayed objects for each part took 5 ms of it (measured), and 1,000 parts 4 s a step
    name = f"fssgd-{uuid.uuid4().hex}"
    graph = dict(
        chain.from_iterable(dict(one).items() for one in {id(part.dask): part.dask for part in parts}.values())
    )
    level = [part.key for part in parts]
    if each is not None:
        sent = [f"{name}-argument-{i}" for i in range(len(arguments))]
        graph.update(zip(sent, arguments, strict=True))
        level = _add_level(graph, f"{name}-each", [(each, key, *sent) for key in level])
    # a tree of eights: a chain would wait for every part in turn, and one task for all would gather them in one worker
    while len(level) > 1:
        groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
        level = _add_level(graph, f"{name}-{len(level)}", [(_merge_all, merge, group) for group in groups])
    with one_thread_each(len(parts)):
        (total,) = dask.compute(Delayed(level[0], graph))
    return total


def _add_level(graph: dict[Any, Any], name: str, tasks: list[Any]) -> list[Any]:
    keys = [(name, i) for i in range(len(tasks))]
    graph.update(zip(keys, tasks, strict=True))
    return keys


def one_thread_each(n_parts: int) -> AbstractContextManager[None]:
    """Keep BLAS from using several threads in each of the scheduler's own; workers elsewhere see to that themselves."""
    return one_thread() if n_parts > 1 else nullcontext()


def _merge_all(merge: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    return reduce(merge, parts)
