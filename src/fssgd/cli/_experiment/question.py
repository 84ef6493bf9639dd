"""The question fssgd grew out of: its data, and its own NumPy loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
SCRIPT = "question's loop"
STEPS_A_REPORT = 1_000


def question_data(n_samples: int = 1_000, dtype: npt.DTypeLike = np.float64) -> tuple[Array, Array]:
    """Return x from 0 to 100 and y = x + 20 sin(x / 10) + 15, each of shape (n_samples,)."""
    x = np.arange(n_samples) * (100.0 / n_samples)
    return x.astype(dtype), (x + 20 * np.sin(x / 10) + 15).astype(dtype)


def question_loop(
    x: Array,
    y: Array,
    learning_rate: float,
    n_steps: int,
    standardize: bool = False,
    report: Callable[[int], bool] = lambda k: False,
) -> tuple[float, float, float, int]:
    """Descend as the question does: sums written out, and the loss after every step.

    Parameters
    ----------
    x, y : ndarray of shape (n_samples,)
    learning_rate : float
    n_steps : int
        At least 1.
    standardize : bool, default=False
    report : callable
        Called with the number of steps after every 1,000 of them; stops the descent by returning True.

    Returns
    -------
    coef, intercept, loss : float
        After the last step from zeros, in the units of x and y.
    n_iter : int
        Steps taken.
    """
    mean, scale = (x.mean(), x.std()) if standardize else (0.0, 1.0)
    z, n, w, b, loss, k = (x - mean) / scale, len(x), 0.0, 0.0, math.nan, 0
    fitted = w * z + b
    for k in range(1, n_steps + 1):
        slope, level = 2 / n * np.sum(-z * (y - fitted)), 2 / n * np.sum(-(y - fitted))
        w, b = w - learning_rate * slope, b - learning_rate * level
        fitted = w * z + b
        loss = np.sum((y - fitted) ** 2) / n
        if k % STEPS_A_REPORT == 0 and report(k):
            break
    return float(w / scale), float(b - mean * w / scale), float(loss), k
