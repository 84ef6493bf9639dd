"""Errors that users may want to catch."""

from __future__ import annotations

from typing import Any


class DivergenceError(ValueError):
    """The step is too large for the data, and the loss rose.

    Attributes
    ----------
    learning_rate : float
        The step used.
    max_learning_rate : float
        2 / L, the largest stable step for this data.
    n_iter : int
        The step at which the loss had risen by more than rounding explains.
    feature : str
        The column with the largest entry in the steepest direction, or "intercept".
    """

    __module__ = "fssgd"

    def __init__(self, message: str, learning_rate: float, max_learning_rate: float, n_iter: int, feature: str) -> None:
        super().__init__(message)
        self.learning_rate = learning_rate
        self.max_learning_rate = max_learning_rate
        self.n_iter = n_iter
        self.feature = feature

    def __reduce__(self) -> tuple[Any, ...]:
        fields = str(self), self.learning_rate, self.max_learning_rate, self.n_iter, self.feature
        return type(self), fields
