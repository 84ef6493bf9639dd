"""The closed form: no loop, one decomposition, any number of steps."""

from __future__ import annotations

import numpy as np

from fssgd._path.closed_form import ACCURACY
from fssgd._path.gradient_path import GradientPath
from fssgd._path.step_counts import first_integer
from fssgd._rows.design import Rows
from fssgd.backends._base import Backend
from fssgd.backends._problem import Array, Monitor, Problem, Solution, Status
from fssgd.backends._refinement import refined_limit


class Spectral(Backend):
    """Jump straight to the iterate at which stepping would stop.

    The scatter matrix of the data serves while the error it leads to,
    ``eps min(eta k L, cond(H))``, stays below 1e-10 and its rounding hides no gradient that ``tol``
    asks for; past that the data is read once more and decomposed by a blocked QR.
    """

    name = "spectral"
    closed_form = True
    needs_moments = True

    def solve(self, problem: Problem, monitor: Monitor) -> Solution:
        """Find the stopping step by bisection and evaluate the iterate there; see :meth:`Backend.solve`."""
        if problem.path is None:
            raise ValueError(
                "The closed form needs the moments of the data, and this problem has none: solve it with a stepping "
                "backend, such as backend='numpy'."
            )
        path = problem.path
        k, status = stopping_step(problem, path)
        # second moments may not know when tol is met, or where the iterate is: then rows at hand are read again
        unsettled = problem.threshold is not None and 2.0 * path.unresolved > problem.threshold
        if problem.rows is not None and (unsettled or path.rounding_at(k) > ACCURACY):
            path = problem.accurate_path()
            k, status = stopping_step(problem, path)
        theta: Array = path.position(k)
        # the limit on ill-conditioned data, such as NIST's: solves in extended precision add the digits that QR loses
        if path.spectrum.accurate and isinstance(problem.rows, Rows) and path.settled_at(k):
            theta = refined_limit(problem.rows, path)
        loss = max(path.spectrum.minimum + path.excess_loss.at(k), 0.0)
        return Solution(theta, k, status, loss, float(np.sqrt(path.squared_gradient.at(k))), None, path)


def stopping_step(problem: Problem, path: GradientPath) -> tuple[int | float, Status]:
    """Return the step at which stepping would stop, and why."""
    k, status = problem.max_iter, Status.MAX_ITER
    if problem.threshold is not None:
        converged = path.squared_gradient.first_below(problem.threshold**2)
        # with max_iter=inf both may be inf: then the limit itself is below the threshold, or nothing is
        if converged <= k and (converged < np.inf or path.squared_gradient.at(np.inf) <= problem.threshold**2):
            k, status = converged, Status.CONVERGED
    if not path.stable:
        risen = _first_rise(problem, path)
        if risen < k or (risen == k and status is Status.MAX_ITER):
            k, status = risen, Status.DIVERGED
    return k, status


def _first_rise(problem: Problem, path: GradientPath) -> int | float:
    """First k at which F exceeds what rounding explains, past the minimum of F."""
    turn = path.excess_loss.turn()
    if turn == np.inf:  # the modes that would grow are absent
        return np.inf
    lowest = float(path.loss(turn))  # of a convex sequence: stepping has seen this minimum before it sees a rise

    def risen(k: int) -> bool:
        loss = path.loss(k)
        return not (np.isfinite(loss) and loss <= problem.highest_loss(lowest, path.position(k)))

    return first_integer(risen, int(turn))
