"""The time of one step, and how it grows with the number of rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from fssgd._estimators.gradient_descent import LinearRegressorGD
from fssgd.backends import Backend, get_backend
from fssgd.backends._problem import Monitor, Problem, Solution
from fssgd.cli._experiment.question import SCRIPT, Array, question_data, question_loop

LEARNING_RATE = 1e-4
TARGET = 0.02  # seconds a measurement lasts at least
MOST_STEPS = 1 << 20
Run = Callable[[int], float]
"""Takes so many steps, and returns the seconds they took."""


@dataclass(frozen=True)
class StepTime:
    """Time of a step, over repeated measurements; of a whole fit where steps take no time of their own."""

    backend: str
    n_samples: int
    unit: str  # "step" or "fit"
    median: float
    lower_quartile: float
    upper_quartile: float
    n_steps: int  # of one measurement
    n_repeats: int
    warm_up_seconds: float  # of the first call, with what it imports, traces and compiles


@dataclass(frozen=True)
class LinearCost:
    """``overhead + per_row n``, in seconds, and how far a measurement is from it at most, relative to itself."""

    backend: str
    overhead: float
    per_row: float
    worst_error: float


def measure(names: Sequence[str], n_samples: int, dtype: npt.DTypeLike, n_repeats: int) -> list[StepTime]:
    """Time a step of each backend on the question's data, in turns, so that a drifting machine is fair to all.

    A measurement is the time of k steps less the least that one took, over k - 1: what a call costs once is left out.

    Parameters
    ----------
    names : sequence of str
        Backends, or "question's loop".
    n_samples : int
        Rows.
    dtype : dtype
        Of the data, and so of the steps.
    n_repeats : int
        Measurements of each.

    Returns
    -------
    list of StepTime

    Raises
    ------
    ValueError
        If other work on the machine drowns the time of the steps.
    """
    x, y = question_data(n_samples, dtype)
    runs, warm_up = {}, {}
    for name in names:
        start = time.perf_counter()
        runs[name] = _prepared(name, x, y)
        runs[name](1)
        warm_up[name] = time.perf_counter() - start
    whole = {name: _is_closed_form(name) for name in names}
    n_steps = {name: 1 if whole[name] else _calibrated(runs[name]) for name in names}
    samples: dict[str, list[float]] = {name: [] for name in names}
    once = dict.fromkeys(names, np.inf)
    for _ in range(n_repeats):
        for name, run in runs.items():
            once[name] = min(once[name], run(1))
            samples[name].append(run(n_steps[name]))
    results = []
    for name in names:
        seconds = np.array(samples[name])
        if not whole[name]:
            seconds = (seconds - once[name]) / (n_steps[name] - 1)
        lower, median, upper = (float(q) for q in np.percentile(seconds, [25, 50, 75]))
        if not median > 0:
            raise ValueError(
                f"{n_steps[name]:,} steps of {name} on {n_samples:,} rows took no longer than one: the machine is too "
                "busy to time them. Try again later, or with more --repeats."
            )
        unit = "fit" if whole[name] else "step"
        results.append(StepTime(name, n_samples, unit, median, lower, upper, n_steps[name], n_repeats, warm_up[name]))
    return results


def linear_cost(backend: str, n_samples: Sequence[float], seconds: Sequence[float]) -> LinearCost:
    """Fit ``overhead + per_row n >= 0`` with least squares of the relative errors.

    Examples
    --------
    >>> linear_cost("numpy", [100, 1000, 10000], [6e-6, 15e-6, 105e-6])
    LinearCost(backend='numpy', overhead=5e-06, per_row=1e-08, worst_error=0.0)
    """
    n, t = np.asarray(n_samples, dtype=float), np.asarray(seconds, dtype=float)
    design = np.column_stack([1.0 / t, n / t])
    size = np.linalg.norm(design, axis=0)  # seconds against seconds a row: too far apart for one tolerance
    solution, _ = nnls(design / size, np.ones(len(t)))
    overhead, per_row = solution / size
    worst = float(np.abs((overhead + per_row * n) / t - 1.0).max())
    return LinearCost(backend, float(f"{overhead:.12g}"), float(f"{per_row:.12g}"), round(worst, 12))


def lead_changes(n_samples: Sequence[float], first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the numbers of rows at which another becomes the faster, between measurements by their logarithms.

    Parameters
    ----------
    n_samples : sequence of float
        Ascending.
    first, second : sequence of float
        Seconds.

    Returns
    -------
    list of float

    Examples
    --------
    >>> [round(n) for n in lead_changes([10, 1000], [2.0, 4.0], [1.0, 8.0])]
    [100]
    """
    ahead = np.log(np.asarray(second) / np.asarray(first))
    changes = np.flatnonzero((ahead[1:] > 0) != (ahead[:-1] > 0))
    share = ahead[changes] / (ahead[changes] - ahead[changes + 1])
    n = np.log(np.asarray(n_samples, dtype=float))
    return [float(change) for change in np.exp(n[changes] + share * np.diff(n)[changes])]


def _is_closed_form(name: str) -> bool:
    return name != SCRIPT and get_backend(name).closed_form


def _prepared(name: str, x: Array, y: Array) -> Run:
    """Do once what does not depend on the number of steps."""
    if name == SCRIPT:
        return _timed(lambda k: question_loop(x, y, LEARNING_RATE, k))
    backend: Any = get_backend(name)
    if name == "tf-graph":  # as it does by itself where a run is long
        backend = type(backend)(jit_compile=True)
    settings: Any = {"learning_rate": LEARNING_RATE, "standardize": False, "tol": None}
    if backend.closed_form:
        model = LinearRegressorGD(backend=backend, max_iter=1_000, **settings)
        return _timed(lambda k: model.fit(x[:, None], y))
    kept = _Kept(backend)
    LinearRegressorGD(backend=kept, max_iter=1, **settings).fit(x[:, None], y)
    return _timed(lambda k: backend.solve(replace(kept.problem, max_iter=k), lambda k, theta: False))


def _timed(take: Callable[[int], Any]) -> Run:
    def run(k: int) -> float:
        start = time.perf_counter()
        take(k)
        return time.perf_counter() - start

    return run


def _calibrated(run: Run) -> int:
    """Return the number of steps that lasts long enough, three times in a row: anything may come in between once."""
    once, k = min(run(1) for _ in range(3)), 2
    while k < MOST_STEPS and not all(run(k) - once >= TARGET for _ in range(3)):
        k *= 2
    return k


class _Kept(Backend):
    """Keeps the problem that the backend it wraps is given."""

    def __init__(self, inner: Backend) -> None:
        self.inner, self.name = inner, inner.name  # type: ignore[misc]

    def solve(self, problem: Problem, monitor: Monitor) -> Solution:
        self.problem = problem
        return self.inner.solve(problem, monitor)
