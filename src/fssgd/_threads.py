"""BLAS on one thread, for as long as anything in this process wants it so."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """A context that may be entered by many at once: limits of their own would restore one another's."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


ONE_THREAD = _OneThread()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
