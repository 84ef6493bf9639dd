"""Gradient descent as a Python loop, for backends that take one step a call."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from fssgd.backends._problem import Array, Monitor, Problem, Solution, Status

Evaluate = Callable[[Array], tuple[Any, Array]]


def descend(problem: Problem, monitor: Monitor, evaluate: Evaluate, theta: Array) -> Solution:
    """Step from ``theta`` until one of the reasons to stop holds.

    Parameters
    ----------
    problem : Problem
    monitor : callable
    evaluate : callable
        Returns F and grad F at theta, the gradient in theta's shape.
    theta : ndarray
        theta_0, in whatever shape and dtype ``evaluate`` works in.

    Returns
    -------
    Solution
    """
    # losses go into an array of C doubles: a list of 1e6 floats takes 32 MB
    threshold = -1.0 if problem.threshold is None else problem.threshold
    step, losses, lowest, k = theta.dtype.type(problem.learning_rate), array("d"), np.inf, 0
    status = Status.MAX_ITER
    ends = problem.chunk_ends()
    end = next(ends, 0)
    with np.errstate(over="ignore", invalid="ignore"):  # an unstable step overflows before it is told to stop
        while True:
            loss, gradient = evaluate(theta)
            losses.append(loss)
            # tol is asked first: a gradient of 0 is convergence, also where the loss has just risen by rounding
            if threshold >= 0.0 and np.sqrt(np.vdot(gradient, gradient)) <= threshold:
                status = Status.CONVERGED
                break
            if loss < lowest:
                lowest = loss
            elif not loss <= problem.highest_loss(lowest, theta):
                status = Status.DIVERGED
                break
            if k == end:  # a callback costs more than a step: only chunks of them are reported
                if k and monitor(k, theta):
                    status = Status.STOPPED
                    break
                if k == problem.max_iter:
                    break
                end = next(ends)
            theta = theta - step * gradient
            k += 1
        norm = float(np.sqrt(np.vdot(gradient, gradient)))
    return Solution(theta.reshape(problem.start.shape), k, status, float(loss), norm, np.array(losses))
