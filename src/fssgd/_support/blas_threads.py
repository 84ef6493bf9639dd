"""A context in which BLAS uses one thread, shared by all threads of the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import LibController, ThreadpoolController

ThreadCounts = list[tuple[LibController, int]]

_lock = threading.RLock()
_inside: list[int] = []  # threads that are in the context, once for each time they entered it
_shared: ThreadCounts = []  # of libraries with one count for the process, as it was before the first entered


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread; any number of threads may enter this context, and leave it in any order.

    If a library has one thread count for the whole process, the last thread to leave restores it. Other libraries keep
    a count for each thread, which that thread restores itself. A count that somebody else has set meanwhile is left as
    it is.
    """
    # Not threadpoolctl.threadpool_limits: two that overlap restore each other's limit, and from version 3.8 on nothing
    # is restored if one ends in another thread.
    with _lock:
        own = [(library, count) for library, count in _limit() if not _is_shared(library)]
        _inside.append(threading.get_ident())
    try:
        yield
    finally:
        with _lock:
            _inside.remove(threading.get_ident())
            _restore(own)
            _restore_shared()


def _limit() -> ThreadCounts:
    """Set the counts above 1 to 1, and return these as they were."""
    above = [(library, library.num_threads) for library in _libraries() if (library.num_threads or 1) > 1]
    _set([(library, 1) for library, _ in above])
    _shared.extend((library, count) for library, count in above if _is_shared(library))
    return above


def _restore(counts: ThreadCounts) -> None:
    _set([(library, count) for library, count in counts if library.num_threads == 1])


def _restore_shared() -> None:
    if not _inside:
        _restore(_shared)
        _shared.clear()


def _set(counts: ThreadCounts) -> None:
    for library, count in counts:
        library.set_num_threads(count)
        # from threadpoolctl 3.8 on, only the thread that has set the count of OpenBLAS may set it until this is cleared
        getattr(library, "clear_controlling_thread", lambda: None)()


def _is_shared(library: LibController) -> bool:
    return bool(library.internal_api == "openblas" and library.threading_layer != "openmp")


@cache
def _libraries() -> list[LibController]:
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def _after_fork() -> None:
    """Forget the threads that a fork leaves behind in the parent process: all but the one that forked."""
    _inside[:] = [thread for thread in _inside if thread == threading.get_ident()]
    _restore_shared()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork)
