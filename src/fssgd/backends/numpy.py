"""Gradient descent in NumPy: two products with the design matrix a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from fssgd._rows.design import Rows
from fssgd.backends._base import Backend
from fssgd.backends._host_loop import Evaluate, descend
from fssgd.backends._problem import Array, Monitor, Problem, Solution


class NumPy(Backend):
    """Vectorised stepping, dense or sparse, in the dtype of X.

    A step costs two matrix products with the design and two passes over the residuals. Rows in a Dask
    collection are stepped over where they are.
    """

    name = "numpy"

    def solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Step until a reason to stop holds; see :meth:`Backend.solve`."""
        theta = problem.start.astype(problem.dtype)
        rows = problem.require_rows()
        # a penalty, partitions elsewhere, a sparse design still to be centred: the general way, a few calls more a step
        if problem.alpha or not isinstance(rows, Rows) or rows.offset is not None:
            return descend(problem, monitor, problem.evaluate, theta)
        if theta.shape[1] == 1:  # products with a vector: those with a matrix of one column cost twice the overhead
            theta = theta[:, 0]
        return descend(problem, monitor, _plain(problem, theta.shape), theta)


def _plain(problem: Problem, shape: tuple[int, ...]) -> Evaluate:
    """Return F and its gradient for a design that needs no correction: the fewest calls a step."""
    design = problem.rows_in_memory().matrix
    targets = problem.rows_in_memory().targets.reshape(-1, *shape[1:])
    transposed, residual = design.T, np.empty(targets.shape, targets.dtype)
    into = residual if isinstance(design, np.ndarray) else None  # scipy's products take no output array

    def evaluate(theta: Array) -> tuple[Any, Array]:
        np.subtract(design.dot(theta) if into is None else np.dot(design, theta, out=into), targets, out=residual)
        return np.vdot(residual, residual), 2 * transposed.dot(residual)

    return evaluate
