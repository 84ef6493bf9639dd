"""Messages for a descent that diverged, did not converge or lost digits: the numbers, the column, the cure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fssgd._exceptions import DivergenceError
from fssgd._path.gradient_path import GradientPath
from fssgd.backends._problem import Problem, Solution


def divergence_error(
    problem: Problem, solution: Solution, feature: str, *, exact: bool, standardize: bool
) -> DivergenceError:
    """Return the error that names the step used, the largest stable one, and the steepest column."""
    rate, largest = problem.learning_rate, problem.curvature
    limit = 2.0 / largest if largest > 0 else np.inf
    known = "the largest stable step for this data" if exact else "a step known to be stable for this data"
    cure = "" if standardize else ", or standardize=True, which evens out the scales of the columns"
    blame = "the intercept" if feature == "intercept" else f"column {feature!r}"
    message = (
        f"Gradient descent diverged: by step {solution.n_iter} the loss had risen. learning_rate={rate:.6g} is above "
        f"{limit:.6g}, {known} (2 / L, L = {largest:.6g}); the steepest direction is mostly {blame}. "
        f"Use a learning_rate below {limit:.6g}, or learning_rate='auto'{cure}."
    )
    return DivergenceError(message, rate, limit, int(solution.n_iter), feature)


def convergence_message(problem: Problem, solution: Solution, path: GradientPath | None, tol: float) -> str:
    """Return how far the descent got, how many steps are missing, and what would need fewer."""
    threshold = problem.threshold or 0.0
    reached = (
        f"Gradient descent took max_iter={solution.n_iter} steps to a gradient norm of {solution.gradient_norm:.6g}, "
        f"above the {threshold:.6g} that tol={tol:g} asks for."
    )
    if path is None:
        return f"{reached} Raise max_iter, tol, or learning_rate."
    eps = float(np.finfo(problem.dtype).eps)
    automatic, enough = _automatic(path, tol, eps)
    if (path.unresolved > threshold or automatic.unresolved > enough) and problem.rows is not None:
        path = problem.accurate_path()
        automatic, enough = _automatic(path, tol, eps)
    if path.unresolved > threshold and not path.at_limit:
        scaled = "" if path.settings.standardize else ", or standardize=True"
        return (
            f"{reached} How many more are needed cannot be told from second moments: their rounding hides directions "
            f"(columns are nearly collinear, or of very different scales) along which the gradient is "
            f"{path.unresolved:.6g}. Take the moments with accurate=True, use fit(X, y){scaled}."
        )
    needed = path.squared_gradient.first_below(threshold**2)
    if solution.n_iter < needed < np.inf:
        more = f"At this step {_number(needed - solution.n_iter)} more are needed"
    elif needed < np.inf:
        more = (
            f"Without rounding {_number(needed)} would be enough at this step: {problem.dtype} does not resolve a "
            "gradient this small here; raise tol, or use backend='spectral'"
        )
    elif path.at_limit:
        more = (
            f"No number of steps is enough: learning_rate={path.learning_rate:.6g} is exactly the largest stable step, "
            f"2 / L = {2.0 / path.spectrum.largest:.6g}, where the steepest direction oscillates; use a smaller"
        )
    else:
        more = "At this step no number of them is enough"
    in_all = automatic.squared_gradient.first_below(enough**2)
    cure = (
        f"; with standardize=True and learning_rate='auto', {_number(in_all)} in all from zeros"
        if in_all < np.inf
        else ""
    )
    return f"{reached} The condition number is {path.spectrum.condition_number:.6g}. {more}{cure}."


def _number(steps: int | float) -> str:
    """Return a number of steps to as many digits as are known of it, at most."""
    return str(steps) if steps < 1e12 else f"{steps:.3g}"


def _automatic(path: GradientPath, tol: float, eps: float) -> tuple[GradientPath, float]:
    """Return the descent on standardised features at the automatic step, from zeros, and the gradient it stops at."""
    automatic = GradientPath.of(path.moments, replace(path.settings, standardize=True, learning_rate="auto"))
    return automatic, automatic.reference.threshold(tol, automatic.spectrum.largest, eps)


def accuracy_message(rounding: float, k: int | float) -> str:
    """Return that second moments do not hold the digits that iterate k asks for, and what does."""
    return (
        f"Rounding of the second moments may reach {min(rounding, 1.0):.1g} of the coefficients after {k} steps, "
        "because columns are nearly collinear or of very different scales. Take the moments with accurate=True, or use "
        "fit(X, y), which reads such data twice."
    )
