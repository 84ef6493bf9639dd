"""Validation of the solution that a backend returns, which may come from another package."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from fssgd._path.gradient_path import GradientPath
from fssgd.backends._problem import Problem, Solution, Status


def checked_solution(solution: Any, problem: Problem, backend: str) -> Solution:
    """Return the solution, its loss curve as float64, or raise an error that says what is wrong with it.

    Parameters
    ----------
    solution : Solution
        What :meth:`Backend.solve` returned.
    problem : Problem
    backend : str
        Its name, for messages.

    Raises
    ------
    TypeError
        If it is no Solution.
    ValueError
        If one of its fields is not what :class:`Solution` says.
    """
    if not isinstance(solution, Solution):
        raise TypeError(
            f"Backend {backend!r} returned a {type(solution).__name__} from solve: expected a fssgd.backends.Solution."
        )
    checks: dict[str, Callable[[], str | None]] = {
        "status": lambda: _wrong_status(solution, problem),
        "n_iter": lambda: _wrong_count(solution.n_iter, problem.max_iter),
        "theta": lambda: _wrong_theta(solution, problem),
        "loss": lambda: _wrong_number(solution, solution.loss),
        "gradient_norm": lambda: _wrong_number(solution, solution.gradient_norm),
        "path": lambda: None if isinstance(solution.path, GradientPath | None) else "a GradientPath or None",
        "loss_curve": lambda: _wrong_curve(solution),
    }
    for name, check in checks.items():
        if (wrong := check()) is not None:
            raise ValueError(
                f"Backend {backend!r} returned a Solution whose {name} is {_shown(getattr(solution, name))}: expected "
                f"{wrong}."
            )
    if solution.status is Status.MAX_ITER and solution.n_iter != problem.max_iter:
        raise ValueError(
            f"Backend {backend!r} returned a Solution of status MAX_ITER after {solution.n_iter} of "
            f"{problem.max_iter} steps: expected all of them, or another status."
        )
    if solution.loss_curve is None:
        return solution
    # a list, or float32, as such a backend may well keep its losses
    return replace(solution, loss_curve=np.asarray(solution.loss_curve, dtype=np.float64))


def _shown(value: Any) -> str:
    """An array by its dtype and shape, anything else as it is, cut short."""
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"an array of {value.dtype} of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _wrong_status(solution: Solution, problem: Problem) -> str | None:
    if not isinstance(solution.status, Status):
        return f"one of {', '.join(map(str, Status))}"
    if solution.status is Status.CONVERGED and problem.threshold is None:
        return "another, as tol=None asks for all the steps"
    return None


def _wrong_count(n_iter: Any, max_iter: int | float) -> str | None:
    counts = isinstance(n_iter, Integral) and not isinstance(n_iter, bool) or n_iter is np.inf or n_iter == np.inf
    return None if counts and 0 <= n_iter <= max_iter else f"an integer from 0 to max_iter={max_iter}"


def _wrong_theta(solution: Solution, problem: Problem) -> str | None:
    theta: Any = solution.theta
    if not (isinstance(theta, np.ndarray) and theta.dtype.kind == "f" and theta.shape == problem.start.shape):
        return f"an array of floats of the shape of problem.start, {problem.start.shape}"
    if solution.status is not Status.DIVERGED and np.isnan(theta).any():
        return "numbers: a descent that breaks down has the status DIVERGED"
    return None


def _wrong_number(solution: Solution, value: Any) -> str | None:
    if not isinstance(value, Real):
        return "a real number"
    if math.isnan(value) and solution.status is not Status.DIVERGED:
        return "a number: a descent that breaks down has the status DIVERGED"
    return None


def _wrong_curve(solution: Solution) -> str | None:
    if solution.loss_curve is None:
        return None
    try:
        curve = np.asarray(solution.loss_curve)
    except ValueError:  # of a ragged list
        curve = np.empty(0, dtype=object)
    if curve.dtype.kind in "fiu" and curve.shape == (solution.n_iter + 1,):
        return None
    return f"the losses of iterates 0 to n_iter, real numbers of shape ({solution.n_iter} + 1,), or None"
