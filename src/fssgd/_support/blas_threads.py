"""BLAS on one thread, for as long as anything in this process wants it so."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import LibController, ThreadpoolController

Numbers = list[tuple[LibController, int]]

_lock = threading.RLock()
_inside: list[int] = []  # the threads that want it, each as often as it does
_shared: Numbers = []  # of threads, before the first of them came


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS from using more than one thread; any number of threads may be inside, and leave in any order.

    Where a library has one number for the whole process, the last to leave sets it back. Others may keep a number for
    each thread, which that thread sets back itself. What somebody else has set meanwhile is left alone. (Limits of
    threadpoolctl restore one another's, and from version 3.8 on not at all if they end in another thread.)
    """
    with _lock:
        own = [(library, number) for library, number in _limit() if not _is_shared(library)]
        _inside.append(threading.get_ident())
    try:
        yield
    finally:
        with _lock:
            _inside.remove(threading.get_ident())
            _restore(own)
            _restore_shared()


def _limit() -> Numbers:
    """Set to 1 what is above; return the numbers there were."""
    above = [(library, library.num_threads) for library in _libraries() if (library.num_threads or 1) > 1]
    _set([(library, 1) for library, _ in above])
    _shared.extend((library, number) for library, number in above if _is_shared(library))
    return above


def _restore(numbers: Numbers) -> None:
    _set([(library, number) for library, number in numbers if library.num_threads == 1])


def _restore_shared() -> None:
    if not _inside:
        _restore(_shared)
        _shared.clear()


def _set(numbers: Numbers) -> None:
    for library, number in numbers:
        library.set_num_threads(number)
        # from threadpoolctl 3.8 on, a thread that sets a number of OpenBLAS keeps others from it until it says so
        getattr(library, "clear_controlling_thread", lambda: None)()


def _is_shared(library: LibController) -> bool:
    return bool(library.internal_api == "openblas" and library.threading_layer != "openmp")


@cache
def _libraries() -> list[LibController]:
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def _after_fork() -> None:
    """Forget the threads that are not in this process: all but the one that forked."""
    _inside[:] = [thread for thread in _inside if thread == threading.get_ident()]
    _restore_shared()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork)
