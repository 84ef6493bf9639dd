"""scikit-learn's callback framework, which is experimental: nothing else imports it.

Where it is missing or has changed beyond recognition, estimators fit without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover - scikit-learn without the framework

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in that supports no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupportMixin", "FitMonitor", "with_callbacks"]


class FitMonitor:
    """Carries the progress of one fit out to its callbacks, and a wish to stop back.

    Calling it ends one chunk of steps and begins the next.

    Parameters
    ----------
    estimator : estimator
        The one being fitted.
    n_chunks : int
        Chunks the backend will report; 0 for one that takes no steps.
    attributes : callable
        Takes theta to the fitted attributes an estimator stopped there would have.
    data : dict
        ``X``, ``y`` and ``metadata`` as callbacks expect them.
    """

    def __init__(
        self, estimator: Any, n_chunks: int, attributes: Callable[[Any], dict[str, Any]], data: dict[str, Any]
    ) -> None:
        self._estimator, self._attributes, self._data = estimator, attributes, data
        self._left = n_chunks
        self._root: Any = None
        self._chunk: Any = None
        heard = getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx")
        if heard and hasattr(estimator, "_init_callback_context"):
            self._root = estimator._init_callback_context(max_subtasks=n_chunks)
            self._root.call_on_fit_task_begin(estimator=estimator, **data)
        self._heard = self._root is not None and bool(getattr(estimator, "_skl_callbacks", []))
        self._begin()

    def __call__(self, k: int, theta: Any) -> bool:
        """Report iterate k; return whether a callback asks to stop."""
        if self._chunk is None:
            return False
        stop = self._end(lambda: self._attributes(theta))
        self._begin()
        return stop

    def finish(self) -> None:
        """End the chunk in progress and the fit; the estimator has its fitted attributes."""
        if self._chunk is not None:
            self._end(lambda: {})
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=dict, **self._data)

    def _begin(self) -> None:
        self._chunk = None
        if self._heard and self._left:
            self._left -= 1
            self._chunk = self._root.subcontext(task_name="steps")
            self._chunk.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def _end(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        return bool(
            self._chunk.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._data
            )
        )
