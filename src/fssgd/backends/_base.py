"""The class that backends derive from."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

from fssgd.backends._problem import Monitor, Problem, Solution


class Backend(abc.ABC):
    """A way to run fixed-step gradient descent: an immutable, picklable set of settings.

    Subclasses take their settings as keyword arguments of ``__init__``, assign them to attributes of the same names
    (a frozen dataclass does both), and implement :meth:`solve`. Whatever is compiled or opened lives in module-level
    caches, never in the instance.

    Examples
    --------
    >>> import numpy as np
    >>> from fssgd import LinearRegressorGD
    >>> from fssgd.backends import Backend, Solution, Status
    >>> class Plain(Backend):
    ...     name = "plain"
    ...
    ...     def solve(self, problem, monitor):
    ...         theta, losses = problem.start, [problem.loss(problem.start)]
    ...         for _ in range(problem.max_iter):
    ...             theta = theta - problem.learning_rate * problem.gradient(theta)
    ...             losses.append(problem.loss(theta))
    ...         norm = float(np.linalg.norm(problem.gradient(theta)))
    ...         return Solution(theta, problem.max_iter, Status.MAX_ITER, losses[-1], norm, np.array(losses))
    >>> LinearRegressorGD(max_iter=10, learning_rate=0.1, tol=None, backend=Plain()).fit(
    ...     [[1], [2], [3], [4]], [3, 5, 7, 9]
    ... ).coef_
    array([1.78525164])
    """

    __module__ = "fssgd"

    name: ClassVar[str]
    closed_form: ClassVar[bool] = False
    """Whether :meth:`solve` takes no steps, so that there are none to report and ``max_iter=inf`` is a limit."""
    needs_moments: ClassVar[bool] = False
    """Whether :meth:`solve` needs ``problem.path``, whatever the number of features."""

    @abc.abstractmethod
    def solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Descend from ``problem.start``.

        Parameters
        ----------
        problem : Problem
            The problem in the coordinates of the descent.
        monitor : callable
            ``monitor(k, theta)``, called after each of ``problem.chunk_ends()`` that is reached and
            never once a step; if it returns True the descent ends there, ``Status.STOPPED``.

        Returns
        -------
        Solution
            The first iterate at which the gradient norm is at most ``problem.threshold``, at which
            the loss exceeds ``problem.highest_loss``, or at which ``problem.max_iter`` is reached.
        """

    @classmethod
    def is_available(cls) -> bool:
        """Return whether what the backend needs is installed, without importing it."""
        return True

    def get_settings(self) -> Mapping[str, Any]:
        """Return the settings.

        Returns
        -------
        dict
            Name to value, in the order of the names.
        """
        return dict(sorted(vars(self).items()))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.get_settings().items())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_settings().items())})"
